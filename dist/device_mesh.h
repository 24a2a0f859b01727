// DeviceMesh: the ranks as a grid of replicas × shards; an axis is a group of ranks.
// Invariant: the shard axis is the inner one: rank = replica · shards + shard.
#pragma once

#include <memory>

#include "dist/comm/communicator.h"

namespace sherd {

/// Used by its rank's thread; `world` outlives it.
class DeviceMesh {
 public:
  /// One axis: every rank has a shard of its own.
  explicit DeviceMesh(Communicator& world);
  /// `replicas` groups, each of which holds all shards; made by all ranks at once. Throws usage
  /// unless it divides the number of ranks.
  DeviceMesh(Communicator& world, int replicas);

  Communicator& world() const { return world_; }
  /// Ranks that together hold everything once.
  Communicator& shard() const { return shard_ ? *shard_ : world_; }
  /// Ranks that hold the same shard; nullptr where there is one replica.
  Communicator* replicate() const { return replicate_.get(); }
  int shards() const { return shard().size(); }
  int replicas() const { return world_.size() / shards(); }

 private:
  Communicator& world_;
  std::unique_ptr<Communicator> shard_;
  std::unique_ptr<Communicator> replicate_;
};

}  // namespace sherd
