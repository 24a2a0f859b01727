// Bytes that travel in a step, and bytes that stay between steps: measured in the transport and by
// the allocator, they are what the formulas say, byte for byte.
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using test::SmallTraining;
using test::Trace;
using test::train_sharded;

/// n: all elements, and those that are kept from forward to backward.
struct Sizes {
  int64_t all = 0, kept = 0;
};

struct Expected {
  int64_t all_gather = 0, reduce_scatter = 0, all_reduce = 0;
};

/// The sum over ranks of a step: N times what the design's formula says of one.
Expected formula(const std::string& strategy, const ShardPlan& plan, const Sizes& n, int N, int A,
                 int64_t c, int64_t r) {
  const int64_t s = plan.sync == Sync::every ? A : 1;
  if (strategy == "ddp") return {.all_reduce = 2 * (N - 1) * n.all * r * s};
  if (strategy == "zero1" || strategy == "zero2")
    return {.all_gather = (N - 1) * n.all * c, .reduce_scatter = (N - 1) * n.all * r * s};
  const int64_t R = plan.replicas, S = N / R;
  Expected e{.reduce_scatter = R * (S - 1) * n.all * r * s,
             .all_reduce = 2 * (R - 1) * n.all * r * s};
  // Forward gathers all; backward what was not kept.
  const int64_t again = n.all - n.kept;
  const int64_t k = plan.reshard_after_forward;
  const int64_t backward = k == 0 ? 0 : k == 1 ? R * (S - 1) * again : N / k * (k - 1) * again;
  e.all_gather = (R * (S - 1) * n.all + backward) * c * A;
  return e;
}

Sizes sizes_of(const SmallTraining& t) {
  Tape tape(Runtime::create({}));
  Gpt2 model(tape, test::small_gpt(t));
  Sizes n;
  for (const auto& p : parameters(model)) {
    n.all += p.parameter.value().numel();
    if (unit_by_block(p).empty()) n.kept += p.parameter.value().numel();
  }
  return n;
}

TEST_CASE("bytes that travel are the formula's, in every strategy") {
  for (const int N : {1, 2, 3, 4, 8})
    for (const int A : {1, 3})
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const DType wire : {DType::f32, DType::bf16})
          for (const bool default_sync : {true, false}) {
            // Beside the defaults, one number of ranks is enough.
            if ((wire == DType::bf16 || !default_sync) && (N != 3 || A == 1)) continue;
            SmallTraining t{.ranks = N, .accumulate = A, .steps = A == 1 ? 2 : 1, .batch = 1};
            t.dtype = dtype;
            const Sizes n = sizes_of(t);
            std::vector<std::string> strategies = {"ddp",  "zero1",     "zero2",
                                                   "fsdp", "fsdp-keep", "hsdp"};
            if (N > 2 && N % 2 == 0) strategies.emplace_back("fsdp[reshard_after_forward=2]");
            if (N == 8) strategies.emplace_back("hsdp[replicate=4]");
            for (const auto& strategy : strategies) {
              INFO(strategy << " on " << N << ", " << A << " micro-batches, "
                            << (dtype == DType::f32 ? "f32" : "bf16") << ", reduced in "
                            << (wire == DType::f32 ? "f32" : "bf16")
                            << (default_sync ? "" : ", the other sync"));
              ShardPlan plan = parse_strategy(strategy, N);
              plan.reduce = wire;
              if (!default_sync) plan.sync = plan.sync == Sync::every ? Sync::last : Sync::every;
              const Trace run = train_sharded(t, plan);
              const Expected e =
                  formula(strategy, plan, n, N, A, static_cast<int64_t>(size_of(dtype)),
                          static_cast<int64_t>(size_of(wire)));
              const auto measured = [&](Traffic traffic) {
                return run.bytes[static_cast<size_t>(traffic)];
              };
              CHECK(measured(Traffic::all_gather) == t.steps * e.all_gather);
              CHECK(measured(Traffic::reduce_scatter) == t.steps * e.reduce_scatter);
              CHECK(measured(Traffic::all_reduce) == t.steps * e.all_reduce);
              CHECK(measured(Traffic::padding) == 0);
              CHECK(measured(Traffic::eval) == 0);
            }
          }
}

