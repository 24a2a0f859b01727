// The visitor idiom of every configuration: a struct lists its fields once and readers, writers and
// help follow.
//   struct OptimConfig {
//     double lr = 3e-4;
//     std::string name = "adamw";
//     void fields(auto& v) {
//       v("lr", lr, "peak learning rate, > 0");
//       v("name", name, "the optimizer", one_of{"adamw", "sgd"});
//     }
//     void validate() const { check_field(lr > 0, "lr", "expected > 0, got", lr); }   // optional
//   };
// A member with fields() of its own is a table, a vector of such a list of tables, std::optional a
// key that may be absent (and is so by default), std::variant a key that takes several TOML types
// (each alternative another one).
// Invariant: describe() only points into the struct; the list is valid while the struct stays
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sherd {

/// A size in bytes, written 4096 or "512MiB" (KiB, MiB, GiB, TiB; kB, MB, GB, TB; B).
struct Bytes {
  std::int64_t count = 0;
  bool operator==(const Bytes&) const = default;
};

/// The values a string (or each string of a list) may take.
struct one_of {
  std::vector<std::string> values;
  one_of() = default;
  one_of(std::initializer_list<std::string> list) : values(list) {}
};

/// What validate() throws: it names the field, so that a reader can add the section and where the
/// field was set.
class FieldError : public Error {
 public:
  FieldError(std::string field, const std::string& message)
      : Error(ErrorKind::usage, field + ": " + message), field_(std::move(field)), text_(message) {}
  const std::string& field() const { return field_; }
  /// The message without the field's name.
  const std::string& text() const { return text_; }

 private:
  std::string field_, text_;
};

/// Throws FieldError "field: a b c" unless `ok`; a nested field is named "table.field".
template <class... A>
void check_field(bool ok, const char* field, const A&... a) {
  if (ok) [[likely]]
    return;
  std::ostringstream out;
  const char* space = "";
  ((out << space << a, space = " "), ...);
  throw FieldError(field, out.str());
}

struct Field;

/// A struct with fields(): its fields in the order of the struct, and its validate() if it has one.
struct FieldTable {
  std::vector<Field> fields;
  std::function<void()> validate;
};

/// A vector of structs with fields().
struct FieldTableList {
  std::function<void()> clear;
  std::function<FieldTable()> append;
  std::function<std::vector<FieldTable>()> items;
  std::function<FieldTable()> example;  // a default item, for help
};

/// One of several types, or (optional) perhaps nothing.
struct FieldChoice {
  std::vector<std::function<Field()>> alternatives;  // each makes its type the current one
  std::vector<std::function<Field()>> examples;      // the same on a throw-away value, for help
  std::function<std::optional<Field>()> current;     // nothing: an absent optional
};

/// Where a field's value lives.
using FieldValue = std::variant<bool*, std::int64_t*, double*, float*, std::string*, Bytes*,
                                std::vector<std::int64_t>*, std::vector<double>*,
                                std::vector<std::string>*, FieldTable, FieldTableList, FieldChoice>;

struct Field {
  std::string name;
  FieldValue value;
  std::string doc;
  std::vector<std::string> allowed;
};

template <class S>
FieldTable describe(S& s);

namespace detail {

struct AnyVisitor {
  template <class... A>
  void operator()(A&&...) {}
};

template <class T>
concept HasFields = requires(T& t, AnyVisitor& v) {
  t.fields(v);
};

template <class S>
Field make_field(std::vector<S>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed);
template <class T>
Field make_field(std::optional<T>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed);
template <class... T>
Field make_field(std::variant<T...>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed);

template <class T>
Field make_field(T& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed) {
  if constexpr (HasFields<T>) {
    return {name, describe(value), doc, allowed};
  } else {
    return {name, &value, doc, allowed};
  }
}

template <class S>
Field make_field(std::vector<S>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed) {
  if constexpr (HasFields<S>) {
    FieldTableList list;
    list.clear = [&value] { value.clear(); };
    list.append = [&value] { return describe(value.emplace_back()); };
    list.items = [&value] {
      std::vector<FieldTable> out;
      for (S& s : value) out.push_back(describe(s));
      return out;
    };
    list.example = [kept = std::make_shared<S>()] { return describe(*kept); };
    return {name, std::move(list), doc, allowed};
  } else {
    return {name, &value, doc, allowed};
  }
}

template <class T>
Field make_field(std::optional<T>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed) {
  FieldChoice choice;
  choice.alternatives.push_back(
      [=, &value] { return make_field(value.emplace(), name, doc, allowed); });
  choice.examples.push_back(
      [=, kept = std::make_shared<T>()] { return make_field(*kept, name, doc, allowed); });
  choice.current = [=, &value]() -> std::optional<Field> {
    if (!value) return std::nullopt;
    return make_field(*value, name, doc, allowed);
  };
  return {name, std::move(choice), doc, allowed};
}

template <class... T>
Field make_field(std::variant<T...>& value, const std::string& name, const std::string& doc,
                 const std::vector<std::string>& allowed) {
  FieldChoice choice;
  choice.alternatives = {
      [=, &value] { return make_field(value.template emplace<T>(), name, doc, allowed); }...};
  choice.examples = {
      [=, kept = std::make_shared<T>()] { return make_field(*kept, name, doc, allowed); }...};
  choice.current = [=, &value]() -> std::optional<Field> {
    return std::visit([&](auto& held) { return make_field(held, name, doc, allowed); }, value);
  };
  return {name, std::move(choice), doc, allowed};
}

struct Collector {
  std::vector<Field>* out;
  template <class T>
  void operator()(const char* name, T& value, const char* doc, const one_of& allowed = {}) {
    out->push_back(make_field(value, name, doc, allowed.values));
  }
};

}  // namespace detail

/// The fields of `s`, which must outlive the result.
template <class S>
FieldTable describe(S& s) {
  FieldTable table;
  detail::Collector collector{&table.fields};
  s.fields(collector);
  if constexpr (requires { s.validate(); }) table.validate = [&s] { s.validate(); };
  return table;
}

}  // namespace sherd
