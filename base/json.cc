#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sherd {

namespace {

/// Builds a Json from the parser's events; the parser itself does not recurse.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(int64_t value) override { return add(Json(value)); }
  bool number_unsigned(uint64_t value) override { return add(Json(value)); }
  bool number_float(double value, const std::string& text) override {
    if (text.find_first_of(".eE") == std::string::npos)
      fail_as(ErrorKind::io, "not accepted as JSON: an integer does not fit in 64 bits:", text);
    return add(Json(value));
  }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(std::string& name) override {
    open_.back().names.push_back(std::move(name));
    return true;
  }
  bool end_array() override {
    Json done(std::move(open_.back().items));
    open_.pop_back();
    return add(std::move(done));
  }
  bool end_object() override {
    Level level = std::move(open_.back());
    open_.pop_back();
    Json::Object members;
    members.reserve(level.items.size());
    for (std::size_t i = 0; i < level.items.size(); ++i)
      members.push_back({std::move(level.names[i]), std::move(level.items[i])});
    refuse_duplicates(members);
    return add(Json(std::move(members)));
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception&) override {
    fail_as(ErrorKind::io, "not valid JSON at byte", position, "near", token.substr(0, 40));
  }

 private:
  struct Level {
    bool is_array = false;
    std::vector<std::string> names;
    Json::Array items;
  };

  bool open(bool is_array) {
    if (static_cast<int>(open_.size()) >= max_depth_)
      fail_as(ErrorKind::io, "not accepted as JSON: nested deeper than", max_depth_, "levels");
    open_.push_back({is_array, {}, {}});
    return true;
  }
  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else
      open_.back().items.push_back(std::move(value));
    return true;
  }
  static void refuse_duplicates(const Json::Object& members) {
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& member : members) names.push_back(member.first);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      fail_as(ErrorKind::io, "not accepted as JSON: a name stands twice in an object:", *twice);
  }

  const int max_depth_;
  std::vector<Level> open_;
  Json root_;
};

/// One value that holds no other.
template <class T>
std::string leaf_text(const T& value) {
  try {
    return nlohmann::json(value).dump();
  } catch (const nlohmann::json::exception&) {
    fail_as(ErrorKind::io, "text for JSON is not UTF-8");
  }
}

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}
  std::string take() { return std::move(out_); }

  void print(const Json& json) { std::visit(*this, json.value()); }

  void operator()(std::monostate) { out_ += "null"; }
  template <class T>
  void operator()(const T& value) {
    out_ += leaf_text(value);
  }
  void operator()(double value) {
    if (!std::isfinite(value))
      fail_as(ErrorKind::io, "JSON has no number that is not finite:", value);
    out_ += leaf_text(value);
  }
  void operator()(const Json::Array& items) {
    block('[', ']', items, [&](const Json& item) { print(item); });
  }
  void operator()(const Json::Object& members) {
    block('{', '}', members, [&](const auto& member) {
      out_ += leaf_text(member.first) + (indent_ > 0 ? ": " : ":");
      print(member.second);
    });
  }

 private:
  template <class Items, class Body>
  void block(char open, char close, const Items& items, const Body& body) {
    out_ += open;
    ++depth_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ',';
      new_line();
      body(items[i]);
    }
    --depth_;
    if (!items.empty()) new_line();
    out_ += close;
  }
  void new_line() {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_ * indent_), ' ');
  }

  const int indent_;
  int depth_ = 0;
  std::string out_;
};

const char* kind_of(const Json::Value& value) {
  constexpr const char* names[] = {"null",     "a bool",   "an integer", "an integer",
                                   "a number", "a string", "an array",   "an object"};
  return names[value.index()];
}

template <class T>
const T& get(const Json::Value& value, const char* wanted) {
  const T* found = std::get_if<T>(&value);
  if (found == nullptr) fail_as(ErrorKind::io, "JSON: expected", wanted, "and got", kind_of(value));
  return *found;
}

}  // namespace

Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    value_ = static_cast<int64_t>(value);
  else
    value_ = value;
}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}

Json Json::parse(std::string_view text, int max_depth) {
  Builder builder(max_depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    fail_as(ErrorKind::io, "not valid JSON");
  return builder.take();
}

std::string Json::text(int indent) const {
  Printer printer(indent);
  printer.print(*this);
  return printer.take();
}

bool Json::boolean() const { return get<bool>(value_, "a bool"); }
int64_t Json::integer() const { return get<int64_t>(value_, "an integer of 63 bits"); }
uint64_t Json::unsigned_integer() const {
  if (const auto* large = std::get_if<uint64_t>(&value_)) return *large;
  const int64_t value = integer();
  if (value < 0) fail_as(ErrorKind::io, "expected an integer ≥ 0 in JSON, got", value);
  return static_cast<uint64_t>(value);
}
double Json::number() const {
  if (const auto* whole = std::get_if<int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* large = std::get_if<uint64_t>(&value_)) return static_cast<double>(*large);
  return get<double>(value_, "a number");
}
const std::string& Json::string() const { return get<std::string>(value_, "a string"); }
const Json::Array& Json::array() const { return get<Array>(value_, "an array"); }
const Json::Object& Json::object() const { return get<Object>(value_, "an object"); }

const Json* Json::find(std::string_view name) const {
  for (const auto& member : object())
    if (member.first == name) return &member.second;
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (found == nullptr) fail_as(ErrorKind::io, "JSON object has no", name);
  return *found;
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

}  // namespace sherd
