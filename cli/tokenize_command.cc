// sherd tokenize: text files to one token file.
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "train/cache_folder.h"
#include "train/tokenized_text.h"

namespace sherd {
namespace {

struct TokenizeCommand {
  std::vector<std::string> patterns;
  std::string kind = "byte";
  std::string out;

  void run() const;
};

void TokenizeCommand::run() const {
  check(kind == "byte" || kind == "char", "--tokenizer: expected byte or char, got", kind);
  std::vector<std::string> paths;
  for (const auto& pattern : patterns) {
    const auto found = expand_glob(pattern);
    check(!found.empty(), "there is no file", pattern);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  const std::string cache = default_cache_folder();
  const auto tokenizer = kind == "byte" ? make_byte_tokenizer() : char_tokenizer_of(paths, cache);
  TokenFileWriter writer(out, tokenizer->vocab_size(), sha256(tokenizer->json()));
  std::int64_t total = 0;
  std::vector<std::int32_t> ids;
  for (const auto& path : paths) {
    const Context in(path);
    const TokenFile file = tokenized(path, *tokenizer, cache);
    constexpr std::int64_t kPiece = std::int64_t{1} << 20;
    for (std::int64_t at = 0; at < file.size(); at += kPiece) {
      ids.resize(static_cast<std::size_t>(std::min(kPiece, file.size() - at)));
      file.read(at, ids);
      writer.append(ids);
    }
    total += file.size();
  }
  writer.commit();
  write_file(out + ".tokenizer.json", tokenizer->json() + '\n');
  std::cout << out << ": " << total << " tokens, vocabulary " << tokenizer->vocab_size() << '\n';
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenize", "write text files as one token file (.bin) for data.files");
  const auto c = std::make_shared<TokenizeCommand>();
  command->add_option("FILES", c->patterns, "texts; shell patterns")->required();
  command->add_option("--tokenizer", c->kind, "byte or char")->capture_default_str();
  command->add_option("-o,--output", c->out, "the token file to write")->required();
  command->callback([c] { c->run(); });
}

}  // namespace sherd
