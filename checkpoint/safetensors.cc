#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/file_system.h"

namespace sherd {

namespace {

constexpr int64_t kPrefixBytes = 8;               // the header's length
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kDTypeNames[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"F16", DType::f16},
    {"I32", DType::i32}, {"I64", DType::i64}, {"U8", DType::u8},     {"BOOL", DType::boolean}};

/// check() of what a file says.
template <class... A>
void want(bool ok, Site site, const A&... a) {
  if (!ok) fail_as(ErrorKind::io, site, a...);
}

DType dtype_named(const std::string& name) {
  for (const auto& known : kDTypeNames)
    if (known.name == name) return known.dtype;
  fail_as(ErrorKind::io, "dtype is not supported:", name,
          "; supported: F32 F64 BF16 F16 I32 I64 U8 BOOL");
}

std::string_view file_name_of(DType dtype) {
  for (const auto& known : kDTypeNames)
    if (known.dtype == dtype) return known.name;
  fail("dtype has no name in safetensors:", dtype);
}

Shape shape_of(const Json& json) {
  Shape shape;
  want(json.array().size() <= kMaxDims, "a tensor has at most 8 dims, this one has",
       json.array().size());
  int64_t n = 1;  // without zeros, so that strides of an empty tensor fit too
  for (const Json& dim : json.array()) {
    const int64_t d = dim.integer();
    want(d >= 0, "a dim is negative:", d);
    shape.push_back(d);
    want(!__builtin_mul_overflow(n, std::max<int64_t>(d, 1), &n) && n <= INT64_MAX / 8,
         "shape has too many elements:", shape);
  }
  return shape;
}

SafetensorsEntry entry_of(const std::string& name, const Json& json) {
  const Context in("tensor ", name);
  want(json.object().size() == 3, "expected dtype, shape and data_offsets, got",
       json.object().size(), "members");
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = dtype_named(json.at("dtype").string());
  entry.shape = shape_of(json.at("shape"));
  const auto& offsets = json.at("data_offsets").array();
  want(offsets.size() == 2, "data_offsets are two numbers, got", offsets.size());
  const int64_t begin = offsets[0].integer();
  const int64_t end = offsets[1].integer();
  want(begin >= 0 && begin <= end, "data_offsets are out of order:", begin, "to", end);
  entry.offset = begin;
  entry.bytes = end - begin;
  const int64_t needed = entry.shape.numel() * static_cast<int64_t>(size_of(entry.dtype));
  want(entry.bytes == needed, "data_offsets hold", entry.bytes, "bytes;", entry.dtype, entry.shape,
       "needs", needed);
  return entry;
}

/// Throws unless the entries, in order, cover [0, data_bytes) exactly.
void check_cover(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  int64_t end = 0;
  for (const auto& entry : entries) {
    want(entry.offset >= end, "tensor", entry.name, "overlaps the one before: starts at",
         entry.offset, "before", end);
    want(entry.offset == end, "there is a hole before tensor", entry.name, ": from", end, "to",
         entry.offset);
    end += entry.bytes;
    want(end <= data_bytes, "tensor", entry.name, "ends at", end, "but the data have", data_bytes,
         "bytes (is the file cut off?)");
  }
  want(end == data_bytes, "the tensors end at", end, "but the data have", data_bytes, "bytes");
}

/// Reads exactly `bytes` at `offset`.
void read_fully(int fd, void* to, int64_t bytes, int64_t offset) {
  char* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n =
        ::pread(fd, p, static_cast<size_t>(std::min<int64_t>(bytes, 1 << 30)), offset);
    if (n < 0 && errno == EINTR) continue;
    want(n >= 0, "cannot read:", std::strerror(errno));
    want(n > 0, "the file ends early, at byte", offset);
    p += n;
    offset += n;
    bytes -= n;
  }
}

/// A bool of another value would be undefined behaviour wherever it is read.
void check_bools(const void* data, int64_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < n; ++i)
    want(p[i] <= 1, "a bool is neither 0 nor 1: element", i, "is", static_cast<int>(p[i]));
}

/// The tensors in the order of their bytes.
std::vector<const NamedTensor*> write_order(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  for (const auto& t : tensors) {
    check(t.name != kMetadata, "a tensor cannot have the name", t.name);
    order.push_back(&t);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->tensor.dtype()) > size_of(b->tensor.dtype());
  });
  return order;
}

int64_t bytes_of(const Tensor& t) { return t.numel() * static_cast<int64_t>(size_of(t.dtype())); }

