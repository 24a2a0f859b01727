#include "checkpoint/safetensors.h"

#include <fstream>
#include <string>

#include "checkpoint/file_system.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::TempFolder;

/// A file of this header and this many zero bytes behind it.
std::string file_of(const std::string& json, size_t data_bytes) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(json.size() >> (8 * i));
  return out + json + std::string(data_bytes, '\0');
}

void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The message with which a file of this content is refused; "" if it is not.
std::string refusal(const std::string& content) {
  const TempFolder folder;
  put(folder / "a.safetensors", content);
  try {
    const SafetensorsReader reader(folder / "a.safetensors");
    const auto runtime = Runtime::create();
    for (const auto& entry : reader.entries()) reader.read(runtime, entry.name);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::io);
    CHECK_THAT(error.what(), Contains(folder / "a.safetensors"));
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& json, size_t data_bytes) {
  return refusal(file_of(json, data_bytes));
}

/// A header of one tensor t.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

std::vector<NamedTensor> all_dtypes(const RuntimePtr& runtime) {
  std::vector<NamedTensor> tensors;
  for (const DType dtype : {DType::boolean, DType::u8, DType::bf16, DType::f16, DType::i32,
                            DType::f32, DType::i64, DType::f64}) {
    const std::vector<double> values{0, 1, 1, 0, 1};
    const Tensor t = Tensor::from<double>(runtime, {5}, values);
    tensors.push_back({std::string(name_of(dtype)), t.to(dtype)});
  }
  tensors.push_back({"scalar", Tensor::full(runtime, {}, 0.1)});
  tensors.push_back({"empty", Tensor::zeros(runtime, {0, 3})});
  return tensors;
}

TEST_CASE("what is written is read back, dtype, shape and bits") {
  const TempFolder folder;
  const auto runtime = Runtime::create();
  PosixFileSystem files;
  const auto written = all_dtypes(runtime);
  const Metadata metadata{{"format", "pt"}, {"quote \" and é", "line\nend"}};
  write_safetensors(files, folder / "a", written, metadata);
  CHECK(static_cast<int64_t>(get(folder / "a").size()) == safetensors_bytes(written, metadata));

  const SafetensorsReader reader(folder / "a");
  CHECK(reader.metadata() == metadata);
  REQUIRE(reader.entries().size() == written.size());
  for (const auto& [name, tensor] : written) {
    INFO(name);
    const SafetensorsEntry* entry = reader.find(name);
    REQUIRE(entry != nullptr);
    CHECK(entry->offset % static_cast<int64_t>(size_of(tensor.dtype())) == 0);
    const Tensor back = reader.read(runtime, name);
    CHECK(back.dtype() == tensor.dtype());
    CHECK(back.shape() == tensor.shape());
    CHECK(back.to_vector<double>() == tensor.to_vector<double>());
    CHECK(back.storage()->owner() == name);
  }
  CHECK(reader.find("absent") == nullptr);
  CHECK_THROWS_WITH(reader.read(runtime, "absent"), Contains(folder / "a") && Contains("absent"));
}

TEST_CASE("the header is padded, so that the data are aligned") {
  const TempFolder folder;
  const auto runtime = Runtime::create();
  PosixFileSystem files;
  for (const std::string name : {"a", "ab", "abc", "abcd", "abcde"}) {
    write_safetensors(files, folder / name, {{name, Tensor::zeros(runtime, {2})}});
    const std::string content = get(folder / name);
    CHECK(content[0] % 8 == 0);
    CHECK(content.size() % 8 == 0);
  }
}

