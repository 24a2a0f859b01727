#include "tensor/print.h"

#include <cmath>
#include <sstream>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

std::string text(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST_CASE("tensors print as NumPy's arrays") {
  const auto rt = Runtime::create();
  const auto floats = [&](const Shape& shape, const std::vector<float>& v) {
    return Tensor::from<float>(rt, shape, v);
  };
  CHECK(text(floats({}, {2.5})) == "2.5");
  CHECK(text(floats({3}, {1, -2.25, 100})) == "[   1. -2.25  100.]");
  CHECK(text(floats({2, 2}, {1, 2, 3, 4})) == "[[1. 2.]\n [3. 4.]]");
  CHECK(text(floats({2, 2}, {1, 2, 3, 4}).transpose(0, 1)) == "[[1. 3.]\n [2. 4.]]");
  CHECK(text(floats({2, 1, 2}, {1, 2, 3, 4})) == "[[[1. 2.]]\n\n [[3. 4.]]]");
  CHECK(text(floats({3}, {NAN, INFINITY, 1e20f})) == "[  nan   inf 1e+20]");
  CHECK(text(floats({2}, {1.0f / 3, 1}).to(DType::bf16)) == "[0.333984       1.]");
  CHECK(text(Tensor::from<int32_t>(rt, {3}, std::vector<int32_t>{1, -20, 3})) == "[  1 -20   3]");
  CHECK(text(Tensor::from<uint8_t>(rt, {2}, std::vector<uint8_t>{65, 200})) == "[ 65 200]");
  CHECK(text(Tensor::full(rt, {2}, 1, DType::boolean)) == "[True True]");
}

TEST_CASE("large tensors print their corners; those without bytes what they are") {
  const auto rt = Runtime::create();
  std::vector<int64_t> v(50 * 30);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int64_t>(i);
  CHECK(text(Tensor::from<int64_t>(rt, {50, 30}, v)) ==
        "[[   0    1    2 ...   27   28   29]\n"
        " [  30   31   32 ...   57   58   59]\n"
        " [  60   61   62 ...   87   88   89]\n"
        " ...\n"
        " [1410 1411 1412 ... 1437 1438 1439]\n"
        " [1440 1441 1442 ... 1467 1468 1469]\n"
        " [1470 1471 1472 ... 1497 1498 1499]]");
  CHECK(text(Tensor::zeros(rt, {400, 3})).substr(0, 23) == "[[0. 0. 0.]\n [0. 0. 0.]");
  CHECK(text(Tensor::zeros(rt, {1 << 20})) == "[0. 0. 0. ... 0. 0. 0.]");
  CHECK(text(Tensor::zeros(rt, {0, 3})) == "[] (f32 [0, 3])");
  CHECK(text(Tensor()) == "(empty handle)");
  CHECK(text(Tensor::zeros(Runtime::create({.device = kMeta}), {2})) == "(meta f32 [2])");
  const Tensor gone = Tensor::zeros(rt, {2});
  gone.storage()->release();
  CHECK(text(gone) == "(released f32 [2])");
}

}  // namespace
}  // namespace sherd
