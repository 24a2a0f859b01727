#include "examples/own_transport/late_comm.h"

#include <chrono>
#include <thread>

using namespace sherd;

std::unique_ptr<Communicator> LateComm::subgroup(const std::vector<int>& members) {
  auto inner = inner_.subgroup(members);
  auto late = std::unique_ptr<LateComm>(new LateComm(*inner, delay_s_, counts_));
  late->owned_ = std::move(inner);
  return late;
}

Event LateComm::late(const char* op, const CallTag& tag, Event after) {
  ++(*counts_)[std::string(op) + " of " + tag.unit];
  const auto wait = [seconds = delay_s_] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  return waits_.submit(wait, {std::move(after)});
}