TEST_CASE("views are written by value and read into views") {
  const TempFolder folder;
  const auto runtime = Runtime::create();
  PosixFileSystem files;
  const Tensor t = Tensor::from<float>(runtime, {2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
  write_safetensors(files, folder / "a", {{"t", t.transpose(0, 1)}});
  const SafetensorsReader reader(folder / "a");
  CHECK(reader.read(runtime, "t").to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});

  const Tensor into = Tensor::zeros(runtime, {2, 3});
  const uint64_t version = into.storage()->version();
  reader.read_into("t", into.transpose(0, 1));
  CHECK(into.to_vector<float>() == t.to_vector<float>());
  CHECK(into.storage()->version() > version);
  CHECK_THROWS_WITH(reader.read_into("t", into), Contains("f32 [3, 2] where f32 [2, 3]"));
  CHECK_THROWS_WITH(reader.read_into("t", Tensor::zeros(runtime, {3, 2}, DType::f64)),
                    Contains("f64 [3, 2]"));
}

TEST_CASE("an empty file of tensors, and meta") {
  const TempFolder folder;
  PosixFileSystem files;
  write_safetensors(files, folder / "none", {});
  CHECK(SafetensorsReader(folder / "none").entries().empty());

  const auto runtime = Runtime::create();
  const auto meta = Runtime::create({.device = kMeta});
  write_safetensors(files, folder / "a", {{"t", Tensor::zeros(runtime, {2})}});
  const SafetensorsReader reader(folder / "a");
  CHECK(reader.read(meta, "t").shape() == Shape{2});
  CHECK_THROWS_WITH(write_safetensors(files, folder / "b", {{"t", Tensor::zeros(meta, {2})}}),
                    Contains("meta"));
  const Tensor t = Tensor::zeros(runtime, {1});
  CHECK_THROWS_WITH(write_safetensors(files, folder / "b", {{"t", t}, {"t", t}}),
                    Contains("one name"));
  CHECK_THROWS_WITH(write_safetensors(files, folder / "b", {{"__metadata__", t}}),
                    Contains("__metadata__"));
  CHECK_THROWS_WITH(write_safetensors(files, folder / "b", {{"\xff", t}}), Contains("UTF-8"));
}

TEST_CASE("a golden of another writer is read") {
  const auto runtime = Runtime::create();
  const SafetensorsReader reader("tests/goldens/adamw.safetensors");
  CHECK(reader.metadata().contains("torch"));
  CHECK(reader.read(runtime, "in.grads").shape() == Shape{5, 37, 5});
  CHECK(reader.read(runtime, "out.param").dtype() == DType::f64);
}

TEST_CASE("good headers that look odd are read") {
  CHECK(refusal("{}", 0).empty());
  CHECK(refusal("{ }   ", 0).empty());
  CHECK(refusal(one("F32", "[]", "[0,4]"), 4).empty());
  CHECK(refusal(one("F32", "[4611686018427387904, 0]", "[0,0]"), 0) != "");
  CHECK(refusal(one("F32", "[1000000, 0, 1000000]", "[0,0]"), 0).empty());
  // Two empty tensors and a full one at one offset, in an order that only sorting makes right.
  CHECK(refusal(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                    "a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},
                    "c":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]},
                    "d":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                1)
            .empty());
}

TEST_CASE("truncated files are refused at every length") {
  const TempFolder folder;
  PosixFileSystem files;
  write_safetensors(files, folder / "a", all_dtypes(Runtime::create()), {{"k", "v"}});
  const std::string whole = get(folder / "a");
  CHECK(refusal(whole).empty());
  for (size_t n = 0; n < whole.size(); n += n < 40 ? 1 : 7) {
    INFO(n);
    CHECK(!refusal(whole.substr(0, n)).empty());
  }
  CHECK_THAT(refusal(whole + "x"), Contains("end at"));
}

