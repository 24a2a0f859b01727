#include "checkpoint/run_state.h"

#include <filesystem>
#include <fstream>

#include "optim/adamw.h"
#include "optim/sgd.h"
#include "tests/support/faulty_fs.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::FaultyFileSystem;
using test::TempFolder;
using Doubles = std::vector<double>;

/// A small run: an embedding in bf16, a bias, an optimizer that made a few steps.
struct Run {
  RuntimePtr runtime = Runtime::create();
  AdamW optimizer;
  std::vector<Slot> slots;
  RunState state;

  explicit Run(double fill = 0.3, int64_t vocab = 7) {
    add("wte.weight", {vocab, 3}, DType::bf16, fill);
    add("head.bias", {5}, DType::f32, -fill);
    for (Slot& slot : slots) optimizer.prepare(slot);
    state.tokenizer = R"({"kind":"byte"})";
    state.config = "[run]\nname = \"é\"\n";
    state.isa = "avx2";
    state.seed = 0xffffffffffffffff;
    state.loss_scale = LossScale::State{0.5, 17};
  }
  void add(const std::string& name, const Shape& shape, DType dtype, double fill) {
    Slot slot;
    slot.name = name;
    slot.value = Tensor::full(runtime, shape, fill, dtype);
    slot.grad = Tensor::full(runtime, shape, 0.01);
    slots.push_back(slot);
  }
  void train(int steps) {
    for (int i = 0; i < steps; ++i) optimizer.step(slots, 1e-2);
    state.step += steps;
    state.optimizer_steps = optimizer.steps();
    state.tokens += 64 * steps;
    state.samples += 4 * steps;
  }
  std::vector<NamedTensor> model() const {
    std::vector<NamedTensor> tensors;
    for (const Slot& slot : slots) tensors.push_back({slot.name, slot.value});
    return tensors;
  }
  std::string save(FileSystem& files, const std::string& folder, int keep = 3) const {
    return save_run_state(files, folder, state, model(), slots, keep);
  }
  void load(const std::string& path) {
    state = load_run_state(path);
    load_model(path, model());
    load_optimizer(path, optimizer, slots);
    optimizer.set_steps(state.optimizer_steps);
  }
  /// Every number of the run.
  Doubles numbers() const {
    Doubles all;
    const auto add = [&](const Tensor& t) {
      for (const double x : t.to_vector<double>()) all.push_back(x);
    };
    for (const Slot& slot : slots) {
      add(slot.value);
      for (const auto& s : slot.state) add(s.tensor);
    }
    return all;
  }
};

std::vector<std::string> names_in(const std::string& folder) {
  return PosixFileSystem().list(folder);
}

void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST_CASE("a resumed run equals one that never stopped") {
  const TempFolder folder;
  PosixFileSystem files;
  Run run;
  run.train(3);
  const std::string path = run.save(files, folder / "checkpoints");
  CHECK(path == folder / "checkpoints/step-00000003");
  run.train(4);

  Run resumed(99);
  resumed.load(path);
  CHECK(resumed.state.tokens == 3 * 64);
  CHECK(resumed.optimizer.steps() == 3);
  resumed.train(4);
  CHECK(resumed.numbers() == run.numbers());
  CHECK(resumed.state == run.state);
}

TEST_CASE("the newest complete checkpoint is found; broken ones are skipped aloud") {
  const TempFolder folder;
  PosixFileSystem files;
  CHECK(!latest_checkpoint(files, folder / "none").path);
  Run run;
  std::vector<std::string> paths;
  for (int i = 0; i < 5; ++i) {
    run.train(1);
    paths.push_back(run.save(files, folder.path(), 0));
  }
  CHECK(latest_checkpoint(files, folder.path()).path == paths[4]);
  CHECK(latest_checkpoint(files, folder.path()).skipped.empty());

  std::filesystem::remove(paths[4] + "/COMPLETE");
  std::filesystem::resize_file(paths[3] + "/optimizer.safetensors", 100);
  put(paths[2] + "/state.json", "{}");
  std::filesystem::create_directory(folder / "step-x");
  std::filesystem::create_directory(folder / ".unfinished-step-00000009");
  const LatestCheckpoint latest = latest_checkpoint(files, folder.path());
  CHECK(latest.path == paths[1]);
  REQUIRE(latest.skipped.size() == 3);
  CHECK_THAT(latest.skipped[0], Contains(paths[4]) && Contains("COMPLETE"));
  CHECK_THAT(latest.skipped[1], Contains(paths[3]) && Contains("100 bytes"));
  CHECK_THAT(latest.skipped[2], Contains(paths[2]) && Contains("state.json"));
  for (const size_t i : {2, 3, 4})
    CHECK_THROWS_WITH(load_run_state(paths[i]), Contains("not a complete") && Contains(paths[i]));
}

