#include <algorithm>

#include "tensor/gemm_block.h"
#include "tensor/kernels/copy_kernels.h"
#include "tensor/tensor.h"

namespace sherd::detail {

namespace {

// The largest pieces of c and of the summed dim that are multiplied at once: an operand is widened
// once for every piece of c in its way, and the widened pieces stay in the cache.
constexpr int64_t kRows = 512;
constexpr int64_t kColumns = 256;
constexpr int64_t kDepth = 384;

/// Rows [row, row + rows) × columns [column, column + columns) of a matrix.
struct Piece {
  int64_t row, column, rows, columns;
};

template <class From, class To>
void convert(Isa isa, const From* from, int64_t ld_from, To* to, int64_t ld_to, int64_t rows,
             int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    run_at(isa, kernels::Convert<From, To>{from + i * ld_from, to + i * ld_to}, 0, columns);
}

/// The piece of `from` as f32 at `to`, in rows of just its length.
template <class T>
void widen(Isa isa, const void* from, int64_t ld, const Piece& p, float* to) {
  convert(isa, static_cast<const T*>(from) + p.row * ld + p.column, ld, to, p.columns, p.rows,
          p.columns);
}

/// f32 room for a piece of a, of b and of c.
struct Room {
  Room(Runtime& runtime, const Gemm& g)
      : rows(std::min(kRows, g.m)), columns(std::min(kColumns, g.n)), depth(std::min(kDepth, g.k)) {
    memory = Tensor::empty(runtime.shared_from_this(),
                           {(rows + columns) * depth + rows * columns + columns});
  }
  float* a() const { return memory.data<float>(); }
  float* b() const { return a() + rows * depth; }
  float* c() const { return b() + columns * depth; }
  float* bias() const { return c() + rows * columns; }

  int64_t rows, columns, depth;
  Tensor memory;
};

/// c of one piece, all of the summed dim.
template <class T>
void multiply(Isa isa, const Gemm& g, const Room& room, const Piece& piece) {
  Gemm part;
  part.m = piece.rows;
  part.n = piece.columns;
  part.transpose_a = g.transpose_a;
  part.transpose_b = g.transpose_b;
  part.accumulate = g.accumulate;
  const bool wide = g.out == DType::f32;
  T* const half = static_cast<T*>(g.c) + piece.row * g.ldc + piece.column;
  part.c = wide ? static_cast<float*>(g.c) + piece.row * g.ldc + piece.column : room.c();
  part.ldc = wide ? g.ldc : piece.columns;
  if (!wide && g.accumulate)
    convert(isa, half, g.ldc, room.c(), piece.columns, piece.rows, piece.columns);
  if (g.bias != nullptr) {
    widen<T>(isa, g.bias, g.n, {0, piece.column, 1, piece.columns}, room.bias());
    part.bias = room.bias();
  }
  int64_t depth = 0;
  do {
    part.k = std::min(kDepth, g.k - depth);
    const Piece a = g.transpose_a ? Piece{depth, piece.row, part.k, part.m}
                                  : Piece{piece.row, depth, part.m, part.k};
    const Piece b = g.transpose_b ? Piece{piece.column, depth, part.n, part.k}
                                  : Piece{depth, piece.column, part.k, part.n};
    widen<T>(isa, g.a, g.lda, a, room.a());
    widen<T>(isa, g.b, g.ldb, b, room.b());
    part.a = room.a();
    part.lda = a.columns;
    part.b = room.b();
    part.ldb = b.columns;
    gemm_onednn(part);
    part.accumulate = true;
    part.bias = nullptr;
    depth += part.k;
  } while (depth < g.k);
  if (!wide) convert(isa, room.c(), piece.columns, half, g.ldc, piece.rows, piece.columns);
}

}  // namespace

void gemm_halves(Runtime& runtime, const Gemm& g) {
  const Room room(runtime, g);
  if (runtime.device().is_meta()) return;
  on_dtype<bf16, f16>(g.in, "gemm", [&](auto tag) {
    for (int64_t row = 0; row < g.m; row += kRows)
      for (int64_t column = 0; column < g.n; column += kColumns)
        multiply<typename decltype(tag)::type>(
            runtime.isa(), g, room,
            {row, column, std::min(kRows, g.m - row), std::min(kColumns, g.n - column)});
  });
}

}  // namespace sherd::detail
