// The trainer on thread ranks.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/progress.h"
#include "tests/train/failing_lines.h"
#include "tests/train/small_trainer.h"

namespace sherd {
namespace {

using test::error_of;
using test::metrics;
using test::options_of;
using test::require_equal_losses;
using test::SmallRun;
using test::train_ranks;

TEST_CASE("strategies train alike on ranks, and a resumed run goes on as any of them") {
  const SmallRun small;
  const auto with = [](std::vector<std::string> more) {
    for (const char* set : {"run.steps=8", "run.threads_per_rank=1", "dist.sync=every",
                            "train.accumulate=2", "train.eval_every=4", "model.dropout=0.1"})
      more.emplace_back(set);
    return more;
  };
  train_ranks(small, "ddp", with({"dist.ranks=2"}));
  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep", "hsdp"}) {
    INFO(strategy);
    train_ranks(small, strategy, with({"dist.ranks=2", std::string("dist.strategy=") + strategy}));
    require_equal_losses(small, strategy, "ddp");
    const auto lines = metrics(small, strategy);
    CHECK(lines[7].at("val_loss").number() == metrics(small, "ddp")[7].at("val_loss").number());
  }
  train_ranks(small, "stopped", with({"dist.ranks=2", "dist.strategy=fsdp"}), "", 3);
  REQUIRE(metrics(small, "stopped").size() == 3);
  train_ranks(small, "stopped", with({"dist.ranks=2", "dist.strategy=zero1"}), "latest");
  require_equal_losses(small, "stopped", "ddp");
  // Two ranks with two micro-batches are one rank with four, in the order of the tree.
  train_ranks(small, "tree2",
              with({"dist.ranks=2", "train.accumulate_order=tree", "dist.strategy=fsdp"}));
  auto alone = with({"train.accumulate_order=tree"});
  alone.emplace_back("train.accumulate=4");
  train_ranks(small, "tree1", alone);
  require_equal_losses(small, "tree2", "tree1");
}

TEST_CASE("bf16 moments train alike in all strategies, and near to f32 ones") {
  const SmallRun small;
  const auto with = [](std::vector<std::string> more) {
    for (const char* set : {"run.steps=10", "run.threads_per_rank=1", "dist.ranks=3",
                            "dist.sync=every", "precision.moments=bf16"})
      more.emplace_back(set);
    return more;
  };
  train_ranks(small, "ddp", with({}));
  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp"}) {
    INFO(strategy);
    train_ranks(small, strategy, with({std::string("dist.strategy=") + strategy}));
    require_equal_losses(small, strategy, "ddp");
  }
  train_ranks(small, "stopped", with({"dist.strategy=fsdp"}), "", 4);
  train_ranks(small, "stopped", with({"dist.strategy=zero2"}), "latest");
  require_equal_losses(small, "stopped", "ddp");
  train_ranks(small, "f32", {"run.steps=10", "run.threads_per_rank=1", "dist.ranks=3"});
  const auto half = metrics(small, "ddp"), full = metrics(small, "f32");
  for (std::size_t i = 0; i < full.size(); ++i)
    CHECK(half[i].at("loss").number() == Approx(full[i].at("loss").number()).epsilon(1e-2));
}

TEST_CASE("an encoder learns hidden tokens, alike in all strategies and after a stop") {
  const SmallRun small;
  const auto with = [](std::vector<std::string> more) {
    for (const char* set : {"model.arch=encoder", "run.steps=10", "run.threads_per_rank=1",
                            "dist.sync=every", "train.eval_every=5", "optim.lr=1e-2"})
      more.emplace_back(set);
    return more;
  };
  train_ranks(small, "ddp", with({"dist.ranks=2"}));
  train_ranks(small, "fsdp", with({"dist.ranks=2", "dist.strategy=fsdp"}));
  require_equal_losses(small, "fsdp", "ddp");
  train_ranks(small, "stopped", with({"dist.ranks=2", "dist.strategy=zero2"}), "", 4);
  train_ranks(small, "stopped", with({"dist.ranks=2", "dist.strategy=zero2"}), "latest");
  require_equal_losses(small, "stopped", "ddp");
  const auto lines = metrics(small, "ddp");
  CHECK(lines[9].at("val_loss").number() < lines[4].at("val_loss").number());
  // About 15 of 100 tokens are predicted.
  const auto tokens = lines[9].at("tokens").integer();
  CHECK(tokens > 10 * 2 * 4 * 16 / 10);
  CHECK(tokens < 10 * 2 * 4 * 16 / 4);
}

