// Safetensors files: the length of the header (u64, little endian), the header (JSON), the data.
//   {"__metadata__":{"k":"v"},"wte.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, …}
// Invariant: a file is refused unless its tensors cover the data exactly: no read leaves the file.
// https://github.com/huggingface/safetensors, "Format"
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace sherd {

class FileSystem;

/// Free text that travels with a file.
using Metadata = std::map<std::string, std::string>;

/// One tensor's place in a file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t offset = 0;  ///< of its bytes, from the first byte behind the header
  int64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes
  Metadata metadata;
};

/// The header of a file with `data_bytes` behind it. Throws io for: bad JSON, unknown dtypes (those
/// of DType are known), shapes that do not fit 63 bits or have more than 8 dims, offsets that
/// overlap, leave a hole, end elsewhere than the file or disagree with dtype and shape, names that
/// stand twice.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

/// An open file; its header is in memory, tensors are read when asked for. Movable. Reading is
/// thread-safe.
class SafetensorsReader {
 public:
  /// Throws io, naming the path, as parse_safetensors_header does and for a header length that the
  /// file does not hold.
  explicit SafetensorsReader(const std::string& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&& other) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&& other) = delete;

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const Metadata& metadata() const { return header_.metadata; }
  /// nullptr if the file has no tensor of that name.
  const SafetensorsEntry* find(std::string_view name) const;

  /// A new tensor named `name`, in the runtime's category; on meta nothing is read. Throws io if
  /// there is none, or it ends early, or a bool is neither 0 nor 1.
  Tensor read(const RuntimePtr& runtime, std::string_view name) const;
  /// Into a tensor of any strides; throws io naming both unless dtype and shape are the file's.
  /// Bumps the version.
  void read_into(std::string_view name, const Tensor& to) const;

 private:
  const SafetensorsEntry& at(std::string_view name) const;
  void read_bytes(const SafetensorsEntry& entry, void* to) const;

  std::string path_;
  int fd_ = -1;
  int64_t data_start_ = 0;
  SafetensorsHeader header_;
  std::map<std::string_view, const SafetensorsEntry*> by_name_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Bytes that write_safetensors will write.
int64_t safetensors_bytes(const std::vector<NamedTensor>& tensors, const Metadata& metadata = {});

/// Writes and syncs `path`. Wide dtypes come first, so that each tensor is aligned to its elements,
/// and the data begin at a multiple of 8. Throws io, naming path and tensor; usage for a name given
/// twice or a tensor on meta.
void write_safetensors(FileSystem& files, const std::string& path,
                       const std::vector<NamedTensor>& tensors, const Metadata& metadata = {});

}  // namespace sherd
