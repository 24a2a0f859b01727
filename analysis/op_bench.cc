#include "analysis/op_bench.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/layer_norm.h"
#include "autograd/ops/softmax.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"

namespace sherd {

namespace {

struct Measured {
  std::string op;
  double bytes;
  std::function<void()> call;
  std::vector<double> ms;
};

double milliseconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<int64_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

constexpr int64_t kTriadElements = 32 << 20;

void triad(Runtime& runtime, const Tensor& to, const Tensor& from, const Tensor& scaled) {
  using Lanes = float __attribute__((vector_size(32), may_alias));  // scalars would be the limit
  auto* a = reinterpret_cast<Lanes*>(to.data<float>());
  const auto* b = reinterpret_cast<const Lanes*>(from.data<float>());
  const auto* c = reinterpret_cast<const Lanes*>(scaled.data<float>());
  constexpr int64_t kBlock = 1 << 13;
  runtime.pool().run(kTriadElements / 8 / kBlock, [=](int64_t block) {
    for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) a[i] = b[i] + 0.5f * c[i];
  });
}

}  // namespace

std::vector<OpTime> time_ops(const RuntimePtr& runtime, DType dtype, int64_t rows, int64_t columns,
                             double seconds) {
  Tape tape(runtime);
  const NoGrad no_grad(tape);
  const auto filled = [&](const Shape& shape, DType type) {
    return Tensor::full(runtime, shape, 0.5, type);
  };
  const Variable x = tape.constant(filled({rows, columns}, dtype));
  const Variable y = tape.constant(filled({rows, columns}, dtype));
  const Variable weight = tape.constant(filled({columns}, dtype));
  const Variable bias = tape.constant(filled({columns}, dtype));
  const Tensor a = filled({kTriadElements}, DType::f32);
  const Tensor b = filled({kTriadElements}, DType::f32);
  const Tensor c = filled({kTriadElements}, DType::f32);
  std::vector<Slot> slots(1);
  slots[0].name = "parameter";
  slots[0].value = filled({rows, columns}, dtype);
  slots[0].grad = filled({rows, columns}, accumulate_dtype(dtype));
  AdamW adamw(AdamWOptions{});

  const auto one = static_cast<double>(rows * columns) * static_cast<double>(size_of(dtype));
  const auto wide =
      static_cast<double>(rows * columns) * static_cast<double>(size_of(accumulate_dtype(dtype)));
  // The update reads the gradient, reads and writes both moments and the value, and where that is a
  // half reads and writes its master and writes the half.
  const double update = 7 * wide + (size_of(dtype) == 2 ? one : 0);
  std::vector<Measured> list = {
      {"triad", 3.0 * sizeof(float) * kTriadElements, [&] { triad(*runtime, a, b, c); }, {}},
      {"add", 3 * one, [&] { add(x, y); }, {}},
      {"gelu (tanh)", 2 * one, [&] { activate(x, Activation::gelu_tanh); }, {}},
      {"layer norm", 2 * one, [&] { layer_norm(x, weight, bias); }, {}},
      {"softmax", 2 * one, [&] { softmax(x); }, {}},
      {"AdamW", update, [&] { adamw.step(slots, 1e-4, 1); }, {}},
      {"gradient norm", wide, [&] { grad_norm(slots, 1, NormKind::two); }, {}},
  };
  for (Measured& m : list) m.call();
  const double limit = seconds * static_cast<double>(list.size()) * 1e3;
  for (double spent = 0; spent < limit;)
    for (Measured& m : list) {
      m.ms.push_back(milliseconds(m.call));
      spent += m.ms.back();
    }
  std::vector<OpTime> times;
  for (const Measured& m : list) times.push_back({m.op, median(m.ms), m.bytes});
  return times;
}

}  // namespace sherd
