// The one thread pool of a rank. Workers sleep when idle, after a short spin.
// Invariant: which block computes what depends on the block's index only, never on the thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sherd {

/// Not thread-safe: one caller at a time, and bodies must not call run() on the same pool.
class ThreadPool {
 public:
  /// `threads` includes the caller; 1 starts no worker.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(i) once for each i in [0, blocks), on the caller and the workers; returns when all
  /// are done. Rethrows the first exception of a body.
  template <class Body>
  void run(int64_t blocks, const Body& body) {
    if (blocks <= 1 || workers_.empty()) {
      for (int64_t i = 0; i < blocks; ++i) body(i);
      return;
    }
    dispatch(
        Job{[](const void* b, int64_t i) { (*static_cast<const Body*>(b))(i); }, &body, blocks});
  }

 private:
  struct Job {
    void (*call)(const void* body, int64_t block) = nullptr;
    const void* body = nullptr;
    int64_t blocks = 0;
  };

  /// The blocks that one thread takes first: neighbours, and the same ones in each job of as many
  /// blocks, so that a thread finds in its cache what it wrote a job before.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void dispatch(const Job& job);
  void work(size_t thread);
  void worker(size_t thread);

  std::vector<Range> ranges_;  // one for each thread; the caller's is the first
  std::vector<std::thread> workers_;
  Job job_;
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> running_{0};  // workers that have not finished this generation
  std::atomic<bool> stop_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace sherd
