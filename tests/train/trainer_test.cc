#include "train/trainer.h"

#include <malloc.h>

#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "base/toml.h"
#include "tests/train/small_trainer.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::error_of;
using test::metrics;
using test::options_of;
using test::SmallRun;

/// A run in its own folder; `stop_after` > 0 interrupts it there.
std::unique_ptr<Trainer> train(const SmallRun& small, const std::string& name,
                               const std::vector<std::string>& more = {},
                               const std::string& resume = "", std::int64_t stop_after = 0) {
  auto holder = std::make_shared<Trainer*>(nullptr);
  TrainerOptions options = options_of(small);
  options.resume = resume;
  options.should_stop = [holder, stop_after] { return (*holder)->steps_done() == stop_after; };
  auto trainer = std::make_unique<Trainer>(small.config(name, more), options);
  *holder = trainer.get();
  std::ostringstream shown;
  trainer->run(shown);
  return trainer;
}

/// What a line says that does not depend on the clock.
Json::Object without_times(const Json& line) {
  Json::Object kept;
  for (const auto& [key, value] : line.object())
    if (key != "step_ms" && key != "tokens_per_s" && key != "sol" && key != "exposed_comm_ms")
      kept.emplace_back(key, value);
  return kept;
}

void require_equal_metrics(const SmallRun& small, const std::string& a, const std::string& b) {
  const auto x = metrics(small, a), y = metrics(small, b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO("step " << i + 1);
    REQUIRE(Json(without_times(x[i])).text(0) == Json(without_times(y[i])).text(0));
  }
}

std::vector<std::uint8_t> bytes_of(const Tensor& t) {
  const auto* p = static_cast<const std::uint8_t*>(t.raw());
  return {p, p + static_cast<std::size_t>(t.numel()) * size_of(t.dtype())};
}

/// Weights and all of the optimizer's state, to the bit.
void require_equal_bits(const Trainer& a, const Trainer& b) {
  REQUIRE(a.slots().size() == b.slots().size());
  for (std::size_t i = 0; i < a.slots().size(); ++i) {
    const Slot &x = a.slots()[i], &y = b.slots()[i];
    INFO(x.name);
    REQUIRE(x.name == y.name);
    REQUIRE(bytes_of(x.value) == bytes_of(y.value));
    REQUIRE(x.state.size() == y.state.size());
    for (std::size_t s = 0; s < x.state.size(); ++s)
      REQUIRE(bytes_of(x.state[s].tensor) == bytes_of(y.state[s].tensor));
  }
  REQUIRE(a.steps_done() == b.steps_done());
}

}  // namespace

TEST_CASE("the loss falls below what single letters can tell") {
  const SmallRun small;
  const auto trainer = train(small, "run", {"run.steps=150", "train.eval_every=150"});
  const auto lines = metrics(small, "run");
  REQUIRE(lines.size() == 150);
  CHECK(lines[0].at("loss").number() == Approx(std::log(256)).margin(0.2));
  CHECK(lines[149].at("loss").number() < 1.8);  // the letters' entropy is 2.7
  CHECK(lines[149].at("val_loss").number() < 1.8);
  CHECK(lines[148].find("val_loss") == nullptr);
}

TEST_CASE("metrics.jsonl has the keys of the design, and files are where it says") {
  const SmallRun small;
  const auto trainer = train(small, "run", {"run.steps=3", "checkpoint.keep=1"});
  const auto lines = metrics(small, "run");
  REQUIRE(lines.size() == 3);
  std::vector<std::string> keys;
  for (const auto& [key, value] : lines[1].object()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"step", "tokens", "epoch", "loss", "grad_norm", "lr",
                                         "step_ms", "tokens_per_s", "sol", "peak_bytes",
                                         "comm_bytes", "exposed_comm_ms", "skipped"});
  CHECK(lines[1].at("step").integer() == 2);
  CHECK(lines[1].at("tokens").integer() == 2 * 4 * 16);
  CHECK(lines[1].at("epoch").integer() == 0);
  // Read back exactly: the text has the bits that the schedule gave.
  CHECK(lines[1].at("lr").number() == make_schedule(trainer->config()).at(1));
  CHECK(lines[1].at("sol").number() > 0);
  CHECK(lines[1].at("comm_bytes").at("all_gather").integer() == 0);
  CHECK(load_run_config(small.out("run") + "/config.toml") == trainer->config());
  CHECK(std::filesystem::exists(small.out("run") + "/checkpoints/step-00000003/COMPLETE"));
}

TEST_CASE("equal seeds give equal bits, with one thread and with two") {
  const SmallRun small;
  const std::vector<std::string> drop = {"run.steps=5", "model.dropout=0.1"};
  const auto a = train(small, "a", drop), b = train(small, "b", drop);
  auto one = drop;
  one.push_back("run.threads_per_rank=1");
  const auto c = train(small, "c", one);
  require_equal_bits(*a, *b);
  require_equal_bits(*a, *c);
  require_equal_metrics(small, "a", "b");
  require_equal_metrics(small, "a", "c");
  auto other = drop;
  other.push_back("run.seed=2");
  const auto d = train(small, "d", other);
  CHECK(bytes_of(d->slots()[0].value) != bytes_of(a->slots()[0].value));
}

