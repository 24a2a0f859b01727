// Rank: what the body of a rank gets, whatever carries the ranks.
#pragma once

#include "dist/comm/communicator.h"
#include "tensor/runtime.h"

namespace sherd {

/// It lives as long as the body runs.
struct Rank {
  int rank = 0;
  int size = 1;
  RuntimePtr runtime;
  Communicator& comm;
};

}  // namespace sherd
