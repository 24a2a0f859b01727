#include "train/sampling.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f};

/// How often each token comes over an even grid of u.
std::vector<int> counts(const SamplingOptions& options, int draws = 10000) {
  std::vector<int> n(kLogits.size());
  for (int i = 0; i < draws; ++i)
    ++n[static_cast<std::size_t>(choose_token(kLogits, options, (i + 0.5) / draws))];
  return n;
}

}  // namespace

TEST_CASE("temperature 0 takes the most likely token, the first of equals") {
  for (const double u : {0.0, 0.5, 0.999}) CHECK(choose_token(kLogits, {.temperature = 0}, u) == 1);
}

TEST_CASE("tokens are drawn by their probabilities") {
  const auto n = counts({.temperature = 1});
  const double z = std::exp(1) + 2 * std::exp(3) + std::exp(2);
  CHECK(std::abs(n[0] - 10000 * std::exp(1) / z) < 2);
  CHECK(std::abs(n[1] - 10000 * std::exp(3) / z) < 2);
  CHECK(std::abs(n[2] - 10000 * std::exp(2) / z) < 2);
  // A low temperature sharpens, a high one flattens.
  CHECK(counts({.temperature = 0.1})[0] == 0);
  CHECK(std::abs(counts({.temperature = 1e6})[0] - 2500) < 5);
}

TEST_CASE("top_k and top_p leave the most likely") {
  CHECK(counts({.temperature = 1, .top_k = 1}) == std::vector<int>{0, 10000, 0, 0});
  CHECK(counts({.temperature = 1, .top_k = 2}) == std::vector<int>{0, 5000, 0, 5000});
  CHECK(counts({.temperature = 1, .top_k = 9}) == counts({.temperature = 1}));
  // Tokens 1 and 3 have 0.40 each, token 2 has 0.15.
  CHECK(counts({.temperature = 1, .top_p = 0.1}) == std::vector<int>{0, 10000, 0, 0});
  CHECK(counts({.temperature = 1, .top_p = 0.7}) == std::vector<int>{0, 5000, 0, 5000});
  const auto n = counts({.temperature = 1, .top_p = 0.9});
  CHECK(n[0] == 0);
  CHECK(n[2] > 1000);
}

TEST_CASE("the ends of u are tokens") {
  CHECK(choose_token(kLogits, {.temperature = 1}, 0) == 1);
  CHECK(choose_token(kLogits, {.temperature = 1}, std::nextafter(1.0, 0.0)) == 0);
  CHECK(choose_token(std::vector<float>{5}, {}, 0.7) == 0);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(choose_token(std::vector<float>{-inf, 0, -inf}, {.temperature = 1}, 0.99) == 1);
}

TEST_CASE("bad options and logits are refused") {
  CHECK_THROWS_AS(SamplingOptions{.temperature = -1}.validate(), Error);
  CHECK_THROWS_AS(SamplingOptions{.temperature = NAN}.validate(), Error);
  CHECK_THROWS_AS(SamplingOptions{.top_k = -1}.validate(), Error);
  CHECK_THROWS_AS(SamplingOptions{.top_p = 0}.validate(), Error);
  CHECK_THROWS_AS(SamplingOptions{.top_p = 1.5}.validate(), Error);
  CHECK_NOTHROW(SamplingOptions{}.validate());
  CHECK_THROWS_AS(choose_token({}, {}, 0), Error);
  CHECK_THROWS_AS(choose_token(std::vector<float>{0, NAN}, {}, 0), Error);
}

}  // namespace sherd
