#include "tensor/stream.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/error.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;

/// Holds a stream at a task until opened.
class Gate {
 public:
  void open() { promise_.set_value(); }
  std::function<void()> task() {
    return [future = future_] { future.wait(); };
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

TEST_CASE("a worker stream runs tasks in order, beside the caller") {
  Stream stream(StreamKind::worker);
  Gate gate;
  std::vector<int> order;
  stream.submit(gate.task());
  for (int i = 0; i < 100; ++i) stream.submit([&order, i] { order.push_back(i); });
  const Event end = stream.record();
  CHECK_FALSE(end.done());
  std::thread::id worker;
  stream.submit([&] { worker = std::this_thread::get_id(); });
  gate.open();
  end.wait();
  CHECK(end.done());
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  stream.synchronize();
  CHECK(worker != std::this_thread::get_id());
  CHECK(Event().done());
  Event().wait();
}

TEST_CASE("an idle worker stream runs a task on the calling thread where that is asked for") {
  Stream stream(StreamKind::worker);
  std::thread::id thread;
  const auto task = [&] { thread = std::this_thread::get_id(); };
  for (int i = 0; i < 100; ++i) {
    CHECK(stream.submit(task, {}, RunOn::caller).done());
    CHECK(thread == std::this_thread::get_id());
    stream.submit(task).wait();
    CHECK(thread != std::this_thread::get_id());
  }
  Gate gate;
  stream.submit(gate.task());
  const Event behind = stream.submit(task, {}, RunOn::caller);
  CHECK_FALSE(behind.done());
  gate.open();
  behind.wait();
  CHECK(thread != std::this_thread::get_id());
  // An error stays, wherever the next task would run.
  stream.submit([] { fail("first"); }, {}, RunOn::caller);
  CHECK_THROWS_WITH(stream.submit(task).wait(), Contains("first"));
  CHECK_THROWS_WITH(stream.submit(task, {}, RunOn::caller).wait(), Contains("first"));
}

TEST_CASE("a caller stream runs at once") {
  Stream stream(StreamKind::caller);
  int ran = 0;
  const Event event = stream.submit([&] { ran = 1; });
  CHECK(ran == 1);
  CHECK(event.done());
  Stream other(StreamKind::worker);
  Gate gate;
  std::atomic<bool> passed = false;
  const Event slow = other.submit([&, wait = gate.task()] {
    wait();
    passed = true;
  });
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  stream.wait(slow);  // blocks
  CHECK(passed);
  opener.join();
}

TEST_CASE("one stream waits for another's event, and for `after`, without the caller") {
  Stream a(StreamKind::worker);
  Stream b(StreamKind::worker);
  Gate gate;
  std::atomic<int> value = 0;
  const Event first = a.submit([&, wait = gate.task()] {
    wait();
    value = 1;
  });
  int seen = -1;
  int seen_after = -1;
  b.wait(first);
  b.submit([&] { seen = value; });
  Stream c(StreamKind::worker);
  const Event last = c.submit([&] { seen_after = value; }, {Event(), first, b.record()});
  CHECK_FALSE(last.done());
  gate.open();
  last.wait();
  CHECK(seen == 1);
  CHECK(seen_after == 1);
}

TEST_CASE("errors wait in the event, with the submitter's context, and stop what follows") {
  for (const StreamKind kind : {StreamKind::worker, StreamKind::caller}) {
    Stream stream(kind, "comm");
    Stream other(StreamKind::worker);
    const Context rank("rank ", 2);
    Event bad;
    {
      const Context unit("unit ", "blocks.3");
      bad = stream.submit([] { fail_as(ErrorKind::comm, "the peer is gone"); });
    }
    bool ran = false;
    const Event later = stream.submit([&] { ran = true; });
    const Event dependent = other.submit([&] { ran = true; }, {bad});
    for (const Event& event : {bad, later, dependent}) {
      try {
        event.wait();
        FAIL("the error was lost");
      } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::comm);
        CHECK_THAT(e.what(), Contains("rank 2: unit blocks.3: the peer is gone"));
      }
      CHECK_THROWS(event.wait());  // again
    }
    CHECK_FALSE(ran);
    CHECK_THROWS(stream.synchronize());
    CHECK(detail::context_frames().size() == 1);
    Stream caller(StreamKind::caller);
    CHECK_THROWS_WITH(caller.wait(bad), Contains("the peer is gone"));
    caller.submit([&] { ran = true; });  // the caller has seen it and goes on
    CHECK(ran);
  }
  Stream stream(StreamKind::worker, "comm");
  const Context unit("unit 1");
  const Event foreign = stream.submit([] { throw std::bad_alloc(); });
  CHECK_THROWS_WITH(foreign.wait(), Contains("unit 1: comm: std::bad_alloc"));
}

