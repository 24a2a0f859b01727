#include "train/generate.h"

#include <vector>

#include "base/error.h"
#include "tensor/random.h"

namespace sherd {
namespace {

/// In [0, 1), of draw i.
double uniform(RandomKey key, std::uint64_t i) {
  const auto words = random_words(key, i);
  return static_cast<double>((std::uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

}  // namespace

void generate(const LanguageModel& model, const Tokenizer& tokenizer, std::string_view prompt,
              const GenerateOptions& options, const std::function<void(const std::string&)>& emit) {
  options.sampling.validate();
  check(options.tokens >= 0, "tokens: expected >= 0, got", options.tokens);
  std::vector<std::int32_t> ids = tokenizer.encode(prompt);
  const std::int64_t context = model.sizes().context;
  const auto length = static_cast<std::int64_t>(ids.size());
  check(length > 0, "the prompt is empty; the model needs something to go on from");
  check(length <= context, "the prompt is longer than the model's context:", length,
        "tokens, at most", context);

  Tape& tape = model.tape();
  const NoGrad no_grad(tape);
  const RuntimePtr& runtime = tape.runtime();
  const RandomKey key = RandomKey{options.seed, 0}.derive("generate");
  KvCache cache = model.make_cache();
  std::vector<std::int32_t> unread = ids;  // tokens that the cache lacks
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    if (cache.length() == context) {
      cache.clear();
      unread.assign(ids.end() - (context + 1) / 2, ids.end());
    }
    const Tensor input =
        Tensor::from(runtime, {1, static_cast<std::int64_t>(unread.size())}, unread);
    const std::vector<float> logits = model.next_logits(input, &cache).value().to_vector<float>();
    const std::int32_t id =
        choose_token(std::span(logits).first(static_cast<std::size_t>(tokenizer.vocab_size())),
                     options.sampling, uniform(key, static_cast<std::uint64_t>(i)));
    ids.push_back(id);
    unread = {id};
    emit(tokenizer.decode(unread));
  }
}

}  // namespace sherd
