// Stream, Event, Work: what runs beside the caller, and what must follow it.
// Invariants: a stream runs its tasks one at a time, in the order of submission; an error is kept
// in the task's Event, passes to every task that must follow it, and is thrown where somebody
// waits; buffers that a Work holds outlive what uses them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tensor/tensor.h"

namespace sherd {

/// A point in a stream: what was submitted up to there is done, or has failed. A cheap handle;
/// thread-safe. The default one is done.
class Event {
 public:
  Event() = default;

  bool done() const;
  /// Blocks the calling thread until done; throws the error, if there is one, as often as it is
  /// waited for. Its message has the context of who submitted the task.
  void wait() const;

 private:
  friend class Stream;
  friend class Work;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
    std::vector<Tensor> held;  // let go when done
  };

  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// The error after waiting, not thrown.
  std::exception_ptr result() const;
  void finish(std::exception_ptr error) const;
  /// Keeps the tensors until done.
  void hold(std::vector<Tensor> tensors) const;

  std::shared_ptr<State> state_;
};

enum class StreamKind {
  caller,  ///< tasks run at once in submit(), and wait() blocks: a rank's own stream
  worker   ///< tasks run on a thread of the stream's own, which sleeps when idle
};

/// Where a task of a worker stream runs.
enum class RunOn {
  worker,
  /// The calling thread, if the stream has nothing to do: for who would wait at once, so that no
  /// thread need wake up.
  caller
};

/// An ordered queue of tasks. Submit and wait from one thread, the rank's; not from its own tasks.
class Stream {
 public:
  /// `name` is put before errors that are no sherd::Error.
  explicit Stream(StreamKind kind, std::string name = "stream");
  /// Runs what is left, then ends the thread.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamKind kind() const { return kind_; }

  /// Runs `task` after all that was submitted before, and after `after`; the caller's context is in
  /// place while it runs. If one of those failed, the task does not run and fails likewise. Never
  /// throws what the task throws: that is in the Event.
  Event submit(std::function<void()> task, std::vector<Event> after = {},
               RunOn where = RunOn::worker);
  /// The point after all that was submitted so far.
  Event record() const { return last_; }
  /// What is submitted from now on runs after `event`. A caller stream blocks, and throws the
  /// event's error.
  void wait(const Event& event);
  /// Blocks until all is done; throws the first error.
  void synchronize() const { last_.wait(); }

 private:
  struct Task {
    std::function<void()> body;
    std::vector<Event> after;
    std::vector<std::string> context;
    Event done;
  };

  void run(Task& task);
  void work();

  const StreamKind kind_;
  const std::string name_;
  Event last_;
  std::exception_ptr failed_;  // used by who runs the tasks
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  bool stop_ = false;
  std::thread thread_;
};

/// Something in flight with the buffers it reads and writes. Move-only; not thread-safe.
class Work {
 public:
  Work() = default;
  Work(Event event, std::vector<Tensor> buffers)
      : event_(std::move(event)), buffers_(std::move(buffers)) {}
  /// Does not block: buffers of a Work that nobody waited for go when it is done.
  ~Work() { let_go(); }
  Work(Work&&) = default;
  Work& operator=(Work&& other) noexcept;

  /// Orders `consumer` after this, then lets the buffers go: at once if done, else when done. A
  /// caller stream blocks, and throws the error.
  void wait(Stream& consumer);
  bool done() const { return event_.done(); }
  const Event& event() const { return event_; }

 private:
  void let_go();

  Event event_;
  std::vector<Tensor> buffers_;
};

}  // namespace sherd
