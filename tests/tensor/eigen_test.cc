#include "tensor/eigen.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Floats = std::vector<float>;

TEST_CASE("Eigen sees a tensor's bytes, whatever its strides, and writes them") {
  const auto rt = Runtime::create();
  const Tensor a = Tensor::from<float>(rt, {2, 3}, Floats{1, 2, 3, 4, 5, 6});
  auto m = eigen_matrix<float>(a);
  CHECK(m.rows() == 2);
  CHECK(m(1, 2) == 6);
  const auto transposed = eigen_matrix<float>(a.transpose(0, 1));
  CHECK(transposed(2, 1) == 6);
  const Tensor product = Tensor::zeros(rt, {2, 2});
  eigen_matrix<float>(product) = m * transposed;
  CHECK(product.to_vector<float>() == Floats{14, 32, 32, 77});
  eigen_vector<float>(a.transpose(0, 1).slice(1, 1, 2).view({3})).setConstant(9);
  CHECK(a.to_vector<float>() == Floats{1, 2, 3, 9, 9, 9});
  m(0, 0) = -1;
  CHECK(a.to_vector<float>()[0] == -1);
  CHECK(eigen_matrix<float>(a.slice(1, 1, 3)).sum() == 2 + 3 + 9 + 9);
  CHECK(eigen_matrix<double>(Tensor::zeros(rt, {0, 3}, DType::f64)).size() == 0);
}

TEST_CASE("Eigen views refuse what they cannot see") {
  const auto rt = Runtime::create();
  CHECK_THROWS_WITH(eigen_matrix<float>(Tensor::zeros(rt, {3})), Catch::Contains("[3]"));
  CHECK_THROWS_WITH(eigen_vector<float>(Tensor::zeros(rt, {3, 1})), Catch::Contains("[3, 1]"));
  CHECK_THROWS_WITH(eigen_vector<double>(Tensor::zeros(rt, {3})), Catch::Contains("another dtype"));
  CHECK_THROWS_WITH(eigen_vector<float>(Tensor::zeros(Runtime::create({.device = kMeta}), {3})),
                    Catch::Contains("meta"));
}

}  // namespace
}  // namespace sherd
