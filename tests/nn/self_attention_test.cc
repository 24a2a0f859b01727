#include "nn/self_attention.h"

#include "nn/init.h"
#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("a token sees those before it only, and itself") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  SelfAttention layer(tape, {.channels = 6, .heads = 2});
  init_parameters(layer, 1);
  const Tensor x = Tensor::empty(rt, {1, 5, 6});
  fill_initial(x, Init::normal(1), initial_key(1, "x"));
  const Tensor before = layer.forward(tape.constant(x), {}).value();
  CHECK(before.shape() == x.shape());
  x.slice(1, 3, 4).fill(2);
  const Tensor after = layer.forward(tape.constant(x), {}).value();
  for (int64_t t = 0; t < 5; ++t) {
    const auto a = before.slice(1, t, t + 1).to_vector<double>();
    const auto b = after.slice(1, t, t + 1).to_vector<double>();
    if (t < 3)
      CHECK(test::same_bits(a, b));
    else
      CHECK(a != b);
  }
}

TEST_CASE("heads that do not divide the channels are refused") {
  Tape tape(Runtime::create());
  const auto make = [&](int64_t heads) {
    const SelfAttention layer(tape, {.channels = 6, .heads = heads});
  };
  CHECK_THROWS_WITH(make(4),
                    Catch::Contains("must divide") && Catch::Contains("4") && Catch::Contains("6"));
  CHECK_THROWS_WITH(make(0), Catch::Contains("must divide"));
}

}  // namespace
}  // namespace sherd
