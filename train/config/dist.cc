#include "train/config/dist.h"

#include <cmath>

#include "dist/shard_plan.h"
#include "train/config/available.h"

namespace sherd {
namespace {

/// Throws an error of `field` unless `number` divides `whole`.
void check_divides(const char* field, const char* name, std::int64_t number, const char* of,
                   std::int64_t whole) {
  check_field(number >= 1 && whole % number == 0, field, name, number, "does not divide", of,
              whole);
}

/// What `parse` returns; its error is one of `field`.
template <class Parse>
auto parsed(const char* field, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& e) {
    throw FieldError(field, e.what());
  }
}

}  // namespace

void LinkSection::validate() const {
  check_field(gbps > 0 && std::isfinite(gbps), "gbps", "expected a number > 0, got", gbps);
  check_field(latency_us >= 0 && std::isfinite(latency_us), "latency_us",
              "expected a number >= 0, got", latency_us);
}

void PrefetchSection::validate() const {
  const auto check_direction = [](const char* field, const auto& value) {
    if (const auto* depth = std::get_if<std::int64_t>(&value))
      check_field(*depth >= 0, field, "expected >= 0, got", *depth);
    else
      check_field(!std::get<std::vector<std::string>>(value).empty(), field,
                  "expected units, got an empty list; 0 gathers none ahead");
  };
  check_direction("forward", forward);
  check_direction("backward", backward);
}

void PlacementSection::validate() const {
  check_field(!match.empty(), "match", "expected a pattern of parameter names, got nothing");
  check_field(dim >= 0, "dim", "expected >= 0, got", dim);
}

void DistSection::validate() const {
  check_field(ranks >= 1, "ranks", "expected >= 1, got", ranks);
  check_field(ranks <= 4096, "ranks", "expected at most 4096, got", ranks);
  check_available("engine", engine, {"threads", "mpi"});
  check_field(!link || engine == "threads", "link", "is imitated between threads only; engine is",
              engine);
  check_field(replicate >= 1, "replicate", "expected >= 1, got", replicate);
  check_field(ranks_per_host >= 0, "ranks_per_host", "expected >= 0, got", ranks_per_host);
  check_field(timeout_s > 0 && timeout_s <= 1e7, "timeout_s", "expected 0 < timeout_s <= 1e7, got",
              timeout_s);
  if (const auto* depth = std::get_if<std::int64_t>(&prefetch))
    check_field(*depth >= 0, "prefetch", "expected >= 0 or none, got", *depth);
  for (const auto& [field, bytes] :
       {std::pair("prefetch_bytes", prefetch_bytes), std::pair("resident_below", resident_below)})
    check_field(!bytes || bytes->count >= 0, field, "expected >= 0 bytes, got",
                bytes.value_or(Bytes{}).count);
  const auto* k = std::get_if<std::int64_t>(&reshard_after_forward);
  check_field(k == nullptr || *k >= 2, "reshard_after_forward",
              "expected true, false or a number of ranks >= 2, got", k == nullptr ? 0 : *k);

  const ShardPlan plan =
      parsed("strategy", [&] { return parse_strategy(strategy, static_cast<int>(ranks)); });
  if (group != "auto") parsed("group", [&] { return parse_grouping(group, {}); });
  // mpirun says how many ranks there are, and asks again.
  if (engine == "mpi" && ranks == 1) return;
  const std::int64_t replicas = num_replicas();
  check_divides(replicas == plan.replicas ? "strategy" : "replicate", "replicate =", replicas,
                "ranks =", ranks);
  const std::int64_t size = k == nullptr ? plan.reshard_after_forward : *k;
  if (size > 1)
    check_divides(k == nullptr ? "strategy" : "reshard_after_forward",
                  "reshard_after_forward =", size, "the shards =", ranks / replicas);
}

std::int64_t DistSection::num_replicas() const {
  if (strategy.starts_with("hsdp") && replicate != DistSection().replicate) return replicate;
  return parse_strategy(strategy, static_cast<int>(ranks)).replicas;
}

}  // namespace sherd
