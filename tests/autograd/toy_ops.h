// Ops as a user writes them in a tree of their own: a loop, a record(), nothing of ours edited.
#pragma once

#include "autograd/tape.h"

namespace sherd::test {

template <class F>
Tensor map(const Tensor& a, const Tensor& b, F&& f) {
  Tensor y = Tensor::empty_like(a);
  const auto va = a.to_vector<float>();
  const auto vb = b.to_vector<float>();
  for (size_t i = 0; i < va.size(); ++i) y.data<float>()[i] = f(va[i], vb[i]);
  return y;
}

inline Variable toy_mul(const Variable& a, const Variable& b) {
  const Context in("toy_mul");
  return a.tape().record("toy_mul",
                         map(a.value(), b.value(), [](float x, float y) { return x * y; }), {a, b},
                         [a = Saved(a), b = Saved(b)](const Tensor& dy) -> Grads {
                           const auto times = [](float x, float y) { return x * y; };
                           return {map(dy, b.get(), times), map(dy, a.get(), times)};
                         });
}

/// Returns the same tensor as both gradients, which the tape must not write into.
inline Variable toy_add(const Variable& a, const Variable& b) {
  const Context in("toy_add");
  return a.tape().record("toy_add",
                         map(a.value(), b.value(), [](float x, float y) { return x + y; }), {a, b},
                         [](const Tensor& dy) -> Grads {
                           return {dy, dy};
                         });
}

inline Variable toy_sum(const Variable& x) {
  const Context in("toy_sum");
  float total = 0;
  for (const float v : x.value().to_vector<float>()) total += v;
  return x.tape().record(
      "toy_sum", Tensor::full(x.runtime(), {}, total), {x},
      [shape = x.shape()](const Tensor& dy) -> Grads { return {dy.expand(shape)}; });
}

/// y = table[row]: its gradient touches one row, so it is added to the total.
inline Variable toy_row(const Variable& table, int64_t row) {
  const Context in("toy_row");
  Tensor y = table.value().slice(0, row, row + 1).clone();
  return table.tape().record("toy_row", y, {table}, [row](const Tensor& dy) -> Grads {
    const auto add = [row, dy](const Tensor& total) {
      const auto v = dy.to_vector<float>();
      float* to = total.data<float>() + row * static_cast<int64_t>(v.size());
      for (size_t i = 0; i < v.size(); ++i) to[i] += v[i];
    };
    return {Grad(std::function<void(const Tensor&)>(add))};
  });
}

/// Two outputs: x + 1 and x · 2.
inline std::vector<Variable> toy_pair(const Variable& x) {
  std::vector<Tensor> outs = {map(x.value(), x.value(), [](float a, float) { return a + 1; }),
                              map(x.value(), x.value(), [](float a, float) { return a * 2; })};
  return x.tape().record("toy_pair", std::move(outs), {x},
                         [x = x.value()](const std::vector<Tensor>& dys) -> Grads {
                           Tensor dx = Tensor::zeros(x.runtime(), x.shape());
                           if (dys[0]) dx = map(dx, dys[0], [](float a, float b) { return a + b; });
                           if (dys[1])
                             dx = map(dx, dys[1], [](float a, float b) { return a + 2 * b; });
                           return {dx};
                         });
}

}  // namespace sherd::test
