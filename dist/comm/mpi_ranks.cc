#include "dist/comm/mpi_ranks.h"

#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/progress.h"

namespace sherd {

namespace {

// How long a rank that failed stays, so that the others end by themselves, with its cause.
constexpr double kGrace_s = 1;

/// Ends a system call that failed, which errno explains.
template <class... A>
[[noreturn]] void fail_system(const A&... a) {
  const int error = errno;
  fail_as(ErrorKind::comm, "cannot", detail::concat(a..., ": ", std::strerror(error)));
}

/// glibc has it from 2.36 on, but not for C++.
int pidfd_open(int32_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// A file as a process holds it open.
struct Handle {
  int32_t process = 0;
  int32_t fd = -1;
};

std::shared_ptr<Board> mapped(const File& file, int ranks, bool create) {
  const size_t bytes = Board::bytes(ranks);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (memory == MAP_FAILED) fail_system("map the board of a group");
  Board* const board = create ? Board::create(memory, ranks) : static_cast<Board*>(memory);
  return {board, [bytes](Board* b) { munmap(b, bytes); }};
}

/// A board that others can open by handle() while this lives.
class NewBoard {
 public:
  explicit NewBoard(int ranks) : file_(memfd_create("sherd-board", MFD_CLOEXEC)) {
    if (file_.fd() < 0 || ftruncate(file_.fd(), static_cast<off_t>(Board::bytes(ranks))) != 0)
      fail_system("make the board of a group");
    board_ = mapped(file_, ranks, true);
  }
  Handle handle() const { return {getpid(), file_.fd()}; }
  const std::shared_ptr<Board>& board() const { return board_; }

 private:
  File file_;
  std::shared_ptr<Board> board_;
};

std::shared_ptr<Board> open_board(const Handle& handle, int ranks) {
  const std::string path = detail::concat("/proc/", handle.process, "/fd/", handle.fd);
  const File file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.fd() < 0) fail_system("open the board of a group, ", path);
  return mapped(file, ranks, false);
}

class ProcessBoards final : public BoardMaker {
 public:
  std::shared_ptr<Board> make(Communicator& parent, const std::vector<int>& members) override {
    const CallTag tag{.unit = "subgroup"};
    const auto ranks = static_cast<int>(members.size());
    std::unique_ptr<NewBoard> made;
    Handle mine;
    if (parent.rank() == members[0]) {
      made = std::make_unique<NewBoard>(ranks);
      mine = made->handle();
    }
    const auto all = exchange_one(parent, mine, tag);
    auto board = made ? made->board() : open_board(all[static_cast<size_t>(members[0])], ranks);
    // All have opened it before its maker lets go of the file.
    parent.barrier(tag);
    return board;
  }
};

/// The processes of the ranks: reads their memory, and sees when one is gone. Thread-safe.
class Processes final : public PeerMemory {
 public:
  Processes(std::vector<int32_t> ids, int me) : ids_(std::move(ids)) {
    for (size_t r = 0; r < ids_.size(); ++r) {
      const bool mine = static_cast<int>(r) == me;
      ends_.emplace_back(mine ? -1 : pidfd_open(ids_[r]));
      if (!mine && ends_.back().fd() < 0) fail_system("watch ", name_of(r));
    }
  }

  bool is_shared() const override { return false; }

  void read(int rank, std::span<const Piece> pieces) const override {
    const auto r = static_cast<size_t>(rank);
    std::vector<iovec> to, from;
    for (const Piece& piece : pieces) {
      if (piece.bytes == 0) continue;
      to.push_back({piece.to, piece.bytes});
      from.push_back({const_cast<void*>(piece.from), piece.bytes});
    }
    for (size_t at = 0; at < to.size();) {
      const size_t count = std::min<size_t>(to.size() - at, IOV_MAX);
      const ssize_t n = process_vm_readv(ids_[r], &to[at], count, &from[at], count, 0);
      if (n <= 0) {
        if (n < 0 && errno == EINTR) continue;
        const int error = n < 0 ? errno : EFAULT;
        // Its memory goes before its end can be seen.
        if (error == ESRCH || is_gone(rank))
          fail_as(ErrorKind::comm, "lost a rank:", name_of(r), "is gone");
        errno = error;
        fail_system("read the memory of ", name_of(r), " (process_vm_readv)");
      }
      // Less than asked for may come; the rest is asked for again.
      for (auto left = static_cast<size_t>(n); left > 0;) {
        const size_t part = std::min(left, to[at].iov_len);
        for (iovec* v : {&to[at], &from[at]})
          *v = {static_cast<std::byte*>(v->iov_base) + part, v->iov_len - part};
        left -= part;
        if (to[at].iov_len == 0) ++at;
      }
    }
  }

  bool is_gone(int rank) const {
    const int fd = ends_[static_cast<size_t>(rank)].fd();
    pollfd end{fd, POLLIN, 0};
    return fd >= 0 && poll(&end, 1, 0) > 0;
  }
  /// "rank 2 (process 1234) is gone", or "".
  std::string gone() const {
    for (size_t r = 0; r < ends_.size(); ++r)
      if (is_gone(static_cast<int>(r))) return name_of(r) + " is gone";
    return {};
  }

