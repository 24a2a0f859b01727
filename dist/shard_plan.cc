#include "dist/shard_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/error.h"

namespace sherd {

namespace {

/// zero3's defaults: what DeepSpeed keeps whole (stage3_param_persistence_threshold), in bytes of
/// f32.
constexpr int64_t kSmallParameter = 4 * 100000;

int64_t to_number(std::string_view text, std::string_view whole, int64_t least = 0) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  check(error == std::errc() && end == text.data() + text.size() && n >= least,
        "expected a number >=", least, "in", detail::concat(whole, ", got"), text);
  return n;
}

void set_override(ShardPlan& plan, std::string_view key, std::string_view value,
                  std::string_view whole) {
  if (key == "reshard_after_forward") {
    plan.reshard_after_forward = value == "true"    ? 1
                                 : value == "false" ? 0
                                                    : static_cast<int>(to_number(value, whole, 2));
  } else if (key == "replicate") {
    plan.replicas = static_cast<int>(to_number(value, whole, 1));
  } else if (key == "prefetch") {
    plan.prefetch.forward = plan.prefetch.backward = value == "none" ? 0 : to_number(value, whole);
  } else if (key == "prefetch_bytes") {
    plan.prefetch.bytes = to_number(value, whole);
  } else if (key == "resident_below") {
    plan.resident_below = to_number(value, whole);
  } else if (key == "sync") {
    check(value == "every" || value == "last", "expected sync=every or sync=last in", whole);
    plan.sync = value == "every" ? Sync::every : Sync::last;
  } else {
    fail(
        "unknown override of a strategy; expected reshard_after_forward, replicate, prefetch, "
        "prefetch_bytes, resident_below or sync, got",
        key, "in", whole);
  }
}

}  // namespace

ShardPlan parse_strategy(std::string_view text, int ranks) {
  const auto open = text.find('[');
  const std::string_view name = text.substr(0, open);
  ShardPlan plan;
  if (name == "ddp" || name == "zero1") {
    plan.row = name == "ddp" ? kDdp : kZero1;
    plan.sync = Sync::last;
  } else if (name == "zero2") {
    plan.row = kZero2;
  } else if (name == "zero3") {
    plan.resident_below = kSmallParameter;
    plan.prefetch.forward = plan.prefetch.backward = std::numeric_limits<int64_t>::max();
    plan.prefetch.bytes = int64_t{200} << 20;
  } else if (name == "fsdp-keep") {
    plan.reshard_after_forward = 0;
  } else if (name == "hsdp") {
    plan.replicas = ranks % 2 == 0 ? 2 : 1;
  } else {
    check(name == "fsdp", "expected ddp, zero1, zero2, zero3, fsdp, fsdp-keep or hsdp, got", text);
  }
  if (open == std::string_view::npos) return plan;
  check(text.back() == ']', "a strategy's overrides end with ]:", text);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const auto equals = item.find('=');
    check(equals != std::string_view::npos, "expected key=value in", text);
    set_override(plan, item.substr(0, equals), item.substr(equals + 1), text);
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
  }
  return plan;
}

std::string unit_by_block(const NamedParameter& p) {
  for (size_t begin = 0; begin < p.name.size();) {
    const size_t end = std::min(p.name.find('.', begin), p.name.size());
    const std::string_view part = std::string_view(p.name).substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (number) return p.name.substr(0, end);
    begin = end + 1;
  }
  return "";
}

std::string unit_by_parameter(const NamedParameter& p) { return p.name; }

std::string unit_by_model(const NamedParameter& /*p*/) { return ""; }

UnitOf units_by_bytes(const std::vector<NamedParameter>& all, int64_t min_bytes,
                      int64_t max_bytes) {
  check(min_bytes >= 0 && max_bytes >= min_bytes && max_bytes > 0,
        "expected 0 <= MIN <= MAX in bytes(MIN,MAX), got", min_bytes, "and", max_bytes);
  const auto bytes_of = [](const NamedParameter& p) {
    return p.parameter.value().numel() * static_cast<int64_t>(size_of(p.parameter.dtype()));
  };
  std::unordered_map<std::string, std::string> units;
  std::string unit, block;
  int64_t filled = 0;
  for (const auto& p : all) {
    const std::string own = unit_by_block(p);
    const bool new_block = own != block;
    block = own;
    const bool full = filled + bytes_of(p) > max_bytes;
    if (unit.empty() || full || (new_block && filled >= min_bytes)) {
      unit = p.name;
      filled = 0;
    }
    filled += bytes_of(p);
    units[p.name] = unit;
    for (const auto& alias : p.aliases) units[alias] = unit;
  }
  return [units = std::move(units)](const NamedParameter& p) { return units.at(p.name); };
}

UnitOf parse_grouping(std::string_view text, const std::vector<NamedParameter>& all) {
  if (text == "block") return unit_by_block;
  if (text == "parameter") return unit_by_parameter;
  if (text == "model") return unit_by_model;
  check(text.starts_with("bytes(") && text.ends_with(")") && text.find(',') < text.size(),
        "expected block, parameter, model or bytes(MIN,MAX) as the grouping, got", text);
  const std::string_view inside = text.substr(6, text.size() - 7);
  const auto comma = inside.find(',');
  return units_by_bytes(all, to_number(inside.substr(0, comma), text),
                        to_number(inside.substr(comma + 1), text));
}

}  // namespace sherd