TEST_CASE("retention keeps the last ones, and counts complete ones only") {
  const TempFolder folder;
  PosixFileSystem files;
  Run run;
  for (int i = 0; i < 4; ++i) {
    run.train(1);
    run.save(files, folder.path(), 2);
  }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000003", "step-00000004"});
  std::filesystem::remove(folder / "step-00000004/COMPLETE");
  run.train(1);
  run.save(files, folder.path(), 1);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000004", "step-00000005"});
}

TEST_CASE("a run that went back to an earlier step keeps what it saved then") {
  const TempFolder folder;
  PosixFileSystem files;
  Run run;
  for (int i = 0; i < 3; ++i) {
    run.train(1);
    run.save(files, folder.path());
  }
  Run back;
  back.train(2);
  back.save(files, folder.path(), 1);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000002"});
  back.train(2);
  back.save(files, folder.path(), 2);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000002", "step-00000004"});
}

TEST_CASE("a step saved again takes the place of the first") {
  const TempFolder folder;
  PosixFileSystem files;
  Run run(0.3), other(0.7);
  run.train(2);
  other.train(2);
  run.save(files, folder.path());
  const std::string path = other.save(files, folder.path());
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000002"});
  Run back;
  back.load(path);
  CHECK(back.numbers() == other.numbers());
}

