// Tensors over ranks: against plain loops over the whole.
#include "dist/sharded_tensor.h"

#include <array>

#include "tests/dist/toy.h"
#include "tests/support/ranks.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::every;
using test::on_ranks;
using test::SmallTraining;

const std::vector<Shape> kShapes = {{},     {0},    {1},    {5},       {7, 3},
                                    {2, 9}, {3, 0}, {0, 3}, {4, 2, 5}, {2, 3, 1, 4}};

/// 0, 1, 2, …
Tensor counted(const RuntimePtr& runtime, const Shape& shape, DType dtype = DType::f32) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(i));
  return Tensor::from<float>(runtime, shape, values).to(dtype);
}

std::vector<TensorPlacement> placements_of(const Shape& shape) {
  std::vector<TensorPlacement> all = {Replicate{}, Shard{0}};
  for (int d = 1; d < shape.size(); ++d) all.emplace_back(Shard{d});
  return all;
}

/// Where in the whole each element of the piece is, found index by index.
std::vector<float> places(const ShardedTensor& t) {
  const Shape& shape = t.shape();
  const Tensor& local = t.local();
  std::vector<float> found;
  for (int64_t i = 0; i < local.numel(); ++i) {
    if (shape.empty()) return {0};
    int64_t rest = i, place = 0, stride = 1;
    for (int d = shape.size() - 1; d >= 0; --d) {
      place += (rest % local.size(d) + t.offset()[d]) * stride;
      rest /= local.size(d);
      stride *= shape[d];
    }
    found.push_back(static_cast<float>(place));
  }
  return found;
}

}  // namespace

TEST_CASE("a piece is where its offset says, and the pieces make up the whole") {
  for (const int ranks : {1, 2, 3, 4, 8})
    on_ranks(ranks, [](Rank& rank) {
      DeviceMesh mesh(rank.comm);
      for (const Shape& shape : kShapes)
        for (const TensorPlacement& placement : placements_of(shape))
          for (const DType dtype : {DType::f32, DType::bf16}) {
            const Tensor whole = counted(rank.runtime, shape, dtype);
            const auto t = ShardedTensor::distribute(mesh, whole, placement);
            check(t.shape() == shape && t.dtype() == dtype && t.placement() == placement, "what");
            check(t.local().to_vector<float>() == places(t), "the piece of", shape);
            const auto values = whole.to_vector<float>();
            check(t.full().shape() == shape && t.full().to_vector<float>() == values, "the whole",
                  shape);
            // Each element once: none is missing, none is there twice.
            int64_t elements = t.local().numel();
            sum_words(rank.comm, {&elements, 1}, {"elements"});
            const bool cut = std::holds_alternative<Shard>(placement);
            check(elements == shape.numel() * (cut ? 1 : rank.size), "elements of", shape);
          }
    });
}

TEST_CASE("a piece that is there is shared, and written from a whole") {
  on_ranks(3, [](Rank& rank) {
    DeviceMesh mesh(rank.comm);
    const Shape shape{7, 2};
    const Tensor mine = Tensor::full(rank.runtime, {rank.rank < 2 ? 3 : 1, 2}, rank.rank);
    const ShardedTensor t(mesh, shape, Shard{0}, mine);
    check(t.offset() == Dims({3 * rank.rank, 0}), "offset");
    check(
        t.full().to_vector<float>() == std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2},
        "rows of each rank");
    const uint64_t version = mine.storage()->version();
    t.assign(counted(rank.runtime, shape));
    check(mine.storage()->version() > version, "a write is a version");
    check(mine.to_vector<float>() == places(t), "its rows");
    const auto moment = t.with(Tensor::zeros(rank.runtime, mine.shape()));
    check(moment.offset() == t.offset() &&
              moment.full().to_vector<float>() == std::vector<float>(14, 0),
          "another tensor in the same place");
    // Not a contiguous whole.
    t.assign(counted(rank.runtime, {2, 7}).transpose(0, 1));
    check(mine.to_vector<float>()[1] == static_cast<float>(7 + t.offset()[0]), "of a transposed");
  });
}