 private:
  std::string name_of(size_t rank) const {
    return detail::concat("rank ", rank, " (process ", ids_[rank], ")");
  }

  const std::vector<int32_t> ids_;
  std::vector<File> ends_;  // of each rank but this one
};

template <class T>
std::vector<T> told_by_all(const T& mine, int ranks) {
  std::vector<T> all(static_cast<size_t>(ranks));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  return all;
}

using Text = std::array<char, 256>;

Text text(const std::string& s) {
  Text t{};
  s.copy(t.data(), t.size() - 1);
  return t;
}

/// What the ranks tell each other first.
struct Hello {
  Text host, boot;
  Handle board;         // rank 0 made it
  const int64_t* word;  // holds the process's number
};

struct World {
  std::shared_ptr<Board> board;
  std::shared_ptr<Processes> processes;
};

/// Throws the same on all ranks, after MPI is done with.
World meet(int rank, int ranks) {
  // Where only a parent may read a process's memory, its siblings may, too; elsewhere this fails.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const int64_t word = getpid();
  World world;
  std::string trouble;
  const auto attempt = [&](const auto& body) {
    if (!trouble.empty()) return;
    try {
      body();
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  };

  Hello mine{};
  mine.word = &word;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  mine.boot = text(boot);
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::unique_ptr<NewBoard> made;
  mine.board.process = getpid();
  if (rank == 0)
    attempt([&] {
      made = std::make_unique<NewBoard>(ranks);
      mine.board = made->handle();
    });
  const auto all = told_by_all(mine, ranks);
  attempt([&] {
    for (const Hello& h : all)
      check(h.boot == all[0].boot,
            "ranks are processes of one host for now; they are on:", all[0].host.data(), "and",
            h.host.data());
    std::vector<int32_t> ids;
    for (const Hello& h : all) ids.push_back(h.board.process);
    world.processes = std::make_shared<Processes>(std::move(ids), rank);
    for (int r = 0; r < ranks; ++r) {
      const Hello& h = all[static_cast<size_t>(r)];
      int64_t seen = 0;
      const PeerMemory::Piece word{h.word, &seen, sizeof seen};
      world.processes->read(r, {&word, 1});
      check(seen == h.board.process, "rank", r, "is not process", h.board.process,
            "here: the ranks must see each other's processes");
    }
    if (made || all[0].board.fd >= 0)
      world.board = made ? made->board() : open_board(all[0].board, ranks);
  });
  // Nobody's word, and not rank 0's file, is let go of before all have seen it.
  for (const Text& t : told_by_all(text(trouble), ranks)) {
    if (t[0] == '\0') continue;
    MPI_Finalize();
    throw Error(ErrorKind::comm, t.data());
  }
  return world;
}

/// Sleeps until all ranks have ended or are gone; for at most `most_s`.
void wait_for_ends(const World& world, int ranks, double most_s) {
  const double begin_s = steady_seconds();
  for (int r = 0; r < ranks;) {
    if (world.board->ended(r) || world.processes->is_gone(r)) {
      ++r;
      continue;
    }
    if (steady_seconds() - begin_s > most_s) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

bool has_mpi_ranks() { return true; }

void run_mpi_ranks(const MpiRanksOptions& options, const std::function<void(Rank&)>& body) {
  int began = 0;
  MPI_Initialized(&began);
  check(began == 0, "MPI has begun already; its ranks run once in a process");
  int level = 0, rank = 0, ranks = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const World world = meet(rank, ranks);
  std::vector<int> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);

  const Context in("rank ", rank);
  try {
    const RuntimePtr runtime = Runtime::create({.threads = options.threads_per_rank,
                                                .isa = options.isa,
                                                .memory_limit = options.memory_limit,
                                                .poison = options.poison});
    const auto stream = std::make_shared<Stream>(StreamKind::worker, "communication");
    try {
      LocalComm comm({.runtime = runtime,
                      .stream = stream,
                      .memory = world.processes,
                      .boards = std::make_shared<ProcessBoards>(),
                      .world = world.board,
                      .timeout_s = options.timeout_s,
                      .link = options.link,
                      .lost_rank = [processes = world.processes] { return processes->gone(); },
                      .kept = nullptr},
                     world.board, rank, members);
      Rank mine{rank, ranks, runtime, comm};
      body(mine);
      stream->synchronize();
    } catch (const std::exception& e) {
      // Before the stream ends: its calls must not wait for others.
      world.board->abort(cause_at(rank, e.what()));
      throw;
    }
    // Others may still work: MPI_Finalize would wait for them with a busy core.
    world.board->set_ended(rank);
    wait_for_ends(world, ranks, std::numeric_limits<double>::infinity());
    for (int r = 0; r < ranks; ++r)
      if (!world.board->ended(r)) world.board->abort(world.processes->gone());
    if (world.board->aborted())
      fail_as(ErrorKind::comm, "stopped at its end:", world.board->cause());
  } catch (const std::exception& e) {
    world.board->set_ended(rank);
    wait_for_ends(world, ranks, kGrace_s);
    const auto* ours = dynamic_cast<const Error*>(&e);
    throw Error(ours != nullptr ? ours->kind() : ErrorKind::device, cause_at(rank, e.what()));
  }
  MPI_Finalize();
}

}  // namespace sherd
