#include "tests/support/golden.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {

namespace {

DType dtype_named(const std::string& name) {
  if (name == "F32") return DType::f32;
  if (name == "F64") return DType::f64;
  if (name == "I32") return DType::i32;
  if (name == "BOOL") return DType::boolean;
  fail("a golden has a dtype that the tests do not read:", name);
}

}  // namespace

Golden::Golden(const std::string& name) : name_(name) {
  const std::string path = "tests/goldens/" + name + ".safetensors";
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "cannot open the golden", path);
  uint64_t header_bytes = 0;
  in.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  std::string header(header_bytes, ' ');
  in.read(header.data(), static_cast<std::streamsize>(header_bytes));
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  const auto index = nlohmann::json::parse(header);
  for (const auto& [key, value] : index.items()) {
    if (key == "__metadata__") continue;
    Shape shape;
    for (const auto& d : value.at("shape")) shape.push_back(d.get<int64_t>());
    entries_[key] = {dtype_named(value.at("dtype").get<std::string>()), shape,
                     value.at("data_offsets").at(0).get<size_t>()};
  }
}

std::vector<std::string> Golden::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const Golden::Entry& Golden::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), "the golden has no such tensor:", name_, name);
  return found->second;
}

Tensor Golden::tensor(const RuntimePtr& runtime, const std::string& name) const {
  const Entry& e = entry(name);
  const Tensor t = Tensor::empty(runtime, e.shape, e.dtype);
  const auto bytes = static_cast<size_t>(t.numel()) * size_of(e.dtype);
  check(e.begin + bytes <= bytes_.size(), "the golden is truncated:", name_);
  if (t.raw() != nullptr && bytes > 0) std::memcpy(t.raw(), bytes_.data() + e.begin, bytes);
  return t;
}

Tensor Golden::tensor(const RuntimePtr& runtime, const std::string& name, DType dtype) const {
  return tensor(runtime, name).to(dtype);
}

std::vector<double> Golden::values(const std::string& name) const {
  return tensor(Runtime::create(), name).to_vector<double>();
}

void check_golden(const std::string& name, const std::vector<std::string>& args,
                  const std::function<Variable(const std::vector<Variable>&)>& op,
                  Tolerance tolerance, DType dtype) {
  INFO("golden " << name);
  const Golden golden(name);
  for (const Isa isa : all_isas()) {
    INFO("at " << name_of(isa));
    const auto rt = Runtime::create({.isa = isa});
    Tape tape(rt);
    std::vector<Variable> inputs;
    for (const auto& arg : args) {
      const Tensor t = golden.tensor(rt, "in." + arg);
      inputs.push_back(is_floating(t.dtype()) ? tape.leaf(t.to(dtype)) : tape.constant(t));
    }
    const Variable y = op(inputs);
    CHECK(near(y.value(), golden.values("out"), tolerance));
    tape.backward(y, golden.tensor(rt, "dout", dtype));
    for (size_t i = 0; i < args.size(); ++i) {
      if (!golden.has("grad." + args[i])) continue;
      INFO("gradient of " << args[i]);
      REQUIRE(inputs[i].grad());
      CHECK(near(inputs[i].grad(), golden.values("grad." + args[i]), tolerance));
    }
  }
}

}  // namespace sherd::test
