// Any bytes as a configuration, and as an override: an Error or a struct that survives being
// written and read again.
#include <cstdint>
#include <cstdlib>

#include "base/toml.h"

namespace {

struct Inner {
  double a = 1;
  std::int64_t b = 2;
  sherd::Bytes c;
  void fields(auto& v) {
    v("a", a, "");
    v("b", b, "");
    v("c", c, "");
  }
  void validate() const { sherd::check_field(b != 3, "b", "expected another, got", b); }
  bool operator==(const Inner&) const = default;
};

struct Outer {
  bool flag = false;
  float ratio = 1;
  std::string word = "x";
  std::vector<std::string> words;
  std::vector<std::int64_t> counts;
  std::vector<double> numbers;
  std::optional<double> maybe;
  std::optional<Inner> inner_maybe;
  std::variant<bool, std::int64_t, Inner> choice = true;
  Inner inner;
  std::vector<Inner> list;
  void fields(auto& v) {
    v("flag", flag, "");
    v("ratio", ratio, "");
    v("word", word, "");
    v("words", words, "");
    v("counts", counts, "");
    v("numbers", numbers, "");
    v("maybe", maybe, "");
    v("inner_maybe", inner_maybe, "");
    v("choice", choice, "");
    v("inner", inner, "");
    v("list", list, "");
  }
  bool operator==(const Outer&) const = default;
};

// noexcept: what was accepted once must not be refused when read back.
void round_trip(const Outer& outer) noexcept {
  const std::string text = sherd::write_toml(outer);
  if (!(sherd::read_toml<Outer>(text, "written") == outer)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    round_trip(sherd::read_toml<Outer>(text, "fuzz"));
  } catch (const sherd::Error& e) {
    if (e.kind() != sherd::ErrorKind::usage) std::abort();
  }
  try {
    const std::vector<std::string> overrides = {text};
    round_trip(sherd::read_toml<Outer>("", "fuzz", overrides));
  } catch (const sherd::Error& e) {
    if (e.kind() != sherd::ErrorKind::usage) std::abort();
  }
  return 0;
}
