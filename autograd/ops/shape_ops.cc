#include "autograd/ops/shape_ops.h"

#include <utility>

#include "tensor/kernels/reduce.h"

namespace sherd {

namespace {

Tensor reshaped(const Tensor& x, const Shape& shape) {
  return x.views_as(shape) ? x.view(shape) : x.contiguous().view(shape);
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  const Context in("reshape");
  return x.tape().record(
      "reshape", reshaped(x.value(), shape), {x},
      [shape = x.shape()](const Tensor& dy) -> Grads { return {reshaped(dy, shape)}; });
}

Variable transpose(const Variable& x, int a, int b) {
  const Context in("transpose");
  return x.tape().record("transpose", x.value().transpose(a, b), {x},
                         [a, b](const Tensor& dy) -> Grads { return {dy.transpose(a, b)}; });
}

Variable permute(const Variable& x, std::span<const int> order) {
  const Context in("permute");
  Tensor y = x.value().permute(order);
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(x.shape().resolve(order[i]))] = static_cast<int>(i);
  return x.tape().record(
      "permute", std::move(y), {x},
      [back = std::move(back)](const Tensor& dy) -> Grads { return {dy.permute(back)}; });
}

Variable permute(const Variable& x, std::initializer_list<int> order) {
  return permute(x, std::span(order.begin(), order.size()));
}

Variable slice(const Variable& x, int dim, int64_t begin, int64_t end) {
  const Context in("slice");
  return x.tape().record("slice", x.value().slice(dim, begin, end), {x},
                         [shape = x.shape(), dim, begin, end](const Tensor& dy) -> Grads {
                           const Tensor dx = Tensor::zeros(dy.runtime(), shape, dy.dtype());
                           dx.slice(dim, begin, end).copy_from(dy);
                           return {dx};
                         });
}

Variable expand(const Variable& x, const Shape& shape) {
  const Context in("expand");
  return x.tape().record(
      "expand", x.value().expand(shape), {x},
      [shape = x.shape()](const Tensor& dy) -> Grads { return {sum_to(dy, shape)}; });
}

std::vector<Variable> split(const Variable& x, int dim, const std::vector<int64_t>& sizes) {
  const Context in("split");
  dim = x.shape().resolve(dim);
  std::vector<Tensor> parts;
  int64_t end = 0;
  for (const int64_t size : sizes) {
    check(size >= 0 && size <= x.size(dim) - end, "the sizes exceed dim", dim, "of", x.shape());
    parts.push_back(x.value().slice(dim, end, end + size));
    end += size;
  }
  check(end == x.size(dim), "the sizes add up to", end, "but dim", dim, "of", x.shape(), "differs");
  return x.tape().record("split", std::move(parts), {x},
                         [shape = x.shape(), runtime = x.runtime(), dtype = x.dtype(), dim,
                          sizes](const std::vector<Tensor>& dys) -> Grads {
                           Tensor dx = Tensor::joined(dys, dim);
                           if (dx) return {dx};
                           dx = Tensor::empty(runtime, shape, dtype);
                           int64_t begin = 0;
                           for (size_t i = 0; i < sizes.size(); ++i) {
                             const Tensor part = dx.slice(dim, begin, begin + sizes[i]);
                             begin += sizes[i];
                             if (dys[i])
                               part.copy_from(dys[i]);
                             else
                               part.fill(0);
                           }
                           return {dx};
                         });
}

Variable concat(const std::vector<Variable>& xs, int dim) {
  const Context in("concat");
  check(!xs.empty(), "wants at least one tensor");
  dim = xs[0].shape().resolve(dim);
  Shape shape = xs[0].shape();
  shape[dim] = 0;
  std::vector<int64_t> ends;
  for (const Variable& x : xs) {
    Shape like = x.shape();
    check(like.size() == shape.size() && x.dtype() == xs[0].dtype(),
          "tensors differ in dtype or number of dims:", describe(xs[0].value()), "and",
          describe(x.value()));
    like[dim] = shape[dim];
    check(like == shape, "shapes differ beside dim", dim, ":", xs[0].shape(), "and", x.shape());
    shape[dim] += x.size(dim);
    ends.push_back(shape[dim]);
  }
  const Tensor y = Tensor::empty(xs[0].runtime(), shape, xs[0].dtype());
  int64_t begin = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    y.slice(dim, begin, ends[i]).copy_from(xs[i].value());
    begin = ends[i];
  }
  return xs[0].tape().record("concat", y, xs, [dim, ends](const Tensor& dy) -> Grads {
    Grads grads;
    int64_t begin = 0;
    for (const int64_t end : ends) {
      grads.emplace_back(dy.slice(dim, begin, end));
      begin = end;
    }
    return grads;
  });
}

}  // namespace sherd
