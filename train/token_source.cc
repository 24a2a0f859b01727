#include "train/token_source.h"

#include <algorithm>

#include "base/error.h"

namespace sherd {
namespace {

[[noreturn]] void fail_id(const TokenFile& file, std::int64_t at, std::int64_t id,
                          std::int64_t vocab) {
  fail((file.path() + ": token " + std::to_string(at) + " is " + std::to_string(id) +
        ", not below the vocabulary of " + std::to_string(vocab))
           .c_str());
}

}  // namespace

TokenSource::TokenSource(std::vector<TokenFile> files)
    : files_(std::make_shared<const std::vector<TokenFile>>(std::move(files))) {
  for (const TokenFile& file : *files_) {
    end_ += file.size();
    ends_.push_back(end_);
  }
}

void TokenSource::read(std::int64_t at, std::span<std::int32_t> ids) const {
  const auto count = static_cast<std::int64_t>(ids.size());
  check(at >= 0 && at <= size() && count <= size() - at, "token_source: read of", count,
        "tokens at", at, "of", size());
  at += begin_;
  auto i =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  while (!ids.empty()) {
    const TokenFile& file = (*files_)[i];
    const std::int64_t inside = at - (ends_[i] - file.size());
    const auto n = std::min<std::int64_t>(static_cast<std::int64_t>(ids.size()), ends_[i] - at);
    const auto part = ids.first(static_cast<std::size_t>(n));
    file.read(inside, part);
    std::int32_t largest = 0;
    for (const std::int32_t id : part) largest = std::max(largest, id);
    if (largest >= vocab_) [[unlikely]] {
      const auto bad =
          std::find_if(part.begin(), part.end(), [&](std::int32_t id) { return id >= vocab_; });
      fail_id(file, inside + (bad - part.begin()), *bad, vocab_);
    }
    ids = ids.subspan(static_cast<std::size_t>(n));
    at += n;
    ++i;
  }
}

TokenSource TokenSource::part(std::int64_t begin, std::int64_t end) const {
  check(0 <= begin && begin <= end && end <= size(), "token_source: no part from", begin, "to", end,
        "of", size());
  TokenSource out = *this;
  out.begin_ = begin_ + begin;
  out.end_ = begin_ + end;
  return out;
}

void TokenSource::check_vocab(std::int64_t vocab, std::int64_t limit) {
  vocab_ = vocab;
  for (const TokenFile& file : *files_) {
    const auto bad = file.find_at_least(vocab, limit);
    if (!bad) continue;
    std::int32_t id = 0;
    file.read(*bad, std::span(&id, 1));
    fail_id(file, *bad, id, vocab);
  }
}

}  // namespace sherd
