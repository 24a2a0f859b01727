#include "dist/comm/ranks_options.h"

#include <algorithm>

#include "base/machine.h"

namespace sherd {

RuntimePtr make_rank_runtime(const RanksOptions& options, int local) {
  RuntimeOptions own = options.runtime;
  if (own.threads == 0) own.threads = std::max(1, usable_cores() / local);
  return Runtime::create(own);
}

}  // namespace sherd
