#include "autograd/ops/attention.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Doubles = std::vector<double>;

struct Case {
  int64_t B, T, S, H, Hkv, D;
  bool causal = false;
  bool masked = false;
  std::optional<double> scale = std::nullopt;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B " << c.B << " T " << c.T << " S " << c.S << " H " << c.H << " Hkv " << c.Hkv
             << " D " << c.D << (c.causal ? " causal" : "") << (c.masked ? " masked" : "");
}

/// What the loop below says: y, and the gradients of Σ y·dy.
struct Answer {
  Doubles y, dq, dk, dv;
};

Doubles noise(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Doubles x(static_cast<size_t>(n));
  for (double& v : x) v = normal(random);
  return x;
}

/// Every third key, and all of sample 1 where there is one.
std::vector<bool> mask_of(const Case& c) {
  std::vector<bool> seen(static_cast<size_t>(c.B * c.S), true);
  for (int64_t i = 0; i < c.B * c.S; ++i)
    seen[static_cast<size_t>(i)] = i % c.S % 3 != 1 && i / c.S != 1;
  return seen;
}

Answer naive(const Case& c, const Doubles& q, const Doubles& k, const Doubles& v,
             const Doubles& dy) {
  Answer a{Doubles(q.size()), Doubles(q.size()), Doubles(k.size()), Doubles(v.size())};
  const double scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.D)));
  const std::vector<bool> seen = mask_of(c);
  for (int64_t b = 0; b < c.B; ++b) {
    for (int64_t h = 0; h < c.H; ++h) {
      for (int64_t t = 0; t < c.T; ++t) {
        const int64_t g = h / (c.H / c.Hkv);
        const auto row = static_cast<size_t>(((b * c.T + t) * c.H + h) * c.D);
        const auto key = [&](int64_t s) {
          return static_cast<size_t>(((b * c.S + s) * c.Hkv + g) * c.D);
        };
        const auto D = static_cast<size_t>(c.D);
        Doubles p(static_cast<size_t>(c.S), 0);
        double top = -std::numeric_limits<double>::infinity();
        for (int64_t s = 0; s < c.S; ++s) {
          double dot = 0;
          for (size_t d = 0; d < D; ++d) dot += q[row + d] * k[key(s) + d];
          const bool hidden = (c.causal && s > t + c.S - c.T) ||
                              (c.masked && !seen[static_cast<size_t>(b * c.S + s)]);
          p[static_cast<size_t>(s)] =
              hidden ? -std::numeric_limits<double>::infinity() : dot * scale;
          top = std::max(top, p[static_cast<size_t>(s)]);
        }
        if (std::isinf(top)) continue;
        double total = 0;
        for (double& x : p) total += x = std::exp(x - top);
        double delta = 0;
        for (int64_t s = 0; s < c.S; ++s) {
          p[static_cast<size_t>(s)] /= total;
          for (size_t d = 0; d < D; ++d) a.y[row + d] += p[static_cast<size_t>(s)] * v[key(s) + d];
        }
        for (size_t d = 0; d < D; ++d) delta += a.y[row + d] * dy[row + d];
        for (int64_t s = 0; s < c.S; ++s) {
          const double ps = p[static_cast<size_t>(s)];
          double dp = 0;
          for (size_t d = 0; d < D; ++d) dp += dy[row + d] * v[key(s) + d];
          const double ds = ps * (dp - delta) * scale;
          for (size_t d = 0; d < D; ++d) {
            a.dv[key(s) + d] += ps * dy[row + d];
            a.dq[row + d] += ds * k[key(s) + d];
            a.dk[key(s) + d] += ds * q[row + d];
          }
        }
      }
    }
  }
  return a;
}

Tensor tensor_of(const RuntimePtr& runtime, const Shape& shape, const Doubles& x, DType dtype) {
  return Tensor::from<double>(runtime, shape, x).to(dtype);
}

