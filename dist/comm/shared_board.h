// Boards in memory that several processes of a host share.
#pragma once

#include <cstdint>
#include <memory>

#include "dist/comm/board.h"
#include "dist/comm/file_handle.h"

namespace sherd {

/// A file as a process holds it open; none: fd < 0.
struct BoardHandle {
  int32_t process = 0;
  int32_t fd = -1;
};

/// A board that others can open by handle() while this lives.
class NewBoard {
 public:
  explicit NewBoard(int ranks);
  BoardHandle handle() const;
  const std::shared_ptr<Board>& board() const { return board_; }

 private:
  FileHandle file_;
  std::shared_ptr<Board> board_;
};

std::shared_ptr<Board> open_board(const BoardHandle& handle, int ranks);

}  // namespace sherd
