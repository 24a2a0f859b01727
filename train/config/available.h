// Keys and values that the format knows and this version does not do yet: refused, never ignored.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"

namespace sherd {

/// Throws FieldError "field: mpi is not available in this version; available: threads" unless
/// `value` is listed.
inline void check_available(const char* field, const std::string& value,
                            const std::vector<std::string>& available) {
  std::string list;
  for (const auto& a : available) {
    if (a == value) return;
    list += (list.empty() ? "" : ", ") + a;
  }
  check_field(false, field, value, "is not available in this version; available:", list);
}

/// The same for a key that must be left out.
inline void check_absent(const char* field, const std::string& what, bool is_set) {
  check_field(!is_set, field, what, "is not available in this version; leave it out");
}

}  // namespace sherd
