// Where bytes live. `meta` has shapes and allocations but no bytes: plan runs the real model on it.
#pragma once

#include <cstdint>
#include <ostream>

namespace sherd {

enum class DeviceType : uint8_t { cpu, cuda, meta };

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  bool is_meta() const { return type == DeviceType::meta; }
  friend bool operator==(Device, Device) = default;
  friend std::ostream& operator<<(std::ostream& out, Device d) {
    constexpr const char* names[] = {"cpu", "cuda", "meta"};
    out << names[static_cast<int>(d.type)];
    if (d.type == DeviceType::cuda) out << ':' << d.index;
    return out;
  }
};

inline constexpr Device kCpu{DeviceType::cpu, 0};
inline constexpr Device kMeta{DeviceType::meta, 0};

}  // namespace sherd
