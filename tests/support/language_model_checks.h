// Checks that every language model passes, as templates over the model and its configuration.
// Include in test files only.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "autograd/ops/arithmetic.h"
#include "nn/init.h"
#include "nn/models/language_model.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd::test {

/// A model on its own runtime; every byte that forward and backward make counts as activations.
template <class Model>
struct ModelBench {
  using Config = decltype(Model::config);
  RuntimePtr runtime;
  Tape tape;
  Model model;
  CategoryScope scope;

  explicit ModelBench(const Config& config, const RuntimeOptions& options = {})
      : runtime(Runtime::create(options)),
        tape(runtime),
        model(tape, config),
        scope(*runtime, Category::activations) {
    init_parameters(model, 7);
  }

  Tensor tokens(int64_t B, int64_t T, int64_t seed) const {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < B * T; ++i)
      values.push_back(static_cast<int32_t>((i * i * 31 + i * 7 + seed) % model.config.vocab));
    return Tensor::from<int32_t>(runtime, {B, T}, values);
  }

  LossResult loss(int64_t B = 2, int64_t T = 9) const {
    return model.loss(tokens(B, T, 1), tokens(B, T, 5), {.training = true, .key = RandomKey{3, 4}});
  }

  std::vector<double> gradients() {
    std::vector<double> all;
    for (const NamedParameter& p : parameters(model)) {
      REQUIRE(p.parameter.grad());
      const auto g = p.parameter.grad().to_vector<double>();
      all.insert(all.end(), g.begin(), g.end());
      p.parameter.set_grad({});
    }
    return all;
  }
};

inline double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

/// Weights, loss and every gradient of the mean loss are those of the golden file.
template <class Model>
void check_model_golden(const char* name, const decltype(Model::config)& config, int64_t tokens) {
  const Golden golden(name);
  for (const int threads : {1, 2}) {
    ModelBench<Model> bench(config, {.threads = threads});
    const std::vector<NamedParameter> all = parameters(bench.model);
    for (const NamedParameter& p : all)
      p.parameter.value().copy_from(golden.tensor(bench.runtime, p.name));
    const auto result = bench.model.loss(golden.tensor(bench.runtime, "in.tokens"),
                                         golden.tensor(bench.runtime, "in.targets"));
    CHECK(result.tokens == tokens);
    CHECK(near(result.loss.value(), golden.values("out.loss_sum"), {1e-6, 0}));
    bench.tape.backward(result.loss,
                        Tensor::full(bench.runtime, {}, 1.0 / static_cast<double>(result.tokens)));

    double global = 0;
    for (const NamedParameter& p : all)
      global += std::pow(norm(golden.values("grad." + p.name)), 2);
    global = std::sqrt(global);
    for (const NamedParameter& p : all) {
      CAPTURE(p.name);
      const auto want = golden.values("grad." + p.name);
      auto error = p.parameter.grad().to_vector<double>();
      REQUIRE(error.size() == want.size());
      for (size_t i = 0; i < want.size(); ++i) error[i] -= want[i];
      // A gradient that is all cancellation (the key bias) is judged by the size of the whole.
      const double size = norm(want) < 1e-6 * global ? global : norm(want);
      CHECK(norm(error) <= 1e-5 * size);
    }
  }
}

/// The gradient along random directions is what differences of f64 losses say, to 1e-6.
template <class Model>
void check_directional_derivatives(decltype(Model::config) config) {
  config.dtype = DType::f64;
  ModelBench<Model> bench(config);
  const std::vector<NamedParameter> all = parameters(bench.model);
  bench.tape.backward(bench.loss().loss);

  for (uint64_t direction = 0; direction < 3; ++direction) {
    const double h = 1e-6;  // of directions as long as √(number of parameters)
    double expected = 0;
    std::vector<Tensor> start, step;
    for (const NamedParameter& p : all) {
      const Tensor value = p.parameter.value().clone();
      const Tensor d = Tensor::empty_like(value);
      fill_initial(d, Init::uniform(1), RandomKey{11, direction}.derive(p.name), 0);
      const auto g = p.parameter.grad().to_vector<double>();
      const auto along = d.to_vector<double>();
      for (size_t i = 0; i < g.size(); ++i) expected += g[i] * along[i];
      start.push_back(value);
      step.push_back(d);
    }
    const auto loss_at = [&](double t) {
      const NoGrad no_grad(bench.tape);
      for (size_t i = 0; i < all.size(); ++i) {
        const Variable moved =
            add(bench.tape.constant(start[i]), scale(bench.tape.constant(step[i]), t));
        all[i].parameter.value().copy_from(moved.value());
      }
      return bench.loss().loss.value().item();
    };
    const double difference = (loss_at(h) - loss_at(-h)) / (2 * h);
    loss_at(0);
    CHECK(difference == Approx(expected).epsilon(1e-6).margin(0));
  }
}

/// Recomputing gives the same bits, whatever is chosen; blocks need less than half of the
/// activations, and each choice of `lower` less than keeping them.
template <class Model>
void check_recompute(decltype(Model::config) config, const std::vector<Recompute>& lower) {
  struct Result {
    double loss;
    std::vector<double> gradients;
    int64_t peak;
  };
  config.layers = 6;
  const auto run = [&](const Recompute& recompute) {
    config.recompute = recompute;
    ModelBench<Model> bench(config);
    bench.runtime->allocator().reset_peak();
    const auto result = bench.loss(8, 11);
    bench.tape.backward(result.loss);
    return Result{
        result.loss.value().item(), bench.gradients(),
        bench.runtime->allocator().peak().by_category[static_cast<size_t>(Category::activations)]};
  };
  const Result kept = run(kRecomputeNone);
  const auto peak_of = [&](const Recompute& recompute) {
    const Result again = run(recompute);
    CHECK(kept.loss == again.loss);
    CHECK(same_bits(again.gradients, kept.gradients));
    return again.peak;
  };
  CHECK(2 * peak_of(kRecomputeBlock) < kept.peak);  // six blocks' against one's and its input
  for (const Recompute& choice : lower) CHECK(peak_of(choice) < kept.peak);
  const int64_t all =
      peak_of({.activation = true, .norm = true, .mlp = true, .qkv = true, .attention = true});
  CHECK(2 * all < kept.peak);
}

