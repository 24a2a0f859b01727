#include "examples/own_op/snake.h"

#include <algorithm>
#include <cmath>

namespace {

using namespace sherd;

/// x [R, C], a [C] → y [R, C]
template <class T>
void forward(int64_t R, int64_t C, const T* x, const T* a, T* y) {
  for (int64_t r = 0; r < R; ++r)
    for (int64_t c = 0; c < C; ++c) {
      const T s = std::sin(a[c] * x[r * C + c]);
      y[r * C + c] = x[r * C + c] + s * s / a[c];
    }
}

/// dy/dx = 1 + sin(2 a x)
template <class T>
void backward_x(int64_t R, int64_t C, const T* x, const T* a, const T* dy, T* dx) {
  for (int64_t r = 0; r < R; ++r)
    for (int64_t c = 0; c < C; ++c)
      dx[r * C + c] = dy[r * C + c] * (1 + std::sin(2 * a[c] * x[r * C + c]));
}

/// dy/da = x sin(2 a x) / a − sin²(a x) / a², summed over the rows
template <class T>
void backward_a(int64_t R, int64_t C, const T* x, const T* a, const T* dy, T* da) {
  std::fill(da, da + C, T(0));
  for (int64_t r = 0; r < R; ++r)
    for (int64_t c = 0; c < C; ++c) {
      const T v = x[r * C + c], s = std::sin(a[c] * v) / a[c];
      da[c] += dy[r * C + c] * (v * std::sin(2 * a[c] * v) / a[c] - s * s);
    }
}

/// Calls body with a tag of the dtype; not on meta, which has shapes and no bytes.
template <class Body>
void compute(const Tensor& t, const Body& body) {
  if (!t.device().is_meta()) on_dtype<float, double>(t.dtype(), "snake", body);
}

}  // namespace

Variable snake(const Variable& x, const Variable& a) {
  const Context in("snake");
  const int64_t C = x.size(-1), R = x.shape().rows(x.shape().size() - 1);
  check(a.shape() == Shape{C} && a.dtype() == x.dtype(), "wants a [C] of x's dtype: x",
        describe(x.value()), "a", describe(a.value()));
  const Tensor x_RC = x.value().contiguous(), a_C = a.value().contiguous();
  const Tensor y = Tensor::empty_like(x_RC);
  compute(y, [&]<class T>(std::type_identity<T>) {
    forward(R, C, x_RC.data<T>(), a_C.data<T>(), y.data<T>());
  });

  const bool wants_dx = x.requires_grad(), wants_da = a.requires_grad();
  return x.tape().record("snake", y, {x, a},
                         [R, C, wants_dx, wants_da, saved_x = Saved(x_RC),
                          saved_a = Saved(a_C)](const Tensor& dy_any) {
                           const Tensor dy = dy_any.contiguous();
                           const Tensor &x_RC = saved_x.get(), &a_C = saved_a.get();
                           Grads grads(2);
                           if (wants_dx) grads[0] = Tensor::empty_like(x_RC);
                           if (wants_da) grads[1] = Tensor::empty_like(a_C);
                           compute(dy, [&]<class T>(std::type_identity<T>) {
                             const T *px = x_RC.data<T>(), *pa = a_C.data<T>(), *pdy = dy.data<T>();
                             if (wants_dx) backward_x(R, C, px, pa, pdy, grads[0].dense.data<T>());
                             if (wants_da) backward_a(R, C, px, pa, pdy, grads[1].dense.data<T>());
                           });
                           return grads;
                         });
}
