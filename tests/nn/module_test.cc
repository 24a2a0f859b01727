#include "nn/module.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

struct Pair : Module {
  Parameter weight, bias;
  Pair(Tape& tape, int64_t rows, int64_t columns)
      : weight(tape, {rows, columns}, DType::f32, Init::normal(0.02)),
        bias(tape, {rows}, DType::f32, Init::zeros()) {}
  void fields(ModuleVisitor& visit) override {
    visit("weight", weight);
    if (bias) visit("bias", bias);
  }
};

/// Two blocks and a head whose weight is the table's.
struct Net : Module {
  Pair table;
  std::vector<Pair> blocks;
  Parameter head;
  explicit Net(Tape& tape) : table(tape, 5, 3), head(table.weight) {
    table.bias = {};
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape, 4, 3);
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override {
    visit("table", table);
    visit("blocks", blocks);
    visit("head.weight", head);
  }
};

std::vector<std::string> names(Module& module) {
  std::vector<std::string> list;
  for (const auto& p : parameters(module)) list.push_back(p.name);
  return list;
}

TEST_CASE("names come from fields, in their order, a shared parameter once") {
  Tape tape(Runtime::create());
  Net net(tape);
  CHECK(names(net) == std::vector<std::string>{"table.weight", "blocks.0.weight", "blocks.0.bias",
                                               "blocks.1.weight", "blocks.1.bias"});
  const auto all = parameters(net);
  CHECK(all[0].aliases == std::vector<std::string>{"head.weight"});
  CHECK(all[1].aliases.empty());
  CHECK(all[0].parameter == net.head);
  CHECK(count_parameters(net).total == 15 + 2 * 16);

  CHECK(net.blocks[1].bias.name() == "blocks.1.bias");
  CHECK(net.head.name() == "table.weight");
  CHECK(net.blocks[0].weight.value().storage()->owner() == "blocks.0.weight");
  // A walk of a part says names from there, and renames nothing.
  CHECK(names(net.blocks[1]) == std::vector<std::string>{"weight", "bias"});
  CHECK(net.blocks[1].bias.name() == "blocks.1.bias");
}

TEST_CASE("parameters are counted as params, on meta too") {
  for (const Device device : {kCpu, kMeta}) {
    const auto rt = Runtime::create({.device = device});
    Tape tape(rt);
    const Net net(tape);
    const auto live = rt->allocator().live_by_category();
    CHECK(live[static_cast<size_t>(Category::params)] == rt->allocator().live_bytes());
    // One bias was given up; each of the rest is one allocation.
    CHECK(rt->allocator().live_bytes() == 64 + 2 * (64 + 64));
  }
}

TEST_CASE("freezing goes by pattern, by alias too, and takes the gradient away") {
  Tape tape(Runtime::create());
  Net net(tape);
  net.blocks[0].bias.set_grad(Tensor::zeros(tape.runtime(), {4}));
  CHECK(freeze(net, "*.bias") == 2);
  CHECK(net.blocks[0].bias.frozen());
  CHECK(!net.blocks[0].bias.grad());
  CHECK(!net.blocks[0].weight.frozen());
  CHECK(count_parameters(net).trainable == 15 + 2 * 12);
  CHECK(count_parameters(net).total == 15 + 2 * 16);
  CHECK(freeze(net, "head.*") == 1);
  CHECK(net.table.weight.frozen());
  CHECK(unfreeze(net, "*") == 5);
  CHECK(count_parameters(net).trainable == 15 + 2 * 16);
  CHECK(freeze(net, "blocks.?.weight") == 2);
  CHECK_THROWS_WITH(freeze(net, "block.*"),
                    Catch::Contains("no parameter's name matches") && Catch::Contains("block.*"));
}

struct Twice : Module {
  Pair a, b;
  explicit Twice(Tape& tape) : a(tape, 2, 2), b(tape, 2, 2) {}
  void fields(ModuleVisitor& visit) override {
    visit("a", a);
    visit("a", b);
  }
};

TEST_CASE("one name for two parameters is refused; a module may be listed twice") {
  Tape tape(Runtime::create());
  Twice twice(tape);
  CHECK_THROWS_WITH(parameters(twice), Catch::Contains("one name") && Catch::Contains("a.weight"));
  twice.b.weight = twice.a.weight;
  twice.b.bias = twice.a.bias;
  CHECK(names(twice) == std::vector<std::string>{"a.weight", "a.bias"});
}

TEST_CASE("an absent parameter must not be listed; a module may have none") {
  struct Absent : Module {
    Parameter weight;
    void fields(ModuleVisitor& visit) override { visit("weight", weight); }
  } absent;
  CHECK_THROWS_WITH(parameters(absent), Catch::Contains("weight"));
  struct Nothing : Module {
    void fields(ModuleVisitor&) override {}
  } nothing;
  CHECK(parameters(nothing).empty());
  CHECK(count_parameters(nothing).total == 0);
}

TEST_CASE("modules move, with their parameters") {
  Tape tape(Runtime::create());
  Net net(tape);
  const Parameter weight = net.blocks[1].weight;
  Net moved = std::move(net);
  CHECK(parameters(moved)[3].parameter == weight);
  STATIC_REQUIRE(!std::is_copy_constructible_v<Net>);
}

}  // namespace
}  // namespace sherd
