#include "dist/device_mesh.h"

#include "base/error.h"

namespace sherd {

DeviceMesh::DeviceMesh(Communicator& world) : world_(world) {}

DeviceMesh::DeviceMesh(Communicator& world, int replicas) : world_(world) {
  const int N = world.size();
  check(replicas >= 1 && N % replicas == 0, "dist.replicate must divide the ranks: replicate",
        replicas, "of", N, "ranks");
  if (replicas == 1) return;
  const int S = N / replicas;
  std::vector<int> row, column;
  for (int s = 0; s < S; ++s) row.push_back(world.rank() / S * S + s);
  for (int r = 0; r < replicas; ++r) column.push_back(r * S + world.rank() % S);
  shard_ = world.subgroup(row);
  replicate_ = world.subgroup(column);
}

}  // namespace sherd
