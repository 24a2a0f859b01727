#include "tensor/stream.h"

#include <utility>

#include "base/error.h"

namespace sherd {

bool Event::done() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

std::exception_ptr Event::result() const {
  if (!state_) return nullptr;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
  return state_->error;
}

void Event::wait() const {
  if (const auto error = result()) std::rethrow_exception(error);
}

void Event::finish(std::exception_ptr error) const {
  for (;;) {
    std::vector<Tensor> held;  // let go before anyone is told
    const std::lock_guard lock(state_->mutex);
    held.swap(state_->held);
    if (!held.empty()) continue;
    state_->done = true;
    state_->error = std::move(error);
    state_->changed.notify_all();
    return;
  }
}

void Event::hold(std::vector<Tensor> tensors) const {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->done) return;
  for (auto& t : tensors) state_->held.push_back(std::move(t));
}

Stream::Stream(StreamKind kind, std::string name) : kind_(kind), name_(std::move(name)) {
  if (kind_ == StreamKind::worker) thread_ = std::thread([this] { work(); });
}

Stream::~Stream() {
  if (kind_ == StreamKind::caller) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

Event Stream::submit(std::function<void()> task, std::vector<Event> after, RunOn where) {
  const Event done(std::make_shared<Event::State>());
  Task item{std::move(task), std::move(after), detail::context_frames(), done};
  // Once the last task is done, the worker touches nothing before the next one is queued.
  if (kind_ == StreamKind::caller || (where == RunOn::caller && last_.done())) {
    run(item);
  } else {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    changed_.notify_one();
  }
  last_ = done;
  return done;
}

void Stream::wait(const Event& event) {
  if (kind_ == StreamKind::caller)
    event.wait();
  else
    submit({}, {event});
}

void Stream::run(Task& task) {
  auto& frames = detail::context_frames();
  const auto before = std::exchange(frames, std::move(task.context));
  std::exception_ptr error = failed_;
  for (const auto& event : task.after) {
    const auto theirs = event.result();
    if (!error) error = theirs;
  }
  if (!error && task.body) {
    try {
      task.body();
    } catch (const Error&) {
      error = std::current_exception();
    } catch (const std::exception& e) {
      std::string text;
      for (const auto& frame : frames) text += frame + ": ";
      error = std::make_exception_ptr(Error(ErrorKind::device, text + name_ + ": " + e.what()));
    } catch (...) {
      error = std::current_exception();
    }
  }
  failed_ = error;
  // What the task holds goes before anyone is told.
  task.body = nullptr;
  task.after.clear();
  frames = before;
  task.done.finish(error);
}

void Stream::work() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    run(task);
  }
}

Work& Work::operator=(Work&& other) noexcept {
  let_go();
  event_ = std::move(other.event_);
  buffers_ = std::move(other.buffers_);
  return *this;
}

void Work::wait(Stream& consumer) {
  try {
    consumer.wait(event_);
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

void Work::let_go() {
  if (buffers_.empty()) return;
  event_.hold(std::move(buffers_));
  buffers_.clear();
}

}  // namespace sherd
