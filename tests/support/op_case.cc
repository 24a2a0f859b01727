#include "tests/support/op_case.h"

#include <algorithm>

#include "third_party/catch2/test.h"

namespace sherd::test {

namespace {

/// In [0, 1), by index alone (splitmix64).
double unit_noise(uint64_t stream, uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u + (stream + 17) * 0xd1b54a32d192ed03u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

template <class T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

double round_to(DType dtype, double x) {
  if (dtype == DType::f32) return static_cast<float>(x);
  if (dtype == DType::bf16) return static_cast<float>(bf16(static_cast<float>(x)));
  if (dtype == DType::f16) return static_cast<float>(f16(static_cast<float>(x)));
  return x;
}

std::vector<double> noise_values(int64_t n, uint64_t stream, double low, double high, DType dtype) {
  std::vector<double> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = round_to(dtype, low + (high - low) * unit_noise(stream, i));
  return x;
}

/// The same values in memory that skips elements: a view of the last dim of a wider tensor, with
/// the dims before it in reversed order; of one dim, each second element.
Tensor strided(const Tensor& t) {
  const int dims = t.dims();
  if (dims == 1) {
    const Tensor pairs = Tensor::zeros(t.runtime(), {t.size(0), 2}, t.dtype());
    const Tensor view = pairs.slice(1, 1, 2).view(t.shape());
    view.copy_from(t);
    return view;
  }
  Shape wide;
  for (int i = dims - 2; i >= 0; --i) wide.push_back(t.size(i));
  if (dims > 0) wide.push_back(t.size(-1) + 3);
  Tensor view = Tensor::zeros(t.runtime(), wide, t.dtype());
  if (dims > 0) view = view.slice(-1, 2, 2 + t.size(-1));
  for (int i = 0, j = dims - 2; i < j; ++i, --j) view = view.transpose(i, j);
  view.copy_from(t);
  return view;
}

DType dtype_of_input(const CaseInput& input, DType dtype) {
  return input.values.empty() ? dtype : input.dtype;
}

CaseValues values_of(const OpCase& c, DType dtype) {
  CaseValues values;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseInput& input = c.inputs[i];
    values.push_back(input.values.empty()
                         ? noise_values(input.shape.numel(), i, input.low, input.high, dtype)
                         : std::vector<double>(input.values.begin(), input.values.end()));
  }
  return values;
}

/// What one forward and backward pass gave.
struct Outcome {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<double> out;
  std::vector<std::vector<double>> grads;  // empty for inputs without one
  std::vector<Shape> grad_shapes;
  std::vector<DType> grad_dtypes;
  int64_t live_forward = 0;
  int64_t live_end = 0;
  int64_t peak = 0;
};

Outcome run_once(const OpCase& c, const RuntimePtr& rt, DType dtype, const CaseValues& values,
                 bool views) {
  Outcome result;
  Tape tape(rt);
  std::vector<Variable> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseInput& input = c.inputs[i];
    Tensor t = tensor_of(rt, input.shape, values[i], dtype_of_input(input, dtype));
    if (views) t = strided(t);
    inputs.push_back(input.gradient && input.values.empty() ? tape.leaf(std::move(t))
                                                            : tape.constant(std::move(t)));
  }
  Allocator& memory = rt->allocator();
  const int64_t before = memory.live_bytes();
  memory.reset_peak();
  {
    const Variable y = c.op(inputs);
    result.live_forward = memory.live_bytes() - before;
    result.shape = y.shape();
    result.dtype = y.dtype();
    if (y.requires_grad()) {
      Tensor seed =
          tensor_of(rt, y.shape(), noise_values(y.value().numel(), 99, -1, 1, dtype), y.dtype());
      tape.backward(y, std::move(seed));
    }
    result.peak = memory.peak().bytes - before;
    result.live_end = memory.live_bytes() - before;
    if (!rt->device().is_meta()) result.out = y.value().to_vector<double>();
  }
  for (const auto& x : inputs) {
    result.grads.emplace_back();
    result.grad_shapes.emplace_back();
    result.grad_dtypes.push_back(DType::boolean);
    if (!x.grad()) continue;
    result.grad_shapes.back() = x.grad().shape();
    result.grad_dtypes.back() = x.grad().dtype();
    if (!rt->device().is_meta()) result.grads.back() = x.grad().to_vector<double>();
  }
  return result;
}

void check_near(const Outcome& got, const Outcome& want, Tolerance tolerance) {
  CHECK(got.shape == want.shape);
  CHECK(near(got.out, want.out, tolerance));
  for (size_t i = 0; i < got.grads.size(); ++i) {
    INFO("gradient of input " << i);
    CHECK(near(got.grads[i], want.grads[i], tolerance));
  }
}

void check_same_bits(const Outcome& got, const Outcome& want) {
  CHECK(same_bits(got.out, want.out));
  for (size_t i = 0; i < got.grads.size(); ++i) {
    INFO("gradient of input " << i);
    CHECK(same_bits(got.grads[i], want.grads[i]));
  }
}

void check_f64(const OpCase& c) {
  const auto rt = Runtime::create();
  const CaseValues values = values_of(c, DType::f64);
  if (c.oracle) {
    INFO("f64 against the oracle");
    CHECK(near(run_once(c, rt, DType::f64, values, false).out, c.oracle(values), c.f64));
  }
  if (!c.differentiable) return;
  Tape tape(rt);
  std::vector<Variable> all;
  std::vector<Tensor> varied;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Tensor t = tensor_of(rt, c.inputs[i].shape, values[i], dtype_of_input(c.inputs[i], DType::f64));
    all.push_back(tape.constant(t));
    if (c.inputs[i].gradient && c.inputs[i].values.empty()) varied.push_back(t);
  }
  const auto f = [&](const std::vector<Variable>& xs) {
    std::vector<Variable> inputs = all;
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (c.inputs[i].gradient && c.inputs[i].values.empty()) inputs[i] = xs[next++];
    return c.op(inputs);
  };
  const GradcheckReport report = gradcheck(tape, f, varied, c.gradcheck);
  INFO("gradcheck: " << report.text);
  CHECK(report.ok);
}

