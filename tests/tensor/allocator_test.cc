#include "tensor/allocator.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("bytes are counted by category, and the peak knows its instant") {
  const auto rt = Runtime::create();
  Allocator& a = rt->allocator();
  {
    const Context unit("unit blocks.1");
    const CategoryScope scope(*rt, Category::activations);
    const Tensor x = Tensor::empty(rt, {100});
    const CategoryScope inner(*rt, Category::grads);
    const Tensor y = Tensor::empty(rt, {1});
    CHECK(a.live_by_category()[static_cast<size_t>(Category::activations)] == 448);
    y.storage()->recategorize(Category::optimizer);
    CHECK(a.live_by_category()[static_cast<size_t>(Category::grads)] == 0);
    CHECK(a.live_by_category()[static_cast<size_t>(Category::optimizer)] == 64);
  }
  CHECK(a.live_bytes() == 0);
  CHECK(a.peak().bytes == 512);
  CHECK(a.peak().by_category[static_cast<size_t>(Category::grads)] == 64);
  CHECK(a.peak().where == std::vector<std::string>{"unit blocks.1"});
}

TEST_CASE("beyond the limit an allocation fails with the breakdown") {
  const auto rt = Runtime::create({.memory_limit = 4 << 20});
  const CategoryScope scope(*rt, Category::params);
  const Tensor t = Tensor::empty(rt, {1 << 19});
  CHECK_THROWS_WITH(Tensor::empty(rt, {1 << 20}),
                    Catch::Contains("params 2 MiB") && Catch::Contains("4 MiB"));
  CHECK(rt->allocator().live_bytes() == 2 << 20);
}

TEST_CASE("a repeated pattern of sizes asks the system for nothing more") {
  const auto rt = Runtime::create();
  int64_t after_first = 0;
  for (int step = 0; step < 5; ++step) {
    std::vector<Tensor> live;
    for (int i = 0; i < 50; ++i) {
      live.push_back(Tensor::empty(rt, {1000 * ((i * 37) % 50 + 1)}));
      if (i % 3 == 0) live.erase(live.begin() + i % static_cast<int>(live.size()));
    }
    if (step == 0) after_first = rt->allocator().system_allocations();
  }
  CHECK(rt->allocator().system_allocations() == after_first);
}

TEST_CASE("blocks never overlap under random use") {
  const auto allocator = make_allocator(kCpu, {});
  struct Block {
    std::byte* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    if (blocks.empty() || random() % 5 < 3) {
      const size_t bytes = 1 + random() % (random() % 10 == 0 ? 3000000 : 3000);
      Block b{allocator->allocate(bytes, Category::other), bytes, static_cast<unsigned char>(i)};
      REQUIRE(reinterpret_cast<uintptr_t>(b.data) % 64 == 0);
      std::memset(b.data, b.mark, bytes);
      blocks.push_back(b);
    } else {
      const size_t at = random() % blocks.size();
      const Block b = blocks[at];
      const auto* p = reinterpret_cast<const unsigned char*>(b.data);
      REQUIRE(std::all_of(p, p + b.bytes, [&](unsigned char c) { return c == b.mark; }));
      allocator->free(b.data, b.bytes, Category::other);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const Block& b : blocks) allocator->free(b.data, b.bytes, Category::other);
  CHECK(allocator->live_bytes() == 0);
}

}  // namespace
}  // namespace sherd