TEST_CASE("evaluation changes nothing") {
  const SmallRun small;
  const auto a = train(small, "a", {"run.steps=6", "model.dropout=0.1"});
  const auto b = train(small, "b", {"run.steps=6", "model.dropout=0.1", "train.eval_every=1"});
  require_equal_bits(*a, *b);
  CHECK(b->evaluate() == b->evaluate());
}

TEST_CASE("stopped and resumed equals never stopped, bit for bit") {
  // 20 steps of 2 x 4 samples: with 1,500 bytes an epoch has 84 windows, so it ends in step 11.
  const SmallRun small(1500);
  for (const std::string compute : {"f32", "bf16"}) {
    for (const std::string optimizer : {"adamw", "sgd"}) {
      INFO(compute << ' ' << optimizer);
      const std::vector<std::string> more = {
          "run.steps=20",       "model.dropout=0.1",       "train.accumulate=2",
          "train.eval_every=5", "optim.name=" + optimizer, "precision.compute=" + compute,
          "optim.momentum=0.9", "data.val_fraction=0.1"};
      const std::string name = compute + optimizer;
      const auto whole = train(small, name + "whole", more);
      train(small, name + "parts", more, "", 10);
      CHECK(metrics(small, name + "parts").size() == 10);
      const auto parts = train(small, name + "parts", more, "latest");
      require_equal_bits(*whole, *parts);
      require_equal_metrics(small, name + "whole", name + "parts");
      CHECK(metrics(small, name + "parts").back().at("epoch").integer() >= 1);
      CHECK(parts->warnings().empty());
    }
  }
}

TEST_CASE("a run that was killed after its checkpoint goes on from there") {
  const SmallRun small;
  const std::vector<std::string> more = {"run.steps=9", "checkpoint.every=4"};
  const auto whole = train(small, "whole", more);
  auto stopped = train(small, "dies", more, "", 6);
  stopped.reset();
  std::filesystem::remove_all(small.out("dies") + "/checkpoints/step-00000006");
  const auto resumed = train(small, "dies", more, "latest");
  require_equal_bits(*whole, *resumed);
  require_equal_metrics(small, "whole", "dies");
}

TEST_CASE("recompute gives the same bits and holds less") {
  const SmallRun small;
  const std::vector<std::string> more = {"run.steps=4", "model.layers=4", "train.micro_batch=16"};
  auto block = more;
  block.push_back("train.recompute=block");
  const auto a = train(small, "a", more), b = train(small, "b", block);
  require_equal_bits(*a, *b);
  CHECK(b->peak().bytes < a->peak().bytes);
}

TEST_CASE("after the second step nothing is asked of the system") {
  const SmallRun small;
  Trainer trainer(small.config("run", {"train.accumulate=2"}), options_of(small));
  trainer.step();
  trainer.step();
  const auto allocations = trainer.runtime()->allocator().system_allocations();
  const auto heap = mallinfo2().uordblks;
  for (int i = 0; i < 50; ++i) trainer.step();
  CHECK(trainer.runtime()->allocator().system_allocations() == allocations);
  CHECK(mallinfo2().uordblks < heap + (1 << 20));
}

TEST_CASE("memory is counted by what it is for") {
  const SmallRun small;
  const auto trainer = train(small, "run", {"run.steps=2"});
  const CategoryBytes& peak = trainer->peak().by_category;
  const auto at = [&](Category c) { return peak[static_cast<std::size_t>(c)]; };
  const std::int64_t n = count_parameters(trainer->model()).total;
  CHECK(at(Category::params) >= 4 * n);
  CHECK(at(Category::params) < 4 * n + 64 * 40);
  CHECK(at(Category::optimizer) >= 8 * n);
  CHECK(at(Category::optimizer) < 8 * n + 64 * 80);
  CHECK(at(Category::activations) > 0);
  CHECK(trainer->peak().where.size() > 1);
}

TEST_CASE("accumulation weighs every token the same") {
  const SmallRun small;
  const auto whole = train(small, "whole", {"run.steps=3", "train.micro_batch=8"});
  const auto parts =
      train(small, "parts", {"run.steps=3", "train.micro_batch=2", "train.global_batch=8"});
  const auto a = metrics(small, "whole"), b = metrics(small, "parts");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(a[i].at("loss").number() == Approx(b[i].at("loss").number()).epsilon(1e-5));
    CHECK(a[i].at("grad_norm").number() == Approx(b[i].at("grad_norm").number()).epsilon(1e-4));
    CHECK(a[i].at("tokens").integer() == b[i].at("tokens").integer());
  }
}

