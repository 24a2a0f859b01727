// Dims: C columns; R rows, all dims before the last.
#include "autograd/ops/rms_norm.h"

#include "autograd/ops/norm_rows.h"
#include "autograd/ops/rms_norm_kernels.h"
#include "tensor/kernels/launch.h"
#include "tensor/kernels/reduce.h"

namespace sherd {

using detail::data_or_null;

Variable rms_norm(const Variable& x, const Variable& weight, double eps) {
  const Context in("rms_norm");
  check(x.shape().size() > 0, "wants at least one dim, x is a scalar");
  detail::check_norm_parameter(weight, x, "weight");
  const Tensor x_RC = x.value().contiguous();
  const Tensor w = weight ? weight.value().contiguous() : Tensor();
  Runtime& runtime = *x.runtime();
  const int64_t columns = x.size(-1);
  const int64_t rows = x.shape().rows(x.shape().size() - 1);
  const DType sums = accumulate_dtype(x.dtype());

  const Tensor y = Tensor::empty_like(x_RC);
  const Tensor rstd = Tensor::empty(x.runtime(), {rows}, sums);
  on_dtype<float, double, bf16, f16>(x.dtype(), "rms_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Accumulate<T>;
    launch(runtime,
           kernels::RmsNorm<T>{x_RC.data<T>(), data_or_null<T>(w), y.data<T>(), rstd.data<A>(),
                               columns, static_cast<A>(eps)},
           columns == 0 ? 0 : rows, block_of(columns));
  });

  const bool want_dx = x.requires_grad();
  const bool want_dw = weight && weight.requires_grad();
  return x.tape().record(
      "rms_norm", y, {x, weight},
      [x_RC = Saved(x_RC), w = Saved(w), rstd, want_dx, want_dw, rows, columns,
       sums](const Tensor& dy_any) -> Grads {
        const Tensor x = x_RC.get();
        const Tensor dy = dy_any.contiguous();
        const int64_t per_part = detail::rows_per_part(rows);
        const int64_t parts = (rows + per_part - 1) / per_part;
        Runtime& runtime = *x.runtime();
        Tensor dx, dw_parts;
        if (want_dx) dx = Tensor::empty_like(x);
        if (want_dw) {
          const CategoryScope staging(runtime, Category::staging);
          dw_parts = Tensor::empty(x.runtime(), {parts, columns}, sums);
        }
        on_dtype<float, double, bf16, f16>(x.dtype(), "rms_norm", [&](auto tag) {
          using T = typename decltype(tag)::type;
          using A = Accumulate<T>;
          launch(runtime,
                 kernels::RmsNormBackward<T>{x.data<T>(), data_or_null<T>(w.get()), dy.data<T>(),
                                             rstd.data<A>(), data_or_null<T>(dx),
                                             data_or_null<A>(dw_parts), rows, columns, per_part},
                 columns == 0 ? 0 : parts, 1);
        });
        Tensor dw;
        if (want_dw) dw = reduce_sum(dw_parts, {1, columns}).view({columns});
        return {dx, dw};
      });
}

}  // namespace sherd
