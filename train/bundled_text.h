// Texts that come with Debian, made ready on first use; nothing is fetched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sherd {

/// A text that a program of the system prints.
struct BundledText {
  std::string name;
  std::vector<std::string> command;
  std::string package;
  std::uint64_t size = 0;
  std::string sha256;
};

/// "kjv": the King James Bible, a verse a line behind its reference, from Debian's bible-kjv.
/// throws usage, with the names there are, for another
const BundledText& bundled_text(const std::string& name);

/// The text's path in `cache`, where it is put the first time; its size and hash are checked each
/// time. throws usage with the apt command if the program is missing, io if it prints another text
std::string prepare_bundled_text(const BundledText& text, const std::string& cache);

}  // namespace sherd