TEST_CASE("a full disk is told before anything is written") {
  const TempFolder folder;
  FaultyFileSystem files;
  Run run;
  run.train(1);
  run.save(files, folder.path(), 1);
  files.promised = 1 << 20;
  run.train(1);
  CHECK_THROWS_WITH(run.save(files, folder.path(), 1),
                    Contains("too full") && Contains(folder / "step-00000002") &&
                        Contains("free are 1.0 MiB") && Contains("keep"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("a disk that fills while writing leaves the old checkpoint and nothing else") {
  const TempFolder folder;
  FaultyFileSystem files;
  Run run;
  run.train(1);
  const std::string path = run.save(files, folder.path(), 1);
  const Doubles saved = run.numbers();
  run.train(1);
  int failures = 0;
  for (uint64_t room = 0;; room += 97, ++failures) {
    files.room = room;
    try {
      run.save(files, folder.path(), 1);
      break;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::io);
      CHECK_THAT(error.what(), Contains("No space left") && Contains(folder.path()));
    }
    CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
  }
  CHECK(failures > 10);
  CHECK(latest_checkpoint(files, folder.path()).path == folder / "step-00000002");
}

TEST_CASE("killed at any operation, a run resumes from the old state or the new one") {
  Run old(0.3), next(0.3);
  old.train(1);
  next.train(2);
  int64_t operations = 0;
  {
    const TempFolder folder;
    FaultyFileSystem files;
    old.save(files, folder.path(), 1);
    files.operations = 0;
    next.save(files, folder.path(), 1);
    operations = files.operations;
  }
  CHECK(operations > 15);
  int old_found = 0;
  for (int64_t at = 0; at < operations; ++at) {
    INFO("killed at operation " << at);
    const TempFolder folder;
    FaultyFileSystem files;
    old.save(files, folder.path(), 1);
    files.operations_left = at;
    CHECK_THROWS_WITH(next.save(files, folder.path(), 1), Contains("killed"));

    FaultyFileSystem after;
    const auto latest = latest_checkpoint(after, folder.path());
    REQUIRE(latest.path);
    Run resumed;
    resumed.load(*latest.path);
    const Run& expected = resumed.state.step == 1 ? old : next;
    CHECK(resumed.numbers() == expected.numbers());
    old_found += resumed.state.step == 1;
    // The next save clears what the killed one left.
    next.save(after, folder.path(), 1);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000002"});
  }
  CHECK(old_found > 10);
  CHECK(old_found < operations);
}

TEST_CASE("what cannot be written is named") {
  const TempFolder folder;
  PosixFileSystem files;
  put(folder / "file", "x");
  CHECK_THROWS_WITH(Run().save(files, folder / "file/checkpoints"), Contains(folder / "file"));
}

TEST_CASE("a model of another vocabulary is refused with both shapes and the way out") {
  const TempFolder folder;
  PosixFileSystem files;
  const std::string path = Run().save(files, folder.path());
  Run larger(0.3, 9);
  CHECK_THROWS_WITH(load_model(path, larger.model()),
                    Contains(path) && Contains("wte.weight") && Contains("[7, 3]") &&
                        Contains("[9, 3]") && Contains("tokenizer") && Contains("--out"));
  Run more;
  more.add("extra.weight", {2}, DType::f32, 0);
  CHECK_THROWS_WITH(load_model(path, more.model()), Contains("extra.weight") && Contains("--out"));
  Run fewer;
  fewer.slots.pop_back();
  CHECK_THROWS_WITH(load_model(path, fewer.model()), Contains("head.bias"));
  auto other_dtype = Run().model();
  other_dtype[0].tensor = other_dtype[0].tensor.to(DType::f32);
  CHECK_THROWS_WITH(load_model(path, other_dtype), Contains("bf16") && Contains("f32"));
  const auto before = more.numbers();
  CHECK_THROWS(load_model(path, more.model()));
  CHECK(more.numbers() == before);
}

TEST_CASE("another optimizer's state is refused") {
  const TempFolder folder;
  PosixFileSystem files;
  const std::string path = Run().save(files, folder.path());
  Run run;
  for (Slot& slot : run.slots) slot.state.clear();
  CHECK_THROWS_WITH(load_optimizer(path, Sgd({.momentum = 0.9}), run.slots),
                    Contains("momentum") && Contains("[optim]") && Contains(path));
  for (Slot& slot : run.slots) slot.state.clear();
  CHECK_THROWS_WITH(load_optimizer(path, Sgd(), run.slots), Contains("wte.weight.m"));
}

TEST_CASE("another tokenizer is refused, another instruction set is said") {
  RunState saved = Run().state, now = saved;
  CHECK(check_resume("P", saved, now).empty());
  now.isa = "avx512";
  CHECK_THAT(check_resume("P", saved, now), Contains("avx2") && Contains("avx512"));
  now.tokenizer = "{}";
  CHECK_THROWS_WITH(check_resume("P", saved, now), Contains("P") && Contains("tokenizer"));
}

TEST_CASE("state.json reads back; anything else is refused") {
  RunState state = Run().state;
  state.step = 123456789012;
  const std::string text = run_state_text(state);
  CHECK(parse_run_state(text) == state);
  for (size_t n = 0; n + 2 < text.size(); n += 3)
    CHECK_THROWS_AS(parse_run_state(text.substr(0, n)), Error);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    out.replace(out.find(from), from.size(), to);
    return out;
  };
  CHECK_THROWS_WITH(parse_run_state(changed("\"format_version\": 1", "\"format_version\": 2")),
                    Contains("newer"));
  CHECK_THROWS_WITH(parse_run_state(changed("123456789012", "-1")), Contains("negative"));
  CHECK_THROWS_WITH(parse_run_state(changed("123456789012", "\"1\"")), Contains("a string"));
  CHECK_THROWS_WITH(parse_run_state(changed("\"tokens\"", "\"token\"")), Contains("tokens"));
  CHECK_THROWS_WITH(parse_run_state("[]"), Contains("an object"));
  CHECK(checkpoint_name(100) == "step-00000100");
  CHECK(checkpoint_name(1234567890) == "step-1234567890");
}

}  // namespace
}  // namespace sherd
