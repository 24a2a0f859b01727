// JSON from files that anyone may have written: duplicate names, deep nesting and numbers that do
// not fit are refused.
// Invariant: what text() prints, parse() reads back equal, doubles to the last bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sherd {

/// null, a bool, a number, a string, an array or an object (members in the order of the text).
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value =
      std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  Json() = default;  ///< null
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  /// Kept as int64_t where it fits.
  Json(uint64_t value);
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value);
  Json(Object value);

  /// Throws io with the position for bad JSON, a name twice in an object, more than `max_depth`
  /// levels of nesting, or an integer beyond 64 bits.
  static Json parse(std::string_view text, int max_depth = 16);
  /// One line when `indent` is 0. Throws io on a string that is not UTF-8 and on a NaN or infinity.
  std::string text(int indent = 2) const;

  const Value& value() const { return value_; }
  // Each throws io "expected an integer, got a string".
  bool boolean() const;
  int64_t integer() const;
  uint64_t unsigned_integer() const;
  double number() const;  ///< integers too
  const std::string& string() const;
  const Array& array() const;
  const Object& object() const;

  /// The member; nullptr if the object has none of that name.
  const Json* find(std::string_view name) const;
  /// Throws io "there is no "name"".
  const Json& at(std::string_view name) const;

  bool operator==(const Json& other) const;

 private:
  Value value_;
};

}  // namespace sherd
