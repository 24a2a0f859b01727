#include "dist/auto_group.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace sherd {

namespace {

/// Bytes of something when whole.
struct Size {
  int64_t values = 0, gradients = 0;
  Size& operator+=(const Size& more) {
    values += more.values;
    gradients += more.gradients;
    return *this;
  }
};

Size size_of_whole(const NamedParameter& p) {
  const DType dtype = p.parameter.dtype();
  const int64_t n = p.parameter.value().numel();
  return {n * static_cast<int64_t>(size_of(dtype)),
          p.parameter.frozen() ? 0 : n * static_cast<int64_t>(size_of(accumulate_dtype(dtype)))};
}

int64_t needed(const GroupModel& model, const Size& unit) {
  return (model.prefetch + 1) * unit.values + 2 * unit.gradients;
}

double cost_s(const GroupModel& model, int64_t units, const Size& largest) {
  const double received = static_cast<double>(model.shards - 1) / model.shards;
  return 3 * model.latency_s * static_cast<double>(units) +
         received * static_cast<double>(largest.values + largest.gradients) / model.bytes_per_s;
}

std::string megabytes(int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

using Names = std::unordered_map<std::string, std::string>;

void name_unit(Names& units, const NamedParameter& p, const std::string& unit) {
  units[p.name] = unit;
  for (const auto& alias : p.aliases) units[alias] = unit;
}

UnitOf by_name(Names units) {
  return [units = std::move(units)](const NamedParameter& p) { return units.at(p.name); };
}

/// Blocks cut between parameters, so that a unit needs at most the cap.
AutoGroups cut_blocks(const std::vector<NamedParameter>& all, const GroupModel& model) {
  Names units;
  std::string unit, block, beyond;
  Size filled, largest;
  int64_t count = 0;
  for (const auto& p : all) {
    const std::string own = unit_by_block(p);
    if (own.empty()) {
      name_unit(units, p, "");
      continue;
    }
    const Size size = size_of_whole(p);
    Size more = filled;
    more += size;
    if (own != block || needed(model, more) > model.cap_bytes) {
      unit = p.name;
      filled = {};
      ++count;
    }
    block = own;
    filled += size;
    name_unit(units, p, unit);
    if (needed(model, size) > model.cap_bytes) beyond = p.name;
    if (needed(model, filled) > needed(model, largest)) largest = filled;
  }
  const std::string cap = megabytes(model.cap_bytes);
  return {by_name(std::move(units)),
          detail::concat(count, " units of parts of blocks, since a block is beyond the ", cap,
                         " for gathered units and whole gradients; the largest needs ",
                         megabytes(needed(model, largest)),
                         beyond.empty() ? "" : ": no unit is smaller than " + beyond)};
}

}  // namespace

AutoGroups auto_groups(const std::vector<NamedParameter>& all, const GroupModel& model) {
  check(model.shards >= 1 && model.prefetch >= 0 && model.bytes_per_s > 0 && model.latency_s >= 0,
        "expected shards >= 1, prefetch >= 0, a rate > 0 and a latency >= 0");
  std::vector<std::string> blocks;
  std::unordered_map<std::string, Size> sizes;
  for (const auto& p : all) {
    const std::string block = unit_by_block(p);
    if (block.empty()) continue;
    if (!sizes.contains(block)) blocks.push_back(block);
    sizes[block] += size_of_whole(p);
  }
  if (blocks.empty()) return {unit_by_block, "one unit: the model has no blocks"};
  const auto n = static_cast<int64_t>(blocks.size());
  struct Choice {
    int64_t joined = 0, units = 0;
    Size largest;
    double cost_s = 0;
  };
  Choice best;
  for (int64_t joined = 1; joined <= n; ++joined) {
    Choice choice;
    choice.joined = joined;
    choice.units = (n + joined - 1) / joined;
    for (int64_t first = 0; first < n; first += joined) {
      Size unit;
      for (int64_t i = first; i < std::min(n, first + joined); ++i)
        unit += sizes[blocks[static_cast<size_t>(i)]];
      if (needed(model, unit) > needed(model, choice.largest)) choice.largest = unit;
    }
    if (model.cap_bytes > 0 && needed(model, choice.largest) > model.cap_bytes) continue;
    choice.cost_s = cost_s(model, choice.units, choice.largest);
    if (best.joined == 0 || choice.cost_s < best.cost_s) best = choice;
  }
  if (best.joined == 0) return cut_blocks(all, model);
  std::unordered_map<std::string, std::string> unit_of_block;
  for (int64_t i = 0; i < n; ++i)
    unit_of_block[blocks[static_cast<size_t>(i)]] =
        blocks[static_cast<size_t>(i / best.joined * best.joined)];
  Names units;
  for (const auto& p : all) {
    const std::string block = unit_by_block(p);
    name_unit(units, p, block.empty() ? "" : unit_of_block[block]);
  }
  char cost[40];
  std::snprintf(cost, sizeof cost, "%.3f ms", best.cost_s * 1e3);
  return {by_name(std::move(units)),
          detail::concat(best.units, best.units == 1 ? " unit of " : " units of ", best.joined,
                         best.joined == 1 ? " block" : " blocks", ", at most ",
                         megabytes(best.largest.values), ": ", cost, " a step that nothing hides, ",
                         megabytes(needed(model, best.largest)),
                         " for gathered units and whole gradients",
                         model.cap_bytes > 0 ? " of " + megabytes(model.cap_bytes) : "")};
}

}  // namespace sherd
