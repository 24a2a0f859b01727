// [dist]: ranks, what they share and how they talk.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"

namespace sherd {

/// A slower link than the one there is, imitated.
struct LinkSection {
  double gbps = 10;
  double latency_us = 0;

  void fields(auto& v) {
    v("gbps", gbps, "gigabits a second, > 0");
    v("latency_us", latency_us, "of a message, >= 0");
  }
  void validate() const;
  bool operator==(const LinkSection&) const = default;
};

/// How far ahead units are gathered; a depth, or the units in order.
struct PrefetchSection {
  std::variant<std::int64_t, std::vector<std::string>> forward = std::int64_t{1};
  std::variant<std::int64_t, std::vector<std::string>> backward = std::int64_t{1};

  void fields(auto& v) {
    v("forward", forward, "units ahead, or the only units gathered ahead, one at a time");
    v("backward", backward, "the same in backward");
  }
  void validate() const;
  bool operator==(const PrefetchSection&) const = default;
};

/// A parameter cut along another dim than the first.
struct PlacementSection {
  std::string match;
  std::int64_t dim = 0;

  void fields(auto& v) {
    v("match", match, "shell pattern of parameter names");
    v("dim", dim, "the dim that is cut");
  }
  void validate() const;
  bool operator==(const PlacementSection&) const = default;
};

struct DistSection {
  std::int64_t ranks = 1;
  std::string engine = "threads";
  std::string strategy = "ddp";
  std::int64_t replicate = 2;
  std::variant<bool, std::int64_t> reshard_after_forward = true;
  std::string group = "block";
  std::variant<std::int64_t, PrefetchSection, std::string> prefetch = std::int64_t{1};
  std::optional<Bytes> prefetch_bytes;
  std::optional<Bytes> resident_below;
  std::string sync = "auto";
  std::optional<LinkSection> link;
  double timeout_s = 300;
  std::int64_t ranks_per_host = 0;
  std::vector<PlacementSection> placement;

  void fields(auto& v) {
    v("ranks", ranks, "ranks that train together, >= 1");
    v("engine", engine, "how ranks talk", one_of{"threads", "mpi", "nccl"});
    v("strategy", strategy,
      "ddp, zero1, zero2, zero3, fsdp, fsdp-keep or hsdp, with overrides in []");
    v("replicate", replicate, "hsdp: groups that hold the same shards");
    v("reshard_after_forward", reshard_after_forward,
      "true, false or the size of smaller groups, >= 2");
    v("group", group, "what travels together: block, parameter, model, bytes(MIN,MAX) or auto");
    v("prefetch", prefetch, "units gathered ahead: a number, {forward, backward} or none",
      one_of{"none"});
    v("prefetch_bytes", prefetch_bytes, "hard cap on gathered parameters");
    v("resident_below", resident_below, "parameters up to this size stay whole on every rank");
    v("sync", sync, "reduce every micro-batch, or the last sum; auto: the strategy's own",
      one_of{"auto", "every", "last"});
    v("link", link, "imitate a slower link between thread ranks");
    v("timeout_s", timeout_s, "seconds after which a waiting rank gives up, > 0");
    v("ranks_per_host", ranks_per_host,
      "mpi: so many ranks act as a host, to try several on one machine; 0: hosts are what they "
      "are");
    v("placement", placement, "parameters cut along another dim");
  }

  void validate() const;

  /// Groups that hold the same: hsdp's as the key says where it is set, else as the strategy does.
  std::int64_t num_replicas() const;
  bool operator==(const DistSection&) const = default;
};

}  // namespace sherd