TEST_CASE("f16 trains alike in all strategies, and as f32 does") {
  const SmallRun small;
  const auto run = [&](const std::string& name, std::vector<std::string> sets) {
    for (const char* set : {"dist.ranks=2", "run.steps=12", "run.threads_per_rank=1",
                            "dist.sync=every", "train.accumulate=2"})
      sets.emplace_back(set);
    train_ranks(small, name, sets);
  };
  run("f32", {});
  // What travels, what is computed, and both.
  const std::vector<std::vector<std::string>> kinds = {
      {"precision.reduce=f16"},
      {"precision.compute=f16", "precision.loss_scale=64"},
      {"precision.compute=f16", "precision.reduce=f16", "precision.loss_scale=64"}};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const std::string ddp = "ddp" + std::to_string(k);
    run(ddp, kinds[k]);
    for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep"}) {
      const std::string name = strategy + std::to_string(k);
      INFO(name);
      auto sets = kinds[k];
      sets.push_back(std::string("dist.strategy=") + strategy);
      run(name, sets);
      require_equal_losses(small, name, ddp);
    }
    const auto half = metrics(small, ddp), full = metrics(small, "f32");
    for (std::size_t i = 0; i < full.size(); ++i) {
      INFO("step " << i + 1 << " of " << ddp);
      CHECK(half[i].at("loss").number() == Approx(full[i].at("loss").number()).epsilon(2e-3));
      CHECK(half[i].at("grad_norm").number() ==
            Approx(full[i].at("grad_norm").number()).epsilon(2e-2));
    }
  }
  // A power of two more or less moves no bit of f32.
  run("scaled", {"precision.loss_scale=1024"});
  require_equal_losses(small, "scaled", "f32");
}

TEST_CASE("gradients that overflow in f16 skip the step on all ranks, and halve the loss scale") {
  const SmallRun small;
  const auto with = [](std::vector<std::string> more) {
    for (const char* set :
         {"run.steps=16", "run.threads_per_rank=1", "dist.ranks=2", "dist.sync=every",
          "train.accumulate=2", "precision.compute=f16", "precision.loss_scale_start=8388608",
          "precision.loss_scale_window=3", "optim.warmup=8"})
      more.emplace_back(set);
    return more;
  };
  train_ranks(small, "ddp", with({}));
  const auto lines = metrics(small, "ddp");
  double scale = 0x1p23;
  int clean = 0, skipped = 0, taken = 0;
  for (const Json& line : lines) {
    CHECK(line.at("loss_scale").number() == scale);
    if (line.at("skipped").boolean()) {
      ++skipped;
      scale /= 2;
      clean = 0;
      CHECK(line.at("grad_norm") == Json());
    } else {
      if (++clean == 3) {
        scale *= 2;
        clean = 0;
      }
      ++taken;
      // Warm-up ticks with the steps that are taken alone.
      if (taken <= 8) CHECK(line.at("lr").number() == Approx(3e-3 * taken / 9).epsilon(1e-12));
    }
  }
  CHECK(skipped >= 3);
  CHECK(taken >= 5);

  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep"}) {
    INFO(strategy);
    train_ranks(small, strategy, with({std::string("dist.strategy=") + strategy}));
    require_equal_losses(small, strategy, "ddp");
  }
  // A checkpoint has the scale and how long it has been clean.
  const auto skipping = static_cast<std::int64_t>(
      std::find_if(lines.begin(), lines.end(),
                   [](const Json& line) { return !line.at("skipped").boolean(); }) -
      lines.begin());
  train_ranks(small, "stopped", with({"dist.strategy=fsdp"}), "", skipping + 2);
  train_ranks(small, "stopped", with({"dist.strategy=zero2"}), "latest");
  require_equal_losses(small, "stopped", "ddp");
}

TEST_CASE("an overflow at the smallest loss scale ends the run with the op that made it") {
  const SmallRun small;
  const std::string error = error_of(
      [&] {
        train_ranks(
            small, "run",
            {"dist.ranks=2", "run.steps=4", "run.threads_per_rank=1", "precision.compute=f16",
             "precision.loss_scale_start=4294967296", "precision.loss_scale_floor=2147483648"});
      },
      ErrorKind::numeric);
  CHECK_THAT(error, Catch::Contains("step 2: a gradient is not finite"));
}

TEST_CASE("case 19: f16 with a loss scale trains where most ranks have no row of a parameter") {
  const SmallRun small;
  // Five characters and a context of four: the head and the positions have fewer rows than ranks.
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "abcd\n"[(i * i + i / 7) % 5];
  write_file(small.folder / "five.txt", text);
  const auto run = [&](const std::string& name, const std::string& strategy, int ranks) {
    train_ranks(small, name,
                {"data.files=[\"" + (small.folder / "five.txt") + "\"]", "data.tokenizer=char",
                 "dist.ranks=" + std::to_string(ranks), "dist.strategy=" + strategy,
                 "dist.sync=every", "run.steps=12", "run.threads_per_rank=1", "model.context=4",
                 "train.micro_batch=2", "model.tied=false", "precision.compute=f16",
                 "precision.reduce=f16", "precision.loss_scale_start=8388608"});
  };
  run("ddp", "ddp", 8);
  const auto lines = metrics(small, "ddp");
  CHECK(lines.front().at("skipped").boolean());
  CHECK_FALSE(lines.back().at("skipped").boolean());
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    INFO(strategy);
    run(strategy, strategy, 8);
    require_equal_losses(small, strategy, "ddp");
  }
}