TEST_CASE("hostile files are refused, and the message says why") {
  CHECK_THAT(refusal(""), Contains("0 bytes"));
  CHECK_THAT(refusal(std::string(8, '\xff')), Contains("length"));
  CHECK_THAT(refusal(std::string("\x09\0\0\0\0\0\0\0{}", 10)), Contains("length is 9"));
  CHECK_THAT(refusal("", 3), Contains("begin"));
  CHECK_THAT(refusal("[]", 0), Contains("begin"));
  CHECK_THAT(refusal("{", 0), Contains("not valid JSON"));
  CHECK_THAT(refusal("{}x", 0), Contains("not valid JSON"));
  CHECK_THAT(refusal(one("F8_E4M3", "[1]", "[0,1]"), 1), Contains("F8_E4M3"));
  CHECK_THAT(refusal(one("F32", "[-1]", "[0,4]"), 4), Contains("negative"));
  CHECK_THAT(refusal(one("F32", "[1.5]", "[0,4]"), 4), Contains("integer"));
  CHECK_THAT(refusal(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), Contains("8 dims"));
  CHECK_THAT(refusal(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), Contains("too many"));
  CHECK_THAT(refusal(one("F64", "[2305843009213693952]", "[0,0]"), 0), Contains("too many"));
  CHECK_THAT(refusal(one("F32", "[99999999999999999999]", "[0,4]"), 4), Contains("64 bits"));
  CHECK_THAT(refusal(one("F32", "[1]", "[0,8]"), 8), Contains("needs 4"));
  CHECK_THAT(refusal(one("F32", "[1]", "[4,0]"), 4), Contains("out of order"));
  CHECK_THAT(refusal(one("F32", "[1]", "[-4,0]"), 4), Contains("out of order"));
  CHECK_THAT(refusal(one("F32", "[1]", "[0]"), 4), Contains("two numbers"));
  CHECK_THAT(refusal(one("F32", "[1]", "[4,8]"), 8), Contains("hole"));
  CHECK_THAT(refusal(one("F32", "[2]", "[0,8]"), 4), Contains("cut off"));
  CHECK_THAT(refusal(one("F32", "[1]", "[0,4]"), 8), Contains("end at 4"));
  CHECK_THAT(refusal(one("F32", "[1]", "[9223372036854775804,9223372036854775807]"), 8),
             Contains("needs 4"));
  CHECK_THAT(refusal(R"({"t":{"dtype":"F32","shape":[1]}})", 4), Contains("members"));
  CHECK_THAT(refusal(R"({"t":{"dtype":"F32","shape":[1],"offsets":[0,4]}})", 4),
             Contains("data_offsets"));
  CHECK_THAT(refusal(R"({"t":7})", 4), Contains("object"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), Contains("string"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":{"b":{"c":1}}}})", 0), Contains("deeper"));
  const std::string u8 = R"(:{"dtype":"U8","shape":[2],"data_offsets":)";
  CHECK_THAT(refusal("{\"a\"" + u8 + "[0,2]},\"a\"" + u8 + "[2,4]}}", 4), Contains("twice"));
  CHECK_THAT(refusal("{\"a\"" + u8 + "[0,2]},\"b\"" + u8 + "[1,3]}}", 3), Contains("overlaps"));
  CHECK_THAT(refusal("{\"a\"" + u8 + "[0,2]},\"b\"" + u8 + "[3,5]}}", 5), Contains("hole"));
  std::string bad_bool = file_of(one("BOOL", "[2]", "[0,2]"), 2);
  bad_bool.back() = 2;
  CHECK_THAT(refusal(bad_bool), Contains("element 1 is 2"));
}

TEST_CASE("what cannot be opened is named") {
  const TempFolder folder;
  CHECK_THROWS_WITH(SafetensorsReader(folder / "none"),
                    Contains(folder / "none") && Contains("No such file"));
  CHECK_THROWS_WITH(SafetensorsReader(folder.path()), Contains("is not a file"));
  PosixFileSystem files;
  CHECK_THROWS_WITH(write_safetensors(files, folder / "no/a", {}), Contains(folder / "no/a"));
}

TEST_CASE("a file cut off while it is open is noticed") {
  const TempFolder folder;
  const auto runtime = Runtime::create();
  PosixFileSystem files;
  write_safetensors(files, folder / "a", {{"t", Tensor::zeros(runtime, {1000})}});
  const SafetensorsReader reader(folder / "a");
  std::filesystem::resize_file(folder / "a", 500);
  CHECK_THROWS_WITH(reader.read(runtime, "t"), Contains("ends early"));
}

TEST_CASE("a full disk is an error") {
  PosixFileSystem files;
  const auto runtime = Runtime::create();
  CHECK_THROWS_WITH(write_safetensors(files, "/dev/full", {{"t", Tensor::zeros(runtime, {1000})}}),
                    Contains("/dev/full") && Contains("No space left"));
}

}  // namespace
}  // namespace sherd