TEST_CASE("parameters that stay whole travel as zero2's") {
  SmallTraining t{.ranks = 3, .accumulate = 2, .steps = 2};
  constexpr int64_t kBelow = 1100;
  Tape tape(Runtime::create({}));
  Gpt2 model(tape, test::small_gpt(t));
  int64_t resident = 0, blocks = 0, root = 0;
  for (const auto& p : parameters(model)) {
    const int64_t numel = p.parameter.value().numel();
    (numel * 4 <= kBelow ? resident : unit_by_block(p).empty() ? root : blocks) += numel;
  }
  REQUIRE(resident > 0);
  REQUIRE(blocks > 0);
  const Trace run = train_sharded(t, parse_strategy("zero3[resident_below=1100]", 3));
  CHECK(run.bytes[static_cast<size_t>(Traffic::all_gather)] ==
        t.steps * 2 * 4 * (resident + 2 * (root + 2 * blocks)));
  CHECK(run.bytes[static_cast<size_t>(Traffic::reduce_scatter)] ==
        t.steps * 2 * 4 * 2 * (resident + root + blocks));
}

TEST_CASE("the root is gathered once, with or without a tied table") {
  SmallTraining t{.ranks = 3, .accumulate = 2, .steps = 2};
  for (const bool tied : {true, false}) {
    t.tied = tied;
    const Sizes n = sizes_of(t);
    const Trace run = train_sharded(t, parse_strategy("fsdp", 3));
    CHECK(run.bytes[static_cast<size_t>(Traffic::all_gather)] ==
          t.steps * t.accumulate * 2 * 4 * (2 * n.all - n.kept));
    for (const auto& counters : run.counters) CHECK(counters.gathers == t.accumulate * (1 + 2 * 3));
  }
}

TEST_CASE("frozen parameters are gathered, and not reduced") {
  SmallTraining t{.ranks = 4, .steps = 2, .freeze = "blocks.*.weight"};
  Tape tape(Runtime::create({}));
  Gpt2 model(tape, test::small_gpt(t));
  freeze(model, t.freeze);
  const auto [n, trained] = count_parameters(model);
  REQUIRE(trained < n);
  const auto bytes = [&](const char* strategy, Traffic traffic) {
    return train_sharded(t, parse_strategy(strategy, 4)).bytes[static_cast<size_t>(traffic)];
  };
  CHECK(bytes("ddp", Traffic::all_reduce) == t.steps * 2 * 3 * trained * 4);
  CHECK(bytes("zero1", Traffic::reduce_scatter) == t.steps * 3 * trained * 4);
  CHECK(bytes("zero1", Traffic::all_gather) == t.steps * 3 * trained * 4);
  CHECK(bytes("fsdp", Traffic::reduce_scatter) == t.steps * 3 * trained * 4);
  CHECK(bytes("fsdp", Traffic::all_gather) == t.steps * 3 * 4 * (2 * n - sizes_of(t).kept));
}

TEST_CASE("bytes that stay between steps are the formula's, in every strategy") {
  for (const int N : {1, 2, 3, 4, 8})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SmallTraining t{.ranks = N, .steps = 2};
      t.dtype = dtype;
      Tape tape(Runtime::create({}));
      Gpt2 model(tape, test::small_gpt(t));
      for (const std::string strategy : {"ddp", "zero1", "zero2", "fsdp", "fsdp-keep", "hsdp"}) {
        INFO(strategy << " on " << N << (dtype == DType::f32 ? " f32" : " bf16"));
        const ShardPlan plan = parse_strategy(strategy, N);
        const int64_t value = static_cast<int64_t>(size_of(dtype));
        // m, v, and a master of values in half precision.
        const int64_t states = dtype == DType::f32 ? 2 : 3;
        int64_t params = 0, optimizer = 0;
        for (const auto& p : parameters(model)) {
          const Shape& shape = p.parameter.shape();
          // Rank 0 has the most rows.
          const auto part_over = [&](int64_t ranks) {
            return (shape[0] + ranks - 1) / ranks * (shape.numel() / shape[0]);
          };
          const bool cuts_values = plan.row.parameters == Placement::shard;
          const bool cuts_states = plan.row.optimizer == Placement::shard;
          const int64_t S = N / plan.replicas;
          const auto held = [](int64_t elements, int64_t bytes) {
            return Allocator::rounded(static_cast<size_t>(elements * bytes));
          };
          params += held(part_over(cuts_values ? S : 1), value);
          optimizer += states * held(part_over(cuts_states ? S : 1), 4);
        }
        const Trace run = train_sharded(t, plan);
        CHECK(run.live[static_cast<size_t>(Category::params)] == params);
        CHECK(run.live[static_cast<size_t>(Category::optimizer)] == optimizer);
        CHECK(run.live[static_cast<size_t>(Category::grads)] == 0);
        CHECK(run.live[static_cast<size_t>(Category::gathered)] == 0);
        CHECK(run.resident == params + optimizer);
      }
    }
}

}  // namespace
}  // namespace sherd