TEST_CASE("a rank's error ends all ranks with it") {
  const SmallRun small;
  train_ranks(small, "run", {"dist.ranks=2", "run.steps=1"});
  const std::string error = error_of(
      [&] {
        train_ranks(small, "run", {"dist.ranks=2", "run.steps=1"});
      },
      ErrorKind::usage);
  CHECK_THAT(error, Catch::Contains("rank 0") && Catch::Contains("not empty"));
}

/// Calls `body(trainer)` on each rank of a run that has not begun.
template <class Body>
void on_trainers(const RunConfig& config, const SmallRun& small, const Body& body) {
  run_thread_ranks(rank_options(config), [&](Rank& rank) {
    Trainer trainer(config, options_of(small), rank);
    body(trainer);
  });
}

/// Data of so many samples of 16 tokens, and one more token.
void write_samples(const SmallRun& small, const std::string& name, int samples) {
  write_file(small.folder / name, test::small_text(static_cast<std::size_t>(samples) * 16 + 1));
}

TEST_CASE("case 28: ranks that have different numbers of validation batches end together") {
  const SmallRun small;
  write_samples(small, "val.txt", 11);
  const std::string val = "data.val_files=[\"" + (small.folder / "val.txt") + "\"]";
  const auto loss_on = [&](int ranks, int batch, const std::string& strategy) {
    const std::string name = std::to_string(ranks) + strategy + std::to_string(batch);
    double loss = 0;
    const RunConfig config =
        small.config(name, {val, "dist.ranks=" + std::to_string(ranks), "dist.strategy=" + strategy,
                            "train.micro_batch=" + std::to_string(batch), "train.eval_batches=1000",
                            "run.threads_per_rank=1"});
    on_trainers(config, small, [&](Trainer& trainer) {
      const double mine = trainer.evaluate();
      if (trainer.rank() == 0) loss = mine;
      check(mine == exchange_one(trainer.sharded().mesh().world(), mine, {"loss"})[0],
            "ranks have different losses");
    });
    return loss;
  };
  // Each sample once: all of them in one batch.
  const double expected = loss_on(1, 11, "ddp");
  for (const int ranks : {2, 3, 4, 8})
    for (const char* strategy : {"ddp", "fsdp"}) {
      INFO(ranks << ' ' << strategy);
      CHECK(loss_on(ranks, 2, strategy) == Approx(expected).epsilon(1e-6));
    }
}

TEST_CASE("case 29: a step that reaches the end of the data goes on in the next epoch") {
  const SmallRun small;
  write_samples(small, "text.txt", 5);
  write_samples(small, "val.txt", 2);
  const RunConfig config = small.config(
      "run", {"data.val_files=[\"" + (small.folder / "val.txt") + "\"]", "dist.ranks=2",
              "dist.strategy=fsdp", "train.micro_batch=2", "run.threads_per_rank=1"});
  CHECK(config.samples_per_step() == 4);
  std::mutex mutex;
  std::map<std::vector<std::int32_t>, int> seen;
  std::vector<std::int64_t> epochs;
  on_trainers(config, small, [&](Trainer& trainer) {
    for (int step = 0; step < 5; ++step) {
      const auto rows = trainer.micro_batch(0);
      const StepMetrics m = trainer.step();
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < rows.size(); i += 17)
        ++seen[{rows.begin() + static_cast<std::ptrdiff_t>(i),
                rows.begin() + static_cast<std::ptrdiff_t>(i + 17)}];
      CHECK(m.tokens == (step + 1) * 4 * 16);
      if (trainer.rank() == 0) epochs.push_back(m.epoch);
    }
  });
  // 20 samples: four epochs, each with every sample once.
  CHECK(seen.size() == 5);
  for (const auto& [sample, times] : seen) CHECK(times == 4);
  CHECK(epochs == std::vector<std::int64_t>{0, 0, 1, 2, 3});
}

TEST_CASE("case 30: an error on one rank, wherever it is, ends all of them with its cause") {
  const SmallRun small;
  for (const char* place : test::kPlaces) {
    INFO(place);
    const RunConfig config = small.config(
        place, {"dist.ranks=3", "dist.strategy=fsdp", "run.steps=2", "run.threads_per_rank=1"});
    const double begin_s = steady_seconds();
    const std::string error = error_of(
        [&] {
          run_thread_ranks(rank_options(config), [&](Rank& rank) {
            TrainerOptions options = options_of(small);
            options.narrate = 2;
            Trainer trainer(config, options, rank);
            test::FailingLines out(place, [&] {
              if (rank.rank == 1) fail("the disk is on fire");
            });
            trainer.run(out);
          });
        },
        ErrorKind::usage);
    CHECK_THAT(error, Catch::StartsWith("rank 1: ") && Catch::Contains("the disk is on fire"));
    CHECK(steady_seconds() - begin_s < 5);
  }
}

}  // namespace
}  // namespace sherd