/// The op's answer; with S = T the inputs are slices of one buffer.
Answer ours(const Case& c, const RuntimePtr& runtime, DType dtype, const Doubles& q,
            const Doubles& k, const Doubles& v, const Doubles& dy) {
  Tape tape(runtime);
  Tensor qt = tensor_of(runtime, {c.B, c.T, c.H, c.D}, q, dtype);
  Tensor kt = tensor_of(runtime, {c.B, c.S, c.Hkv, c.D}, k, dtype);
  Tensor vt = tensor_of(runtime, {c.B, c.S, c.Hkv, c.D}, v, dtype);
  if (c.S == c.T) {
    const Tensor all = Tensor::empty(runtime, {c.B, c.T, c.H + 2 * c.Hkv, c.D}, dtype);
    const auto part = [&](const Tensor& from, int64_t begin) {
      const Tensor to = all.slice(2, begin, begin + from.size(2));
      to.copy_from(from);
      return to;
    };
    qt = part(qt, 0);
    kt = part(kt, c.H);
    vt = part(vt, c.H + c.Hkv);
  }
  AttentionOptions options{.causal = c.causal, .scale = c.scale};
  if (c.masked) {
    options.key_mask = Tensor::empty(runtime, {c.B, c.S}, DType::boolean);
    const std::vector<bool> seen = mask_of(c);
    std::copy(seen.begin(), seen.end(), options.key_mask.data<bool>());
  }
  const Variable vq = tape.leaf(qt, "q");
  const Variable vk = tape.leaf(kt, "k");
  const Variable vv = tape.leaf(vt, "v");
  const Variable y = attention(vq, vk, vv, options);
  CHECK(y.value().is_contiguous());
  const Doubles value = y.value().to_vector<double>();
  tape.backward(y, tensor_of(runtime, y.shape(), dy, dtype));
  return {value, vq.grad().to_vector<double>(), vk.grad().to_vector<double>(),
          vv.grad().to_vector<double>()};
}

/// The largest |x - wanted| / (largest |wanted|, at least 0.1).
double error(const Doubles& x, const Doubles& wanted) {
  REQUIRE(x.size() == wanted.size());
  double worst = 0;
  double size = 0.1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - wanted[i]) <= worst)) worst = std::abs(x[i] - wanted[i]);
    size = std::max(size, std::abs(wanted[i]));
  }
  return worst / size;
}

void check_case(const Case& c, const RuntimePtr& runtime, DType dtype, double tolerance) {
  // Rounded to the dtype first, so that only the op's own error is left.
  const auto rounded = [&](const Doubles& x) {
    return tensor_of(runtime, {static_cast<int64_t>(x.size())}, x, dtype).to_vector<double>();
  };
  const Doubles q = rounded(noise(c.B * c.T * c.H * c.D, 1));
  const Doubles k = rounded(noise(c.B * c.S * c.Hkv * c.D, 2));
  const Doubles v = rounded(noise(c.B * c.S * c.Hkv * c.D, 3));
  const Doubles dy = rounded(noise(c.B * c.T * c.H * c.D, 4));
  const Answer wanted = naive(c, q, k, v, dy);
  const Answer got = ours(c, runtime, dtype, q, k, v, dy);
  INFO(c << " " << dtype << " " << name_of(runtime->isa()));
  CHECK(error(got.y, wanted.y) < tolerance);
  CHECK(error(got.dq, wanted.dq) < tolerance);
  CHECK(error(got.dk, wanted.dk) < tolerance);
  CHECK(error(got.dv, wanted.dv) < tolerance);
}

const std::vector<Case> kCases = {
    {2, 1, 1, 2, 2, 8, true},          {1, 7, 7, 3, 3, 5, true},
    {2, 37, 37, 2, 2, 32, true},       {1, 65, 65, 2, 1, 48, true},
    {1, 129, 129, 2, 2, 64, true},     {1, 300, 300, 1, 1, 64, true},
    {1, 300, 300, 2, 1, 80, false},    {1, 1, 300, 4, 2, 64, true},
    {1, 2, 65, 2, 2, 33, true},        {1, 37, 129, 3, 1, 96, true},
    {2, 37, 7, 2, 2, 16, true},        {1, 129, 37, 2, 2, 128, false},
    {3, 65, 65, 2, 2, 24, true, true}, {2, 50, 300, 2, 1, 64, false, true},
    {2, 1, 37, 4, 2, 64, true, true},  {1, 65, 65, 1, 1, 160, true},
    {1, 49, 49, 1, 1, 1, true},        {1, 9, 9, 2, 2, 8, false, false, 0.3},
    {0, 5, 5, 2, 2, 8, true},          {1, 0, 5, 2, 2, 8, false},
    {1, 5, 0, 2, 2, 8, false},         {1, 205, 205, 1, 1, 300, true},
};

