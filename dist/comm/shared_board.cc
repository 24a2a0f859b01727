#include "dist/comm/shared_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace sherd {

namespace {

std::shared_ptr<Board> mapped(const FileHandle& file, int ranks, bool create) {
  const size_t bytes = Board::bytes(ranks);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (memory == MAP_FAILED) fail_system("map the board of a group");
  Board* const board = create ? Board::create(memory, ranks) : static_cast<Board*>(memory);
  return {board, [bytes](Board* b) { munmap(b, bytes); }};
}

}  // namespace

NewBoard::NewBoard(int ranks) : file_(memfd_create("sherd-board", MFD_CLOEXEC)) {
  if (file_.fd() < 0 || ftruncate(file_.fd(), static_cast<off_t>(Board::bytes(ranks))) != 0)
    fail_system("make the board of a group");
  board_ = mapped(file_, ranks, true);
}

BoardHandle NewBoard::handle() const { return {getpid(), file_.fd()}; }

std::shared_ptr<Board> open_board(const BoardHandle& handle, int ranks) {
  const std::string path = detail::concat("/proc/", handle.process, "/fd/", handle.fd);
  const FileHandle file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.fd() < 0) fail_system("open the board of a group, ", path);
  return mapped(file, ranks, false);
}

}  // namespace sherd
