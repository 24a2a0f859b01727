#include "nn/init.h"

#include <algorithm>

#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::same_bits;

TEST_CASE("any rows of a parameter can be made alone, and equal the whole's") {
  const auto rt = Runtime::create();
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f64);
  for (const Init init : {Init::normal(0.02), Init::uniform(0.5), Init::ones()})
    for (const int64_t columns : {1, 3, 64}) {
      const RandomKey key = initial_key(5, "blocks.0.mlp.up.weight");
      const Tensor whole = Tensor::empty(rt, {13, columns}, dtype);
      fill_initial(whole, init, key);
      for (int64_t begin = 0; begin <= 13; ++begin)
        for (const int64_t end : {begin, std::min<int64_t>(13, begin + 3), int64_t{13}}) {
          const Tensor rows = Tensor::empty(rt, {end - begin, columns}, dtype);
          fill_initial(rows, init, key, begin);
          CHECK(
              same_bits(rows.to_vector<double>(), whole.slice(0, begin, end).to_vector<double>()));
        }
    }
  const Tensor vector = Tensor::empty(rt, {31}, dtype);
  fill_initial(vector, Init::normal(1), initial_key(5, "b"));
  const Tensor part = Tensor::empty(rt, {4}, dtype);
  fill_initial(part, Init::normal(1), initial_key(5, "b"), 7);
  CHECK(same_bits(part.to_vector<double>(), vector.slice(0, 7, 11).to_vector<double>()));
}

}  // namespace
}  // namespace sherd
