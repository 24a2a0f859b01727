// Dims: C columns; R rows, all dims before the last.
#include "autograd/ops/layer_norm.h"

#include "autograd/ops/layer_norm_kernels.h"
#include "autograd/ops/norm_rows.h"
#include "tensor/kernels/launch.h"

namespace sherd {

using detail::data_or_null;

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const Context in("layer_norm");
  check(x.shape().size() > 0, "wants at least one dim, x is a scalar");
  detail::check_norm_parameter(weight, x, "weight");
  detail::check_norm_parameter(bias, x, "bias");
  const Tensor x_RC = x.value().contiguous();
  const Tensor w = weight ? weight.value().contiguous() : Tensor();
  const Tensor b = bias ? bias.value().contiguous() : Tensor();
  Runtime& runtime = *x.runtime();
  const int64_t columns = x.size(-1);
  const int64_t rows = x.shape().rows(x.shape().size() - 1);
  const DType sums = accumulate_dtype(x.dtype());

  const Tensor y = Tensor::empty_like(x_RC);
  const Tensor mean = Tensor::empty(x.runtime(), {rows}, sums);
  const Tensor rstd = Tensor::empty(x.runtime(), {rows}, sums);
  on_dtype<float, double, bf16, f16>(x.dtype(), "layer_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Accumulate<T>;
    launch(
        runtime,
        kernels::LayerNorm<T>{x_RC.data<T>(), data_or_null<T>(w), data_or_null<T>(b), y.data<T>(),
                              mean.data<A>(), rstd.data<A>(), columns, static_cast<A>(eps)},
        columns == 0 ? 0 : rows, block_of(columns));
  });

  const bool want_dx = x.requires_grad();
  const bool want_sums = (weight && weight.requires_grad()) || (bias && bias.requires_grad());
  return x.tape().record(
      "layer_norm", y, {x, weight, bias},
      [x_RC = Saved(x_RC), w = Saved(w), mean, rstd, want_dx, want_sums, has_bias = bool(bias),
       rows, columns, sums](const Tensor& dy_any) -> Grads {
        const Tensor x = x_RC.get();
        const Tensor dy = dy_any.contiguous();
        const int64_t per_part = detail::rows_per_part(rows);
        const int64_t parts = (rows + per_part - 1) / per_part;
        Runtime& runtime = *x.runtime();
        Tensor dx, dw, db, dw_parts, db_parts;
        if (want_dx) dx = Tensor::empty_like(x);
        if (want_sums) {
          dw = Tensor::empty(x.runtime(), {columns}, sums);
          db = Tensor::empty(x.runtime(), {columns}, sums);
          const CategoryScope staging(runtime, Category::staging);
          dw_parts = Tensor::empty(x.runtime(), {parts, columns}, sums);
          db_parts = Tensor::empty(x.runtime(), {parts, columns}, sums);
        }
        on_dtype<float, double, bf16, f16>(x.dtype(), "layer_norm", [&](auto tag) {
          using T = typename decltype(tag)::type;
          using A = Accumulate<T>;
          launch(runtime,
                 kernels::LayerNormBackward<T>{x.data<T>(), data_or_null<T>(w.get()), dy.data<T>(),
                                               mean.data<A>(), rstd.data<A>(), data_or_null<T>(dx),
                                               data_or_null<A>(dw_parts), data_or_null<A>(db_parts),
                                               rows, columns, per_part},
                 columns == 0 ? 0 : parts, 1);
          if (!want_sums) return;
          for (const auto& [from, to] : {std::pair(dw_parts, dw), std::pair(db_parts, db)})
            launch(runtime,
                   kernels::SumParts<A>{from.template data<A>(), to.template data<A>(), parts,
                                        columns},
                   columns, 256);
        });
        return {dx, w.get() ? dw : Tensor(), has_bias ? db : Tensor()};
      });
}

}  // namespace sherd