TEST_CASE("a value that is not finite ends the run with the op that made it") {
  const SmallRun small;
  const auto fine = train(small, "run", {"run.steps=4", "checkpoint.every=2"}, "", 2);
  const std::string saved = small.out("run") + "/checkpoints/step-00000002";

  const TrainerOptions options = options_of(small);
  SECTION("in forward") {
    Trainer trainer(small.config("other"), options);
    trainer.step();
    for (const auto& p : parameters(trainer.model()))
      if (p.name == "blocks.1.ln2.weight") p.parameter.value().fill(INFINITY);
    const std::string message = error_of([&] { trainer.step(); }, ErrorKind::numeric);
    CHECK_THAT(message, Catch::Contains("step 2: the loss is not finite: micro-batch 0"));
    CHECK_THAT(message, Catch::Contains("blocks.1"));
    CHECK_THAT(message, Catch::Contains("output of layer_norm"));
  }
  SECTION("in run: nothing is saved over what is good") {
    Trainer trainer(small.config("third", {"optim.lr=1e5", "optim.name=sgd", "optim.warmup=0",
                                           "train.clip_norm=0", "checkpoint.every=1"}),
                    options);
    std::ostringstream shown;
    const std::string message = error_of([&] { trainer.run(shown); }, ErrorKind::numeric);
    CHECK_THAT(message, Catch::Contains("the first value that is not finite"));
    CHECK(!find_damage(find_checkpoint(small.out("third")).path));
  }
  CHECK(!find_damage(saved));
}

TEST_CASE("a folder in use or with content is refused") {
  const SmallRun small;
  Trainer first(small.config("run"), options_of(small));
  const auto open_again = [&] { Trainer again(small.config("run"), options_of(small)); };
  CHECK_THAT(error_of(open_again, ErrorKind::usage), Catch::Contains("another process"));
  CHECK_THAT(error_of([&] { train(small, "nothing", {}, "latest"); }, ErrorKind::usage),
             Catch::Contains("no folder"));
  train(small, "done", {"run.steps=1"});
  CHECK_THAT(error_of([&] { train(small, "done"); }, ErrorKind::usage),
             Catch::Contains("not empty") && Catch::Contains("--resume latest"));
  // Somebody else's folder is left as it is.
  write_file(small.out("foreign") + "/thesis.tex", "precious");
  CHECK_THAT(error_of([&] { train(small, "foreign"); }, ErrorKind::usage),
             Catch::Contains("not empty"));
  CHECK(!std::filesystem::exists(small.out("foreign") + "/.lock"));
  // A run that could not begin leaves nothing behind.
  CHECK_THAT(
      error_of([&] { train(small, "new", {"data.files=[\"/no/such/*.txt\"]"}); }, ErrorKind::usage),
      Catch::Contains("names no file"));
  CHECK(!std::filesystem::exists(small.out("new")));
}

TEST_CASE("a checkpoint of another model or vocabulary is refused") {
  const SmallRun small;
  train(small, "run", {"run.steps=2", "data.tokenizer=char"});
  CHECK_THAT(error_of(
                 [&] {
                   train(small, "run", {"run.steps=4", "data.tokenizer=char", "model.d_model=64"},
                         "latest");
                 },
                 ErrorKind::io),
             Catch::Contains("wte.weight") && Catch::Contains("64"));
  CHECK_THAT(error_of([&] { train(small, "run", {"run.steps=4"}, "latest"); }, ErrorKind::usage),
             Catch::Contains("tokenizer"));
  CHECK_THAT(error_of(
                 [&] {
                   train(small, "run", {"run.steps=1", "data.tokenizer=char"}, "latest");
                 },
                 ErrorKind::usage),
             Catch::Contains("more than run.steps"));
  // The text may have other characters by now: the run's own vocabulary stays.
  write_file(small.folder / "text.txt", test::small_text(20000) + "\xc3\xa9");
  CHECK_THAT(error_of(
                 [&] {
                   train(small, "run", {"run.steps=4", "data.tokenizer=char"}, "latest");
                 },
                 ErrorKind::usage),
             Catch::Contains("\xc3\xa9"));
}

TEST_CASE("a resumed run says what is otherwise than before") {
  const SmallRun small;
  train(small, "run", {"run.steps=4"}, "", 2);
  const auto resumed = train(small, "run", {"run.steps=4", "optim.lr=1e-3"}, "latest");
  REQUIRE(resumed->warnings().size() == 1);
  CHECK_THAT(resumed->warnings()[0], Catch::Contains("optim.lr = 0.001, was 0.003"));
  // Another run may begin from a checkpoint, in a folder of its own.
  const auto other = train(small, "other", {"run.steps=6"}, small.out("run"));
  CHECK(other->steps_done() == 6);
  CHECK(metrics(small, "other").front().at("step").integer() == 5);
}

}  // namespace sherd