TEST_CASE("attention agrees with a plain loop in f64") {
  for (const Isa isa : test::all_isas()) {
    const auto runtime = Runtime::create({.threads = 2, .isa = isa});
    for (const Case& c : kCases) check_case(c, runtime, DType::f32, 2e-6);
  }
}

TEST_CASE("attention takes f64, bf16 and f16") {
  for (const Isa isa : test::all_isas()) {
    const auto runtime = Runtime::create({.threads = 2, .isa = isa});
    // All cases at the lowest and the highest level, a few between.
    const size_t step = isa == Isa::base || isa == best_isa() ? 1 : 5;
    for (size_t i = 0; i < std::size(kCases); i += step) {
      const Case& c = kCases[i];
      check_case(c, runtime, DType::f64, 1e-14);
      check_case(c, runtime, DType::bf16, 1e-2);
      check_case(c, runtime, DType::f16, 1.5e-3);
    }
  }
}

TEST_CASE("attention's gradients are those of finite differences") {
  const test::CaseInput q{.shape = {2, 9, 4, 5}};
  const test::CaseInput k{.shape = {2, 9, 2, 5}};
  const test::CaseInput short_k{.shape = {2, 4, 4, 5}};
  const auto with = [](bool causal) {
    return [causal](const std::vector<Variable>& x) {
      return attention(x[0], x[1], x[2], {.causal = causal, .scale = 0.4});
    };
  };
  test::run({.name = "attention causal", .inputs = {q, k, k}, .op = with(true)});
  test::run({.name = "attention", .inputs = {q, short_k, short_k}, .op = with(false)});
  test::run({.name = "attention short", .inputs = {q, short_k, short_k}, .op = with(true)});
}

TEST_CASE("attention agrees with PyTorch") {
  const auto run = [](const char* name, bool causal, bool masked) {
    std::vector<std::string> inputs = {"q", "k", "v"};
    if (masked) inputs.emplace_back("mask");
    test::check_golden(name, inputs,
                       [&](const std::vector<Variable>& x) {
                         return attention(
                             x[0], x[1], x[2],
                             {.causal = causal, .key_mask = masked ? x[3].value() : Tensor()});
                       },
                       {1e-5, 2e-6});
  };
  run("sdpa_causal", true, false);
  run("sdpa_bidirectional", false, false);
  run("sdpa_padding", false, true);
  run("sdpa_causal_padding", true, true);
  run("sdpa_grouped_causal", true, false);
  run("sdpa_grouped_bidirectional", false, false);
  run("sdpa_one_step", true, false);
  run("sdpa_causal_long", true, false);
}

TEST_CASE("attention has the same bits for any number of threads") {
  for (const Case& c :
       {Case{2, 300, 300, 4, 2, 64, true}, Case{1, 37, 129, 3, 1, 48, false, true}}) {
    const Doubles q = noise(c.B * c.T * c.H * c.D, 1);
    const Doubles k = noise(c.B * c.S * c.Hkv * c.D, 2);
    const Doubles v = noise(c.B * c.S * c.Hkv * c.D, 3);
    const auto run = [&](int threads) {
      return ours(c, Runtime::create({.threads = threads}), DType::f32, q, k, v, q);
    };
    const Answer one = run(1);
    for (const int threads : {2, 5}) {
      const Answer more = run(threads);
      CHECK(more.y == one.y);
      CHECK(more.dq == one.dq);
      CHECK(more.dk == one.dk);
      CHECK(more.dv == one.dv);
    }
  }
}

TEST_CASE("attention survives scores that overflow a plain softmax, and hands on NaN") {
  const auto runtime = Runtime::create();
  const Case c{1, 37, 37, 1, 1, 8, true, false, 300.0};
  check_case(c, runtime, DType::f32, 2e-3);
  Doubles q = noise(37 * 8, 1);
  const Doubles k = noise(37 * 8, 2);
  q[5 * 8] = std::nan("");
  const Answer a = ours(c, runtime, DType::f32, q, k, k, k);
  CHECK(std::isnan(a.y[5 * 8]));
  CHECK(!std::isnan(a.y[4 * 8]));
}