template <class Model>
void check_threads(const decltype(Model::config)& config) {
  const auto run = [&](int threads) {
    ModelBench<Model> bench(config, {.threads = threads});
    bench.tape.backward(bench.loss(3, 11).loss);
    return bench.gradients();
  };
  const auto one = run(1);
  CHECK(same_bits(run(1), one));
  CHECK(same_bits(run(2), one));
  CHECK(same_bits(run(3), one));
}

/// Meta predicts the bytes of a step exactly, and where its peak is.
template <class Model>
void check_meta(const decltype(Model::config)& small) {
  using Config = decltype(Model::config);
  struct Bytes {
    CategoryBytes built, forward, after, peak;
    std::vector<std::string> where;
  };
  const auto run = [](Device device, const Config& config) {
    ModelBench<Model> bench(config, {.device = device});
    Allocator& memory = bench.runtime->allocator();
    Bytes bytes;
    bytes.built = memory.live_by_category();
    memory.reset_peak();
    {
      const auto result = bench.loss();
      bytes.forward = memory.live_by_category();
      bench.tape.backward(result.loss);
    }
    bytes.after = memory.live_by_category();
    bytes.peak = memory.peak().by_category;
    bytes.where = memory.peak().where;
    return bytes;
  };
  for (const Recompute& recompute :
       {kRecomputeNone, kRecomputeBlock, Recompute{.norm = true, .mlp = true, .qkv = true}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Config config = small;
      config.recompute = recompute;
      config.dtype = dtype;
      CAPTURE(dtype, recompute.block, recompute.norm);
      const Bytes real = run(kCpu, config), predicted = run(kMeta, config);
      CHECK(predicted.built == real.built);
      CHECK(predicted.forward == real.forward);
      CHECK(predicted.after == real.after);
      CHECK(predicted.peak == real.peak);
      CHECK(predicted.where == real.where);
      CHECK(real.built[static_cast<size_t>(Category::params)] > 0);
      CHECK(real.forward[static_cast<size_t>(Category::activations)] > 0);
      CHECK(real.after[static_cast<size_t>(Category::activations)] == 0);
      CHECK(real.after[static_cast<size_t>(Category::grads)] >=
            real.built[static_cast<size_t>(Category::params)]);
    }
}

/// Logits from the cache equal those of the whole sequence; the context is 11.
template <class Model>
void check_cache(decltype(Model::config) config) {
  ModelBench<Model> bench(config);
  const NoGrad no_grad(bench.tape);
  const int64_t B = 2, T = config.context;
  const Tensor tokens = bench.tokens(B, T, 3);
  const Tensor whole = bench.model.logits(tokens).value();
  CHECK(whole.shape() == Shape{B, T, config.vocab});

  // A prompt of 4, one of 2 after it, then token by token.
  KvCache cache = bench.model.make_cache(B);
  int64_t begin = 0;
  for (const int64_t length : {4, 2, 1, 1, 1, 1, 1}) {
    const Tensor part =
        bench.model.logits(tokens.slice(1, begin, begin + length).contiguous(), &cache).value();
    CHECK(near(part, whole.slice(1, begin, begin + length), {1e-5, 1e-6}));
    begin += length;
    CHECK(cache.length() == begin);
  }
  CHECK_THROWS_WITH(bench.model.logits(tokens.slice(1, 0, 1).contiguous(), &cache),
                    Catch::Contains("context") && Catch::Contains("11"));
  cache.clear();
  const Tensor next = bench.model.next_logits(tokens, &cache).value();
  CHECK(next.shape() == Shape{B, config.vocab});
  CHECK(near(next, whole.slice(1, T - 1, T).contiguous().view({B, config.vocab}), {1e-5, 1e-6}));
  CHECK(near(bench.model.next_logits(tokens).value(), next, {1e-5, 1e-6}));
}

template <class Model>
void check_bf16(decltype(Model::config) config) {
  ModelBench<Model> full(config);
  config.dtype = DType::bf16;
  ModelBench<Model> half(config);
  // The same draws, rounded.
  for (size_t i = 0; i < parameters(full.model).size(); ++i) {
    const NamedParameter wide = parameters(full.model)[i], narrow = parameters(half.model)[i];
    CHECK(same_bits(narrow.parameter.value().to_vector<double>(),
                    wide.parameter.value().to(DType::bf16).to_vector<double>()));
  }
  const auto a = full.loss(), b = half.loss();
  CHECK(b.loss.dtype() == DType::f32);
  CHECK(b.loss.value().item() == Approx(a.loss.value().item()).epsilon(2e-3));
  full.tape.backward(a.loss);
  half.tape.backward(b.loss);
  CHECK(half.model.wte.weight.grad().dtype() == DType::f32);
  auto error = half.gradients();
  const auto want = full.gradients();
  for (size_t i = 0; i < want.size(); ++i) error[i] -= want[i];
  CHECK(norm(error) < 0.03 * norm(want));
}

}  // namespace sherd::test
