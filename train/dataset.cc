#include "train/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "train/bundled_text.h"
#include "train/tokenized_text.h"

namespace sherd {
namespace {

std::vector<std::string> expand(const std::vector<std::string>& patterns, const char* key) {
  std::vector<std::string> paths;
  for (const auto& pattern : patterns) {
    const std::vector<std::string> found = expand_glob(pattern);
    check(!found.empty(),
          (std::string(key) + ": " + quoted(pattern, 500) + " names no file").c_str());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

bool is_token_file(const std::string& path) { return path.ends_with(".bin"); }

/// All texts, or all token files.
bool are_token_files(const std::vector<std::string>& paths) {
  const auto count = std::count_if(paths.begin(), paths.end(), is_token_file);
  check(count == 0 || count == static_cast<std::ptrdiff_t>(paths.size()),
        "data.files and data.val_files: texts and token files (.bin) cannot be mixed");
  return count > 0;
}

std::shared_ptr<const Tokenizer> tokenizer_of_texts(const DataSection& data,
                                                    const std::vector<std::string>& texts,
                                                    const DatasetOptions& options) {
  const std::string kind = data.tokenizer.value_or("byte");
  if (options.saved) {
    check(options.saved->kind() == kind,
          ("data.tokenizer: the run was trained with the tokenizer " + options.saved->kind() +
           ", not " + kind)
              .c_str());
    return options.saved;
  }
  if (kind == "byte") return make_byte_tokenizer();
  check(kind == "char", ("data.tokenizer: there is no tokenizer " + quoted(kind)).c_str());
  return char_tokenizer_of(texts, options.cache);
}

TokenSource open_files(const std::vector<std::string>& paths, const Tokenizer* texts_tokenizer,
                       const DatasetOptions& options) {
  std::vector<TokenFile> files;
  for (const auto& path : paths) {
    files.push_back(texts_tokenizer == nullptr ? TokenFile::open(path)
                                               : tokenized(path, *texts_tokenizer, options.cache));
  }
  return TokenSource(std::move(files));
}

/// What token files say about their vocabulary; they must agree.
std::optional<std::int64_t> vocab_of_files(const TokenSource& source) {
  std::optional<std::int64_t> vocab;
  for (const TokenFile& file : source.files()) {
    if (!file.vocab()) continue;
    check(!vocab || vocab == file.vocab(),
          (file.path() + ": its vocabulary has " + std::to_string(*file.vocab()) +
           " tokens, those before it " + std::to_string(vocab.value_or(0)))
              .c_str());
    vocab = file.vocab();
  }
  return vocab;
}

/// Files written with another vocabulary would decode to nonsense.
void check_same_tokenizer(const TokenSource& source, const Tokenizer& tokenizer) {
  const Sha256Digest ours = sha256(tokenizer.json());
  for (const TokenFile& file : source.files()) {
    check(!file.tokenizer() || *file.tokenizer() == ours,
          (file.path() + ": was written with another vocabulary than the tokenizer " +
           tokenizer.kind())
              .c_str());
  }
}

void check_enough(const TokenSource& source, std::int64_t context, const std::string& what) {
  check(source.size() > context,
        (what + ": " + std::to_string(source.size()) +
         " tokens are too few; a sample needs model.context + 1 = " + std::to_string(context + 1))
            .c_str());
}

std::int64_t rows(const Dataset& dataset, const DatasetOptions& options) {
  const std::optional<std::int64_t> known = dataset.tokenizer
                                                ? std::optional(dataset.tokenizer->vocab_size())
                                                : vocab_of_files(dataset.train);
  if (!options.vocab) {
    check(known.has_value(),
          "model.vocab: must be set, for the token files do not say their vocabulary");
    return *known;
  }
  check(!known || *options.vocab >= *known,
        ("model.vocab: " + std::to_string(*options.vocab) +
         " is less than the vocabulary of the data, " + std::to_string(known.value_or(0)))
            .c_str());
  return *options.vocab;
}

}  // namespace

Dataset open_dataset(const DataSection& data, const DatasetOptions& options) {
  check(options.context >= 1, "open_dataset: expected a context >= 1, got", options.context);
  const std::vector<std::string> paths =
      data.has_dataset()
          ? std::vector{prepare_bundled_text(bundled_text(data.dataset), options.cache)}
          : expand(data.files, "data.files");
  check(!paths.empty(), "data.files: expected at least one file");
  const std::vector<std::string> val_paths = expand(data.val_files, "data.val_files");
  std::vector<std::string> all = paths;
  all.insert(all.end(), val_paths.begin(), val_paths.end());

  Dataset out;
  const bool tokens = are_token_files(all);
  if (!tokens) {
    out.tokenizer = tokenizer_of_texts(data, paths, options);
  } else if (data.tokenizer) {
    check(*data.tokenizer == "byte" || options.saved,
          "data.tokenizer: token files bring no vocabulary of characters; leave it out");
    out.tokenizer = options.saved ? options.saved : make_byte_tokenizer();
  }
  const Tokenizer* texts_tokenizer = tokens ? nullptr : out.tokenizer.get();
  const TokenSource source = open_files(paths, texts_tokenizer, options);
  out.validation = open_files(val_paths, texts_tokenizer, options);
  out.train = source;
  if (tokens && out.tokenizer) {
    check_same_tokenizer(out.train, *out.tokenizer);
    check_same_tokenizer(out.validation, *out.tokenizer);
  }

  const char* name = data.has_dataset() ? "data.dataset" : "data.files";
  check_enough(source, options.context, name);
  if (!val_paths.empty()) {
    check_enough(out.validation, options.context, "data.val_files");
  } else if (data.held_out() > 0) {
    // As nanoGPT cuts: the first share, rounded down, is for training.
    const auto cut =
        static_cast<std::int64_t>((1 - data.held_out()) * static_cast<double>(source.size()));
    out.train = source.part(0, cut);
    out.validation = source.part(cut, source.size());
    const std::string part =
        std::string(name) + " without data.val_fraction = " + detail::concat(data.held_out());
    check_enough(out.train, options.context, part);
    check_enough(out.validation, options.context,
                 "data.val_fraction = " + detail::concat(data.held_out()) + " of " + name);
  }

  out.vocab = rows(out, options);
  out.train.check_vocab(out.vocab);
  out.validation.check_vocab(out.vocab);
  return out;
}

}  // namespace sherd
