#include "dist/comm/call_entry.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "tensor/dtype.h"

namespace sherd {

bool CallEntry::agrees_with(const CallEntry& other) const {
  return sequence == other.sequence && op == other.op && elements == other.elements &&
         dtype == other.dtype && items == other.items && details == other.details &&
         std::strncmp(unit, other.unit, sizeof unit) == 0;
}

const char* op_name(uint32_t op) {
  constexpr std::array<const char*, 7> kNames = {"nothing",    "all_gather", "reduce_scatter",
                                                 "all_reduce", "broadcast",  "all_to_all",
                                                 "exchange"};
  return op < kNames.size() ? kNames[op] : "an unknown call";
}

std::string text_of(const CallEntry& e) {
  return detail::concat(op_name(e.op), " of ", e.unit[0] == '\0' ? "(no unit)" : e.unit, " (call ",
                        e.sequence, ", ", e.items, " tensors, ", e.elements, " elements of ",
                        static_cast<DType>(e.dtype), ")");
}

std::string difference(int first_rank, const CallEntry& first, int other_rank,
                       const CallEntry& other) {
  const std::string one = text_of(first);
  std::string two = text_of(other);
  if (two == one) two += ", with other shapes, dtypes or roots";
  return detail::concat("ranks make different calls: rank ", first_rank, " ", one, ", rank ",
                        other_rank, " ", two);
}

std::string lost_text(const std::string& lost, int me, const CallEntry& entry, const char* until) {
  return detail::concat(lost, " while rank ", me, " waits in ", text_of(entry), " for it ", until);
}

std::string ended_text(int ended, int me, const CallEntry& entry, const char* until) {
  return detail::concat("rank ", ended, " has ended, and rank ", me, " waits in ", text_of(entry),
                        " for it ", until);
}

std::string timeout_text(int me, double timeout_s, const char* until, const std::string& places) {
  return detail::concat("rank ", me, " waited longer than timeout_s = ", timeout_s,
                        " s for a call ", until, "; ", places);
}

std::string place_text(int rank, const CallEntry* entry, bool begins, uint32_t calls) {
  const std::string head = detail::concat("rank ", rank);
  if (entry != nullptr) return head + " is in " + text_of(*entry);
  if (!begins) return head + " is still in it";
  return detail::concat(head, " has not come (it made ", calls, " calls)");
}

std::string cause_at(int rank, const std::string& what) {
  const std::string head = detail::concat("rank ", rank, ": ");
  return what.rfind(head, 0) == 0 ? what : head + what;
}

}  // namespace sherd
