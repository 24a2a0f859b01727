// The order in which numbers of many ranks are added: the same tree as in a reduction
// (dist/comm/tree_sum_kernels.h), for the few that are added on the host.
#pragma once

#include <cstddef>
#include <span>

#include "dist/comm/communicator.h"

namespace sherd {

/// The sum of `terms`, at least one: left = the first p, p the largest power of two below their
/// number; right = the rest.
inline double tree_fold(std::span<const double> terms) {
  if (terms.size() == 1) return terms[0];
  size_t left = 1;
  while (2 * left < terms.size()) left *= 2;
  return tree_fold(terms.first(left)) + tree_fold(terms.subspan(left));
}

/// The sum of the ranks' numbers, such as their losses. Blocks until all ranks are here.
inline double sum_over_ranks(Communicator& comm, double mine) {
  return tree_fold(exchange_one(comm, mine, {"a sum over ranks"}));
}

}  // namespace sherd
