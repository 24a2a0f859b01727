// Bytes a rank of a byte-level GPT of 12 layers: states as the formulas of docs/sharding.md say,
// the peak no more than 3 % above what it is made of, and the order of the strategies. Prints the
// table.
#include <cstdio>

#include "tests/dist/toy.h"

namespace sherd {
namespace {

using test::Job;
using test::MicroBatch;
using test::SmallTraining;
using test::Trace;
using test::train_sharded;

constexpr int64_t kLayers = 12, kChannels = 64, kContext = 32, kVocab = 256;
constexpr double kAbove = 1.03;

Gpt2Config byte_gpt(DType dtype) {
  return {.layers = kLayers,
          .heads = 2,
          .channels = kChannels,
          .vocab = kVocab,
          .context = kContext,
          .dtype = dtype};
}

Job<Gpt2> byte_job(DType dtype) {
  return {.make = [dtype](Tape& tape) { return Gpt2(tape, byte_gpt(dtype)); },
          .loss =
              [](const Gpt2& model, const MicroBatch& b) {
                std::vector<int32_t> tokens;
                for (int64_t i = 0; i <= kContext; ++i)
                  tokens.push_back(static_cast<int32_t>((i * 37 + b.step * 11 + b.g * 5) % kVocab));
                const auto& runtime = model.wte.weight.runtime();
                const Tensor all = Tensor::from<int32_t>(runtime, {1, kContext + 1}, tokens);
                return model.loss(all.slice(1, 0, kContext).contiguous(),
                                  all.slice(1, 1, kContext + 1).contiguous(), {.training = true});
              }};
}

/// Elements: of the model, of a block, of what is in no block.
struct Sizes {
  double model = 0, block = 0, root = 0;
  int64_t tensors = 0;
};

Sizes sizes_of(DType dtype) {
  Tape tape(Runtime::create({}));
  Gpt2 model(tape, byte_gpt(dtype));
  name_parameters(model);
  Sizes sizes;
  for (const auto& p : parameters(model)) {
    const auto n = static_cast<double>(p.parameter.value().numel());
    sizes.model += n;
    sizes.root += unit_by_block(p).empty() ? n : 0;
    ++sizes.tensors;
  }
  sizes.block = (sizes.model - sizes.root) / kLayers;
  return sizes;
}

/// The formulas of docs/sharding.md: bytes an element that stay whole, and that are in parts.
struct Formula {
  const char* strategy;
  double whole, parts;            // f32
  double half_whole, half_parts;  // bf16
};
constexpr Formula kFormulas[] = {
    {"ddp", 16, 0, 18, 0},
    {"zero1", 8, 8, 6, 12},
    {"zero2", 4, 12, 2, 16},
    {"fsdp", 0, 16, 0, 18},
    {"hsdp[replicate=2]", 0, 16, 0, 18},
};

int64_t of(const CategoryBytes& bytes, Category category) {
  return bytes[static_cast<size_t>(category)];
}

int64_t states_in(const CategoryBytes& bytes) {
  return of(bytes, Category::params) + of(bytes, Category::grads) + of(bytes, Category::optimizer);
}

/// Each tensor takes a multiple of 64 bytes, and each rank up to one row more than its share: of
/// values, gradients, moments and masters.
double rounding(const Sizes& sizes) {
  return static_cast<double>(sizes.tensors) * 5 * (64 + 4 * 4 * kChannels);
}

TEST_CASE("what a rank holds with its gradients is what the formulas say") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Sizes sizes = sizes_of(dtype);
    for (const int N : {1, 2, 4, 8})
      for (const Formula& f : kFormulas) {
        ShardPlan plan = parse_strategy(f.strategy, N);
        if (N % plan.replicas != 0) continue;
        const SmallTraining t{.ranks = N, .steps = 2, .dtype = dtype};
        const Trace run = train_sharded(t, plan, byte_job(dtype));
        const bool f32 = dtype == DType::f32;
        const double states = sizes.model * ((f32 ? f.whole : f.half_whole) +
                                             (f32 ? f.parts : f.half_parts) * plan.replicas / N);
        INFO(f.strategy << " on " << N << ", " << name_of(dtype));
        CHECK(static_cast<double>(states_in(run.before_update)) >= states);
        CHECK(static_cast<double>(states_in(run.before_update)) <= states + rounding(sizes));
        CHECK(of(run.before_update, Category::gathered) == 0);
      }
  }
}

/// The bound of the states, gathered parameters and gradients at the peak, f32, prefetch of 1: the
/// root stays gathered, and its gradient whole until backward has passed it.
double most_states(const Formula& f, const Sizes& sizes, int shards) {
  const double gradients = 4 * (2 * sizes.block + sizes.root);
  const double gathered = f.whole == 0 ? 4 * (2 * sizes.block + sizes.root) : 0;
  const bool cuts_gradients = f.parts > 8;
  return sizes.model * (f.whole + f.parts / shards) + gathered + (cuts_gradients ? gradients : 0);
}

TEST_CASE("the peak is what its parts say, and strategies stand in their order") {
  const Sizes sizes = sizes_of(DType::f32);
  std::printf("n = %.0f, a block %.0f, the root %.0f\n", sizes.model, sizes.block, sizes.root);
  std::printf("%-18s %5s %12s %12s %12s  %s\n", "strategy", "ranks", "states", "peak", "bound",
              "at the peak: params, gathered, grads, optimizer, the rest");
  for (const int N : {1, 2, 4, 8}) {
    std::map<std::string, int64_t> peaks;
    for (const Formula& f : kFormulas) {
      const ShardPlan plan = parse_strategy(f.strategy, N);
      if (N % plan.replicas != 0) continue;
      const Trace run = train_sharded({.ranks = N, .steps = 2}, plan, byte_job(DType::f32));
      const CategoryBytes& at = run.peak.by_category;
      const int64_t held = states_in(at) + of(at, Category::gathered);
      const int64_t rest = run.peak.bytes - held;
      const double bound = most_states(f, sizes, N / plan.replicas);
      std::printf(
          "%-18s %5d %12ld %12ld %12.0f  %ld, %ld, %ld, %ld, %ld\n", f.strategy, N,
          static_cast<long>(states_in(run.before_update)), static_cast<long>(run.peak.bytes),
          bound + static_cast<double>(rest), static_cast<long>(of(at, Category::params)),
          static_cast<long>(of(at, Category::gathered)), static_cast<long>(of(at, Category::grads)),
          static_cast<long>(of(at, Category::optimizer)), static_cast<long>(rest));
      INFO(f.strategy << " on " << N);
      CHECK(static_cast<double>(held) <= kAbove * bound + rounding(sizes));
      CHECK(of(at, Category::staging) <= 8 << 20);
      peaks[f.strategy] = run.peak.bytes;
    }
    if (N == 1) continue;
    INFO(N << " ranks");
    CHECK(peaks["zero2"] <= peaks["zero1"]);
    CHECK(peaks["zero1"] < peaks["ddp"]);
    // Less is gathered than there is to be cut.
    REQUIRE(2 * sizes.block + sizes.root < sizes.model * (N - 1) / N);
    CHECK(peaks["fsdp"] < peaks["zero2"]);
    if (N > 2) CHECK(peaks["fsdp"] < peaks["hsdp[replicate=2]"]);
  }
}

}  // namespace
}  // namespace sherd
