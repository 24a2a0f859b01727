// Text files as token files, made once and kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/token_file.h"
#include "train/tokenizer.h"

namespace sherd {

/// The characters of all files; found once, then kept in `cache` for as long as size and time of
/// each file stay. throws usage naming the file on invalid UTF-8, io if a file cannot be read or is
/// empty
std::unique_ptr<Tokenizer> char_tokenizer_of(const std::vector<std::string>& paths,
                                             const std::string& cache);

/// The text's ids; a byte tokenizer takes the text itself, any other writes a token file to `cache`
/// the first time. throws usage naming the file and the character that the tokenizer does not know
TokenFile tokenized(const std::string& path, const Tokenizer& tokenizer, const std::string& cache);

}  // namespace sherd
