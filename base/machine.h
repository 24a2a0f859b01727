// What this process may use of the machine: cores by affinity and cgroup, memory by cgroup.
// Invariant: never more than the machine has, never less than one core.
#pragma once

#include <cstdint>
#include <string>

namespace sherd {

/// Cores that affinity and the cgroup's CPU quota leave, a part of a core counting as one.
int usable_cores();

/// The memory that the machine has and the cgroup (v1 or v2) allows, in bytes.
std::int64_t usable_memory_bytes();

/// "AMD EPYC 9654 96-Core Processor"; "unknown" if the system does not tell.
std::string cpu_name();

/// "Linux 6.1.0"
std::string kernel_name();

/// What the kernel says when asked for a ring: "works", or "does not work here (Operation not
/// permitted)" and the like.
std::string io_uring_state();

/// Whether the driver of an NVIDIA GPU has made its device.
bool has_nvidia_gpu();

}  // namespace sherd
