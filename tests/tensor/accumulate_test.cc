#include "tensor/kernels/accumulate.h"

#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

/// total + x in the wider of their types, rounded once to total's.
void check_accumulate(const RuntimePtr& runtime, DType total_dtype, DType x_dtype, int64_t n) {
  INFO(total_dtype << " += " << x_dtype << " [" << n << "] at " << name_of(runtime->isa()));
  const Tensor total = test::uniform(runtime, {n}, 1, -2, 2, total_dtype);
  const Tensor x = test::uniform(runtime, {n}, 2, -2, 2, x_dtype);
  const auto a = total.to_vector<double>(), b = x.to_vector<double>();
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    sum[i] = total_dtype == DType::f64 ? a[i] + b[i]
                                       : static_cast<float>(a[i]) + static_cast<float>(b[i]);
  const auto want = test::tensor_of(runtime, {n}, sum, total_dtype).to_vector<double>();
  const uint64_t version = total.storage()->version();
  accumulate(total, x);
  CHECK(test::same_bits(total.to_vector<double>(), want));
  CHECK(total.storage()->version() == version + 1);
}

TEST_CASE("accumulate adds every pair of dtypes that it takes") {
  for (const Isa isa : test::all_isas())
    for (const int threads : {1, 2})
      for (const int64_t n : {0, 1, 21, 40001}) {
        const auto rt = Runtime::create({.threads = threads, .isa = isa});
        for (const DType x : {DType::f32, DType::bf16, DType::f16})
          check_accumulate(rt, DType::f32, x, n);
        for (const DType both : {DType::f64, DType::bf16, DType::f16})
          check_accumulate(rt, both, both, n);
      }
}

TEST_CASE("accumulate refuses other dtypes, shapes and strides") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::zeros(rt, {2, 3});
  CHECK_THROWS_WITH(accumulate(t, Tensor::zeros(rt, {2, 3}, DType::f64)), Catch::Contains("f64"));
  CHECK_THROWS_WITH(accumulate(t, Tensor::zeros(rt, {3, 2})), Catch::Contains("[3, 2]"));
  CHECK_THROWS_WITH(accumulate(t, Tensor::zeros(rt, {3, 2}).transpose(0, 1)),
                    Catch::Contains("contiguous"));
}

}  // namespace
}  // namespace sherd
