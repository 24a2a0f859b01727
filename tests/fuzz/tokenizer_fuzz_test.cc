// Any bytes as a saved tokenizer, and as a text: an Error, or ids that decode to the same text.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "train/tokenizer.h"

namespace {

void round_trip(const sherd::Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) std::abort();
  }
  if (tokenizer.decode(ids) != text) std::abort();
}

void as_saved(const std::string& text) {
  std::unique_ptr<sherd::Tokenizer> tokenizer;
  try {
    tokenizer = sherd::parse_tokenizer(text);
  } catch (const sherd::Error& e) {
    if (e.kind() != sherd::ErrorKind::io) std::abort();
    return;
  }
  if (sherd::parse_tokenizer(tokenizer->json())->json() != tokenizer->json()) std::abort();
  try {
    round_trip(*tokenizer, text);
  } catch (const sherd::Error& e) {
    if (e.kind() != sherd::ErrorKind::usage) std::abort();
  }
}

void as_text(const std::string& text) {
  round_trip(*sherd::make_byte_tokenizer(), text);
  sherd::CharCollector collector;
  try {
    collector.add(text);
  } catch (const sherd::Error&) {
    if (sherd::find_invalid_utf8(text) == std::string::npos) std::abort();
    return;
  }
  if (sherd::find_invalid_utf8(text) != std::string::npos) std::abort();
  if (!text.empty()) round_trip(*sherd::make_char_tokenizer(collector.code_points()), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  as_saved(text);
  as_text(text);
  return 0;
}