TEST_CASE("a masked key may hold anything") {
  const auto runtime = Runtime::create();
  const Case c{1, 20, 20, 1, 1, 8, false, true};
  Doubles k = noise(20 * 8, 2);
  const Doubles q = noise(20 * 8, 1);
  const Answer before = ours(c, runtime, DType::f32, q, k, k, q);
  for (size_t d = 0; d < 8; ++d) k[8 + d] = std::nan("");
  const Answer after = ours(c, runtime, DType::f32, q, k, k, q);
  CHECK(after.y == before.y);
  CHECK(after.dq == before.dq);
  CHECK(after.dv == before.dv);
}

TEST_CASE("attention's gradients are adjacent slices of one buffer") {
  const auto runtime = Runtime::create();
  Tape tape(runtime);
  std::vector<Tensor> seen;
  const auto pass = [&](const Variable& x) {
    return tape.record("look", x.value(), {x}, [&seen](const Tensor& dy) -> Grads {
      seen.push_back(dy);
      return {dy};
    });
  };
  const auto leaf = [&](int64_t heads) {
    return pass(tape.leaf(Tensor::full(runtime, {2, 5, heads, 8}, 0.5)));
  };
  const Variable q = leaf(4);
  const Variable k = leaf(2);
  const Variable v = leaf(2);
  const Variable y = attention(q, k, v);
  tape.backward(y, Tensor::full(runtime, y.shape(), 1));
  REQUIRE(seen.size() == 3);  // v, k, q: the order of backward
  CHECK(seen[1].storage() == seen[2].storage());
  CHECK(seen[0].storage() == seen[2].storage());
  CHECK(seen[2].offset() == 0);
  CHECK(seen[1].offset() == 4 * 8);
  CHECK(seen[0].offset() == 6 * 8);
  for (const Tensor& dx : seen) CHECK(dx.strides() == Strides{5 * 64, 64, 8, 1});
}

int64_t peak_of(const RuntimePtr& runtime, int64_t steps, DType dtype) {
  const auto make = [&](Tape& tape) {
    return tape.leaf(Tensor::zeros(runtime, {1, steps, 2, 32}, dtype));
  };
  Tape tape(runtime);
  runtime->allocator().reset_peak();
  const Variable y = attention(make(tape), make(tape), make(tape), {.causal = true});
  tape.backward(y, Tensor::zeros(runtime, y.shape(), dtype));
  return runtime->allocator().peak().bytes;
}

TEST_CASE("attention's memory is linear in the context, and the same on meta") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const auto cpu = Runtime::create({.threads = 2});
    const auto meta = Runtime::create({.device = kMeta});
    const int64_t one = peak_of(cpu, 1024, dtype);
    CHECK(peak_of(cpu, 4096, dtype) <= 4 * one);
    CHECK(peak_of(meta, 1024, dtype) == one);
  }
}

TEST_CASE("attention says what it wants") {
  const auto runtime = Runtime::create();
  Tape tape(runtime);
  const auto zeros = [&](const Shape& shape, DType dtype = DType::f32) {
    return tape.constant(Tensor::zeros(runtime, shape, dtype));
  };
  const Variable q = zeros({2, 5, 4, 8});
  const Variable k = zeros({2, 5, 2, 8});
  CHECK_THROWS_WITH(attention(q, zeros({2, 5, 3, 8}), zeros({2, 5, 3, 8})),
                    Catch::Contains("multiple of Hkv"));
  CHECK_THROWS_WITH(attention(q, k, zeros({2, 6, 2, 8})), Catch::Contains("[2, 6, 2, 8]"));
  CHECK_THROWS_WITH(attention(q, zeros({2, 5, 2, 4}), zeros({2, 5, 2, 4})),
                    Catch::Contains("head dim"));
  const Variable wide = zeros({1, 1, 1, 1025});
  CHECK_THROWS_WITH(attention(wide, wide, wide), Catch::Contains("at most 1024"));
  CHECK_THROWS_WITH(attention(q, k, zeros({2, 5, 2, 8}, DType::bf16)), Catch::Contains("dtype"));
  CHECK_THROWS_WITH(attention(q, k, k, {.key_mask = Tensor::zeros(runtime, {2, 5})}),
                    Catch::Contains("key_mask"));
}

}  // namespace
}  // namespace sherd
