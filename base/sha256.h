// SHA-256, to recognise prepared data and vocabularies; `sha256sum` gives the same digits.
// Own code because the candidates (libssl, libgcrypt) would be a run-time dependency for these 80
// lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sherd {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Takes bytes in pieces. FIPS 180-4.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  /// The digest of all bytes so far; ends the use of this object.
  Sha256Digest digest();

 private:
  void block(const std::uint8_t* p);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_bytes_ = 0;
};

Sha256Digest sha256(std::string_view text);

/// 64 lower-case hexadecimal digits.
std::string hex(const Sha256Digest& digest);

}  // namespace sherd