/// Length and JSON.
std::string header_text(const std::vector<const NamedTensor*>& order, const Metadata& metadata) {
  Json::Object header;
  if (!metadata.empty()) {
    Json::Object pairs;
    for (const auto& [key, value] : metadata) pairs.emplace_back(key, value);
    header.emplace_back(kMetadata, std::move(pairs));
  }
  int64_t end = 0;
  for (const auto* t : order) {
    Json::Array shape;
    for (const int64_t d : t->tensor.shape()) shape.emplace_back(d);
    const int64_t begin = end;
    end += bytes_of(t->tensor);
    header.emplace_back(t->name,
                        Json::Object{{"dtype", Json(file_name_of(t->tensor.dtype()))},
                                     {"shape", Json(std::move(shape))},
                                     {"data_offsets", Json(Json::Array{Json(begin), Json(end)})}});
  }
  std::string json = Json(std::move(header)).text(0);
  json.append((8 - json.size() % 8) % 8, ' ');
  check(static_cast<int64_t>(json.size()) <= kMaxHeaderBytes, "too many tensors for one file");
  const auto length = static_cast<uint64_t>(json.size());
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);  // x86-64 is little endian
  return out + json;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes) {
  want(!json.empty() && json.front() == '{', "the header does not begin with {");
  const Json root = Json::parse(json, 3);
  SafetensorsHeader header;
  for (const auto& [name, value] : root.object()) {
    if (name == kMetadata) {
      const Context in(kMetadata);
      for (const auto& [key, text] : value.object()) header.metadata[key] = text.string();
    } else {
      header.entries.push_back(entry_of(name, value));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  check_cover(header.entries, data_bytes);
  return header;
}

SafetensorsReader::SafetensorsReader(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  const Context in(path_);
  want(fd_ >= 0, "cannot open:", std::strerror(errno));
  try {
    struct stat status {};
    want(::fstat(fd_, &status) == 0, "cannot stat:", std::strerror(errno));
    want(S_ISREG(status.st_mode), "is not a file");
    const int64_t size = status.st_size;
    want(size >= kPrefixBytes, "is no safetensors file: it has", size, "bytes");
    uint64_t length = 0;
    read_fully(fd_, &length, kPrefixBytes, 0);
    want(length <= static_cast<uint64_t>(std::min(size - kPrefixBytes, kMaxHeaderBytes)),
         "the header's length is", length, "in a file of", size, "bytes");
    std::string json(length, '\0');
    data_start_ = kPrefixBytes + static_cast<int64_t>(length);
    read_fully(fd_, json.data(), static_cast<int64_t>(length), kPrefixBytes);
    header_ = parse_safetensors_header(json, size - data_start_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
  for (const auto& entry : header_.entries) by_name_[entry.name] = &entry;
}

SafetensorsReader::~SafetensorsReader() {
  if (fd_ >= 0) ::close(fd_);
}

SafetensorsReader::SafetensorsReader(SafetensorsReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_start_(other.data_start_),
      header_(std::move(other.header_)),  // the entries stay where they are
      by_name_(std::move(other.by_name_)) {}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const SafetensorsEntry& SafetensorsReader::at(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  want(entry != nullptr, "there is no tensor", name);
  return *entry;
}

void SafetensorsReader::read_bytes(const SafetensorsEntry& entry, void* to) const {
  read_fully(fd_, to, entry.bytes, data_start_ + entry.offset);
  if (entry.dtype == DType::boolean) check_bools(to, entry.bytes);
}

Tensor SafetensorsReader::read(const RuntimePtr& runtime, std::string_view name) const {
  const Context in(path_);
  const SafetensorsEntry& entry = at(name);
  const Context in_tensor("tensor ", name);
  const Tensor t = Tensor::empty(runtime, entry.shape, entry.dtype, entry.name);
  if (t.raw() != nullptr) read_bytes(entry, t.raw());
  return t;
}

void SafetensorsReader::read_into(std::string_view name, const Tensor& to) const {
  const Context in(path_);
  const SafetensorsEntry& entry = at(name);
  const Context in_tensor("tensor ", name);
  want(entry.dtype == to.dtype() && entry.shape == to.shape(), "the file has", entry.dtype,
       entry.shape, "where", describe(to), "is wanted");
  if (to.raw() == nullptr) return;
  if (to.is_contiguous()) {
    read_bytes(entry, to.raw());
    to.storage()->bump_version();
  } else {
    to.copy_from(read(to.runtime(), name));
  }
}

int64_t safetensors_bytes(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  auto bytes = static_cast<int64_t>(header_text(write_order(tensors), metadata).size());
  for (const auto& t : tensors) bytes += bytes_of(t.tensor);
  return bytes;
}

void write_safetensors(FileSystem& files, const std::string& path,
                       const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  const Context in(path);
  std::vector<std::string_view> names;
  for (const auto& t : tensors) {
    check(!t.tensor.device().is_meta(), "a meta tensor has no bytes to write:", t.name);
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  check(twice == names.end(), "two tensors have one name:", twice == names.end() ? "" : *twice);

  const auto order = write_order(tensors);
  const auto file = files.create(path);
  file->append(header_text(order, metadata));
  for (const auto* t : order) {
    const Context in_tensor("tensor ", t->name);
    const Tensor whole = t->tensor.contiguous();
    if (whole.numel() == 0) continue;
    file->append(std::span(static_cast<const std::byte*>(whole.raw()),
                           static_cast<size_t>(bytes_of(whole))));
  }
  file->commit();
}

}  // namespace sherd
