#include "tensor/thread_pool.h"

#include <immintrin.h>

#include <utility>

namespace sherd {

namespace {

// About 20 us: longer than the gap between two kernels of a step, far shorter than a time slice.
constexpr int kSpins = 500;

/// Waits until `value` is no longer `old`: spins, then sleeps in the kernel.
uint32_t wait_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    _mm_pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : ranges_(static_cast<size_t>(threads)) {
  for (size_t i = 1; i < ranges_.size(); ++i) workers_.emplace_back([this, i] { worker(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& w : workers_) w.join();
}

void ThreadPool::dispatch(const Job& job) {
  job_ = job;
  error_ = nullptr;
  const auto threads = static_cast<int64_t>(ranges_.size());
  for (int64_t t = 0; t < threads; ++t) {
    Range& range = ranges_[static_cast<size_t>(t)];
    range.next.store(job.blocks * t / threads, std::memory_order_relaxed);
    range.end = job.blocks * (t + 1) / threads;
  }
  running_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(0);
  for (uint32_t left = running_.load(std::memory_order_acquire); left != 0;)
    left = wait_change(running_, left);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::work(size_t thread) {
  // Its own blocks, then what the others have left.
  for (size_t t = 0; t < ranges_.size(); ++t) {
    Range& range = ranges_[(thread + t) % ranges_.size()];
    for (int64_t i; (i = range.next.fetch_add(1, std::memory_order_relaxed)) < range.end;) {
      try {
        job_.call(job_.body, i);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }
}

void ThreadPool::worker(size_t thread) {
  uint32_t seen = 0;
  for (;;) {
    seen = wait_change(generation_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    work(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace sherd