TEST_CASE("contexts do not leak from one task into the next") {
  Stream stream(StreamKind::worker);
  {
    const Context a("first");
    stream.submit([] { detail::context_frames().push_back("left behind"); });
  }
  std::vector<std::string> seen{"?"};
  stream.submit([&] { seen = detail::context_frames(); }).wait();
  CHECK(seen.empty());
}

TEST_CASE("Work keeps its buffers until it is waited for, or done") {
  const auto rt = Runtime::create();
  auto& memory = rt->allocator();
  const auto live = [&] { return memory.live_bytes(); };
  Stream comm(StreamKind::worker);
  Stream caller(StreamKind::caller);
  const auto start = [&](Gate& gate) {
    Tensor t = Tensor::zeros(rt, {16});
    const Event event = comm.submit([wait = gate.task(), p = t.data<float>()] {
      wait();
      p[3] = 1;  // memory that only the Work keeps
    });
    return Work(event, {t});
  };
  SECTION("waited by the caller") {
    Gate gate;
    Work work = start(gate);
    CHECK(live() == 64);
    gate.open();
    work.wait(caller);
    CHECK(live() == 0);
    work.wait(caller);  // harmless
  }
  SECTION("waited by a worker: the buffers go when it is done") {
    Gate gate;
    Stream consumer(StreamKind::worker);
    {
      Work work = start(gate);
      work.wait(consumer);
    }
    CHECK(live() == 64);
    gate.open();
    consumer.synchronize();
    CHECK(live() == 0);
  }
  SECTION("never waited, or replaced") {
    Gate gate;
    Gate second;
    {
      Work work = start(gate);
      work = start(second);
      CHECK(live() == 128);
    }
    CHECK(live() == 128);
    gate.open();
    second.open();
    comm.synchronize();
    CHECK(live() == 0);
  }
  SECTION("moved from") {
    Gate gate;
    gate.open();
    Work work = start(gate);
    Work moved = std::move(work);
    moved.wait(caller);
    CHECK(live() == 0);
  }
  SECTION("failed: the buffers go, and the error comes") {
    Tensor t = Tensor::zeros(rt, {16});
    Work work(comm.submit([] { fail("broken"); }), {std::move(t)});
    CHECK_THROWS_WITH(work.wait(caller), Contains("broken"));
    CHECK(live() == 0);
  }
}

TEST_CASE("a stream that goes runs what is left") {
  std::atomic<int> ran = 0;
  {
    Stream stream(StreamKind::worker);
    for (int i = 0; i < 1000; ++i) stream.submit([&] { ++ran; });
  }
  CHECK(ran == 1000);
}

TEST_CASE("two streams that hand work to and fro") {
  Stream a(StreamKind::worker);
  Stream b(StreamKind::worker);
  int counter = 0;  // ordered by the events alone
  for (int i = 0; i < 500; ++i) {
    a.submit([&] { ++counter; }, {b.record()});
    b.submit([&] { ++counter; }, {a.record()});
  }
  b.synchronize();
  CHECK(counter == 1000);
}

}  // namespace
}  // namespace sherd