TEST_CASE("replicas hold the same pieces") {
  on_ranks(6, [](Rank& rank) {
    DeviceMesh mesh(rank.comm, 2);
    const Tensor whole = counted(rank.runtime, {4, 5});
    const auto t = ShardedTensor::distribute(mesh, whole, Shard{1});
    check(t.local().shape() == Shape({4, rank.rank % 3 == 2 ? 1 : 2}), "a part of three");
    check(t.offset() == Dims({0, rank.rank % 3 * 2}), "offset");
    check(t.full().to_vector<float>() == whole.to_vector<float>(), "the whole");
  });
}

TEST_CASE("a wrong piece or dim is named") {
  on_ranks(2, [](Rank& rank) {
    DeviceMesh mesh(rank.comm);
    const auto of = [&](TensorPlacement placement, const Shape& piece) {
      return ShardedTensor(mesh, {5, 2}, placement, Tensor::zeros(rank.runtime, piece));
    };
    const auto error = [](const auto& body) {
      try {
        body();
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string();
    };
    const std::string piece = error([&] { of(Shard{0}, {4, 2}); });
    check(piece.find(rank.rank == 0 ? "[3, 2]" : "[2, 2]") != std::string::npos &&
              piece.find("[4, 2]") != std::string::npos,
          "expected both shapes in:", piece);
    check(error([&] { of(Replicate{}, {3, 2}); }).find("[5, 2]") != std::string::npos, "replicate");
    check(error([&] { of(Shard{2}, {5, 2}); }).find("dim 2 of [5, 2]") != std::string::npos, "dim");
    const auto t = of(Replicate{}, {5, 2});
    check(error([&] {
            t.assign(Tensor::zeros(rank.runtime, {2, 5}));
          }).find("[2, 5]") != std::string::npos,
          "assign");
  });
}

TEST_CASE("parameters, gradients and moments of a sharded module are sharded tensors") {
  SmallTraining t{.ranks = 3, .freeze = "wpe.*"};
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3[resident_below=200]", "fsdp"}) {
    INFO(strategy);
    const ShardPlan plan = every(strategy, 3);
    on_ranks(3, [&](Rank& rank) {
      // What one rank has without sharding.
      Tape plain_tape(rank.runtime);
      Gpt2 plain(plain_tape, test::small_gpt(t));
      init_parameters(plain, 1);
      for (int r = 0; r < 3; ++r) plain_tape.backward(test::small_loss(plain, t, 0, r).loss);

      Tape tape(rank.runtime);
      const DeferParameters defer(*rank.runtime);
      Gpt2 model(tape, test::small_gpt(t));
      freeze(model, t.freeze);
      DeviceMesh mesh(rank.comm);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      sharded->init(1);
      for (const auto& p : parameters(plain)) {
        const ShardedTensor value = sharded->value(p.name);
        check(value.shape() == p.parameter.shape(), "shape of", p.name);
        check(value.full().to_vector<float>() == p.parameter.value().to_vector<float>(), "value of",
              p.name);
        check(value.local().numel() *
                      (std::holds_alternative<Replicate>(value.placement()) ? 1 : 3) <=
                  value.shape().numel() + 2 * value.shape().columns(1),
              "more than its piece of", p.name);
      }
      tape.backward(test::small_loss(model, t, 0, rank.rank).loss);
      sharded->finish_gradients();
      AdamW optimizer;
      std::vector<Slot> slots;
      for (const auto& p : sharded->trainable()) {
        slots.push_back({.name = p.name, .value = p.value, .grad = p.grad});
        const Tensor whole = sharded->state(p.name, p.grad).full();
        for (const auto& q : parameters(plain)) {
          if (q.name != p.name) continue;
          const auto expected = q.parameter.grad().to_vector<float>();
          const auto got = whole.to_vector<float>();
          for (size_t i = 0; i < expected.size(); ++i)
            check(std::abs(got[i] - expected[i]) <= 1e-5f * (1 + std::abs(expected[i])),
                  "gradient of", p.name, i, got[i], expected[i]);
        }
      }
      optimizer.step(slots, 1e-3);
      sharded->finish_step();
      for (const auto& slot : slots)
        for (const auto& s : slot.state) {
          const ShardedTensor moment = sharded->state(slot.name, s.tensor);
          check(moment.shape() == sharded->value(slot.name).shape(), "shape of", s.name);
          check(moment.full().shape() == moment.shape(), "whole of", s.name);
        }
    });
  }
}

}  // namespace sherd
