#include "analysis/op_bench.h"

#include <functional>

#include "analysis/median.h"
#include "analysis/triad.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/layer_norm.h"
#include "autograd/ops/softmax.h"
#include "base/progress.h"
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
  const Triad triad(runtime);
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
      {"triad", Triad::kBytes, [&] { triad.run(); }, {}},
      {"add", 3 * one, [&] { add(x, y); }, {}},
      {"gelu (tanh)", 2 * one, [&] { activate(x, Activation::gelu_tanh); }, {}},
      {"layer norm", 2 * one, [&] { layer_norm(x, weight, bias); }, {}},
      {"softmax", 2 * one, [&] { softmax(x); }, {}},
      {"AdamW", update, [&] { adamw.step(slots, 1e-4, 1); }, {}},
      {"gradient norm", wide, [&] { grad_norm(slots, 1, NormKind::two); }, {}},
  };
  for (Measured& m : list) m.call();
  const double end_s = steady_seconds() + seconds * static_cast<double>(list.size());
  while (steady_seconds() < end_s)
    for (Measured& m : list) {
      const double begin_s = steady_seconds();
      m.call();
      m.ms.push_back((steady_seconds() - begin_s) * 1e3);
    }
  std::vector<OpTime> times;
  for (const Measured& m : list) times.push_back({m.op, median(m.ms), m.bytes});
  return times;
}

}  // namespace sherd
