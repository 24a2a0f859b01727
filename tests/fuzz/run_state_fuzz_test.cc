// Any bytes as a checkpoint's state.json: refused with an Error of kind io, or read, and then what
// it says is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "checkpoint/run_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const sherd::RunState state = sherd::parse_run_state(text);
    if (!(sherd::parse_run_state(sherd::run_state_text(state)) == state)) std::abort();
  } catch (const sherd::Error& error) {
    if (error.kind() != sherd::ErrorKind::io) throw;
  }
  return 0;
}
