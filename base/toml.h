// TOML files and `--set a.b=v` into structs that list their fields (base/fields.h), and back.
// Invariant: what write_toml prints, read_toml reads back exactly; every error names source, line,
// column and key.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/fields.h"

namespace sherd {

/// Whether validate() is called after reading.
enum class TomlChecks { all, types_only };

namespace detail {
void read_fields(const FieldTable& root, std::string_view text, const std::string& source,
                 std::span<const std::string> overrides, TomlChecks checks);
void override_fields(const FieldTable& root, std::span<const std::string> overrides);
std::string write_fields(const FieldTable& root);
std::string help_fields(const FieldTable& root);
std::string config_text(const std::string& path);
}  // namespace detail

/// `text`, then overrides, over what `s` holds; errors as read_toml.
template <class S>
void merge_toml(S& s, std::string_view text, const std::string& source,
                std::span<const std::string> overrides = {}, TomlChecks checks = TomlChecks::all) {
  detail::read_fields(describe(s), text, source, overrides, checks);
}

/// S with defaults, then `text`, then overrides "a.b=v" (v in TOML; a bare word is a string), then
/// every validate(). `source` names the text in errors:
///   source:3:7: optim.lr: expected a number, got "fast"
/// throws usage on bad TOML, an unknown key (naming the nearest), a wrong type or a failed
/// validate()
template <class S>
S read_toml(std::string_view text, const std::string& source,
            std::span<const std::string> overrides = {}) {
  S s;
  merge_toml(s, text, source, overrides);
  return s;
}

/// read_toml of a file.
template <class S>
S load_toml(const std::string& path, std::span<const std::string> overrides = {}) {
  return read_toml<S>(detail::config_text(path), path, overrides);
}

/// Applies overrides to `s`, then validates it.
template <class S>
void override_toml(S& s, std::span<const std::string> overrides) {
  detail::override_fields(describe(s), overrides);
}

/// All fields as TOML; absent optionals are left out; floats are the shortest text that reads back
/// exactly.
template <class S>
std::string write_toml(S s) {
  return detail::write_fields(describe(s));
}

/// One line a key: name, type, default, doc; sections as headings.
template <class S>
std::string toml_help(S defaults = {}) {
  return detail::help_fields(describe(defaults));
}

/// "512MiB" or "4096" in bytes; throws usage otherwise.
Bytes parse_bytes(std::string_view text);

/// The largest unit that divides the size: "512MiB", "4096B" is "4KiB", 1000 is "1000B".
std::string format_bytes(Bytes size);

}  // namespace sherd
