#include "train/generate.h"

#include <algorithm>

#include "base/error.h"
#include "nn/init.h"
#include "nn/models/gpt2.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

struct Setup {
  RuntimePtr runtime = Runtime::create({.threads = 2});
  Tape tape{runtime};
  Gpt2 model;
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();

  explicit Setup(DType dtype = DType::f32)
      : model(tape, {.layers = 2,
                     .heads = 2,
                     .channels = 32,
                     .vocab = 260,
                     .context = 12,
                     .dtype = dtype}) {
    init_parameters(model, 3);
    // So that neighbours matter: fresh weights are too small for that.
    for (auto& block : model.blocks)
      block.attn.qkv.weight.value().copy_from(scaled(block.attn.qkv.weight.value(), 20));
  }
  static Tensor scaled(const Tensor& t, float by) {
    auto values = t.to_vector<float>();
    for (float& v : values) v *= by;
    return Tensor::from(t.runtime(), t.shape(), values);
  }

  std::string text(const std::string& prompt, const GenerateOptions& options) {
    std::string out;
    generate(model, *tokenizer, prompt, options, [&](const std::string& piece) { out += piece; });
    return out;
  }

  /// The same without a cache: every token from a whole forward pass.
  std::string greedy_anew(const std::string& prompt, int tokens) {
    const NoGrad no_grad(tape);
    std::vector<std::int32_t> ids = tokenizer->encode(prompt);
    for (int i = 0; i < tokens; ++i) {
      const Tensor input = Tensor::from(runtime, {1, static_cast<std::int64_t>(ids.size())}, ids);
      const auto logits = model.next_logits(input).value().to_vector<float>();
      ids.push_back(static_cast<std::int32_t>(
          std::max_element(logits.begin(), logits.begin() + 256) - logits.begin()));
    }
    return tokenizer->decode(ids).substr(prompt.size());
  }
};

GenerateOptions options(std::int64_t tokens, double temperature, std::uint64_t seed = 1) {
  GenerateOptions o;
  o.tokens = tokens;
  o.seed = seed;
  o.sampling.temperature = temperature;
  return o;
}

}  // namespace

TEST_CASE("with the cache come the same tokens as without") {
  Setup s;
  CHECK(s.text("ab", options(10, 0)) == s.greedy_anew("ab", 10));
  CHECK(s.text("abcdefghijkl", options(1, 0)) == s.greedy_anew("abcdefghijkl", 1));
}

TEST_CASE("a full context is read anew from its last half") {
  Setup s;
  const std::string prompt = "abcdefghijkl";
  const std::string all = s.text(prompt, options(20, 0));
  CHECK(all.size() == 20);
  // After the first new token the cache is full: the next follows from the last 6.
  const std::string window = (prompt + all.substr(0, 1)).substr(7);
  CHECK(all.substr(1, 6) == s.greedy_anew(window, 6));
}

TEST_CASE("equal seeds give equal text, others another") {
  Setup s;
  const std::string a = s.text("x", options(11, 1, 5));
  CHECK(a == s.text("x", options(11, 1, 5)));
  CHECK(a != s.text("x", options(11, 1, 6)));
  CHECK(s.text("x", options(0, 1)).empty());
  // A longer text begins as the shorter one.
  CHECK(s.text("x", options(5, 1, 5)) == a.substr(0, 5));
}

TEST_CASE("half precision generates too") {
  Setup s(DType::bf16);
  CHECK(s.text("x", options(11, 1)).size() == 11);
}

TEST_CASE("generating records nothing") {
  Setup s;
  s.text("x", options(3, 1));
  CHECK(s.tape.recorded() == 0);
}

TEST_CASE("what cannot be a prompt is refused") {
  Setup s;
  CHECK_THROWS_WITH(s.text("", options(1, 1)), Catch::Contains("empty"));
  CHECK_THROWS_WITH(s.text("abcdefghijklm", options(1, 1)),
                    Catch::Contains("longer than the model's context: 13 tokens, at most 12"));
  CHECK_THROWS_AS(s.text("x", options(-1, 1)), Error);
  s.tokenizer = make_char_tokenizer({'a', 'b'});
  CHECK_THROWS_WITH(s.text("z", options(1, 1)), Catch::Contains("\"z\""));
}

}  // namespace sherd
