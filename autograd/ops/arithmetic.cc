#include "autograd/ops/arithmetic.h"

#include "tensor/kernels/arithmetic.h"
#include "tensor/kernels/reduce.h"

namespace sherd {

Variable add(const Variable& a, const Variable& b) {
  const Context in("add");
  return a.tape().record(
      "add", combine(Arithmetic::add, a.value(), b.value()), {a, b},
      [want_a = a.requires_grad(), want_b = b.requires_grad(), a = a.shape(),
       b = b.shape()](const Tensor& dy) -> Grads {
        return {want_a ? sum_to(dy, a) : Tensor(), want_b ? sum_to(dy, b) : Tensor()};
      });
}

Variable sub(const Variable& a, const Variable& b) {
  const Context in("sub");
  return a.tape().record(
      "sub", combine(Arithmetic::sub, a.value(), b.value()), {a, b},
      [want_a = a.requires_grad(), want_b = b.requires_grad(), a = a.shape(),
       b = b.shape()](const Tensor& dy) -> Grads {
        return {want_a ? sum_to(dy, a) : Tensor(), want_b ? scaled(sum_to(dy, b), -1) : Tensor()};
      });
}

Variable mul(const Variable& a, const Variable& b) {
  const Context in("mul");
  return a.tape().record("mul", combine(Arithmetic::mul, a.value(), b.value()), {a, b},
                         [saved_a = Saved(b.requires_grad() ? a.value() : Tensor()),
                          saved_b = Saved(a.requires_grad() ? b.value() : Tensor()), a = a.shape(),
                          b = b.shape()](const Tensor& dy) -> Grads {
                           Grads grads(2);
                           if (saved_b.get())
                             grads[0] = sum_to(combine(Arithmetic::mul, dy, saved_b.get()), a);
                           if (saved_a.get())
                             grads[1] = sum_to(combine(Arithmetic::mul, dy, saved_a.get()), b);
                           return grads;
                         });
}

Variable div(const Variable& a, const Variable& b) {
  const Context in("div");
  return a.tape().record(
      "div", combine(Arithmetic::div, a.value(), b.value()), {a, b},
      [saved_a = Saved(b.requires_grad() ? a.value() : Tensor()), saved_b = Saved(b),
       want_a = a.requires_grad(), a = a.shape(), b = b.shape()](const Tensor& dy) -> Grads {
        // d(a/b) = da / b - (a / b) / b · db
        const Tensor quotient = combine(Arithmetic::div, dy, saved_b.get());
        Grads grads(2);
        if (want_a) grads[0] = sum_to(quotient, a);
        if (saved_a.get()) {
          const Tensor product = combine(Arithmetic::mul, quotient, saved_a.get());
          grads[1] = sum_to(combine(Arithmetic::minus_quotient, product, saved_b.get()), b);
        }
        return grads;
      });
}

Variable neg(const Variable& x) { return scale(x, -1); }

Variable scale(const Variable& x, double factor) {
  const Context in("scale");
  return x.tape().record("scale", scaled(x.value(), factor), {x},
                         [factor](const Tensor& dy) -> Grads { return {scaled(dy, factor)}; });
}

}  // namespace sherd