void check_dtype(const OpCase& c, DType dtype, Tolerance tolerance) {
  const CaseValues values = values_of(c, dtype);
  const Outcome want = run_once(c, Runtime::create(), DType::f64, values, false);
  for (const Isa isa : all_isas()) {
    INFO(name_of(dtype) << " at " << name_of(isa));
    const auto rt = Runtime::create({.isa = isa});
    const Outcome one = run_once(c, rt, dtype, values, false);
    check_near(one, want, tolerance);
    {
      INFO("two threads");
      check_same_bits(
          run_once(c, Runtime::create({.threads = 2, .isa = isa}), dtype, values, false), one);
    }
    {
      INFO("strided views");
      check_same_bits(run_once(c, rt, dtype, values, true), one);
    }
  }
}

void check_meta(const OpCase& c, DType dtype) {
  INFO(name_of(dtype) << " on meta");
  const CaseValues values = values_of(c, dtype);
  const Outcome want = run_once(c, Runtime::create(), dtype, values, false);
  const Outcome got = run_once(c, Runtime::create({.device = kMeta}), dtype, values, false);
  CHECK(got.shape == want.shape);
  CHECK(got.dtype == want.dtype);
  CHECK(got.live_forward == want.live_forward);
  CHECK(got.live_end == want.live_end);
  CHECK(got.peak == want.peak);
  for (size_t i = 0; i < got.grads.size(); ++i) {
    INFO("gradient of input " << i);
    CHECK(got.grad_shapes[i] == want.grad_shapes[i]);
    CHECK(got.grad_dtypes[i] == want.grad_dtypes[i]);
  }
}

}  // namespace

void run(const OpCase& c) {
  INFO("case " << c.name);
  check_f64(c);
  check_dtype(c, DType::f64, {1e-10, 1e-11});
  check_meta(c, DType::f64);
  for (const DType dtype : c.dtypes) {
    check_dtype(c, dtype, dtype == DType::f32 ? c.f32 : c.half);
    check_meta(c, dtype);
  }
}

std::vector<Isa> all_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

Tensor tensor_of(const RuntimePtr& runtime, const Shape& shape, const std::vector<double>& values,
                 DType dtype) {
  Tensor t = Tensor::empty(runtime, shape, dtype);
  if (t.raw() == nullptr) return t;
  on_dtype<float, double, bf16, f16, int32_t, int64_t, uint8_t, bool>(
      dtype, "tensor_of", [&](auto tag) {
        using T = typename decltype(tag)::type;
        check(static_cast<int64_t>(values.size()) == t.numel(),
              "tensor_of: another count of values");
        std::transform(values.begin(), values.end(), t.data<T>(), rounded<T>);
      });
  return t;
}

Tensor uniform(const RuntimePtr& runtime, const Shape& shape, uint64_t stream, double low,
               double high, DType dtype) {
  return tensor_of(runtime, shape, noise_values(shape.numel(), stream, low, high, dtype), dtype);
}

}  // namespace sherd::test
