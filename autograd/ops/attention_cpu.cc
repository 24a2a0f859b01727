// Attention's two directions over tiles of queries and keys. Scores are in units of log2, so that
// exp is 2^x: q is packed times scale · log2(e).
#include "autograd/ops/attention_kernels.h"
#include "autograd/ops/attention_tiles.h"

namespace sherd::kernels {

namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;
constexpr int64_t kMaxKeyTile = 288;
constexpr int64_t kTileStep = 48;

/// Queries that go through a tile of keys together: while they do, a panel stays in L1.
constexpr int64_t kForwardRows = 24;
constexpr int64_t kBackwardRows = 48;
static_assert(kForwardRows % kRows == 0 && kBackwardRows % kRows == 0 && kTileStep % kRows == 0);
static_assert(kMaxKeyTile % kTileStep == 0);

/// Keys of a tile: whole vectors and whole groups of kRows; few enough to stay in L2, packed.
template <class F>
[[gnu::always_inline]] inline int64_t key_tile(int64_t D, int64_t S) {
  const int64_t row_bytes = D * static_cast<int64_t>(sizeof(F));
  const int64_t most = row_bytes <= 320 ? kMaxKeyTile : row_bytes <= 512 ? 192 : kTileStep;
  const int64_t tiles = larger(1, (S + most - 1) / most);
  return round_up(larger(1, (S + tiles - 1) / tiles), kTileStep);
}

template <class T>
inline constexpr bool kConst = false;
template <class T>
inline constexpr bool kConst<const T> = true;

template <class F>
[[gnu::always_inline]] inline F infinity() {
  return static_cast<F>(__builtin_inf());
}

/// Hands out parts of one array, each at a multiple of 64 bytes.
template <class F>
struct Scratch {
  F* next;
  [[gnu::always_inline]] F* take(int64_t elements) {
    F* const part = next;
    next += round_up(elements, kLanes<F>);
    return part;
  }
};

/// Lanes of p whose key is masked become `other`.
template <class F>
[[gnu::always_inline]] inline Vec<F> where_seen(Vec<F> p, const bool* seen, F other) {
  F x[kLanes<F>];
  for (int i = 0; i < kLanes<F>; ++i) x[i] = seen[i] ? F(1) : F(0);
  return select_equal(load(x), Vec<F>{}, splat(other), p);
}

/// A tile of keys: those from n0 on, n of them; `seen` is their mask, or null.
struct KeyTile {
  int64_t n0, n;
  const bool* seen;
};

/// The mask of n keys, false behind them; null where there is none.
[[gnu::always_inline]] inline const bool* seen_keys(const bool* mask, int64_t from, int64_t n,
                                                    bool (&seen)[kMaxKeyTile]) {
  if (mask == nullptr) return nullptr;
  for (int64_t i = 0; i < kMaxKeyTile; ++i) seen[i] = i < n && mask[from + i];
  return seen;
}

template <class T>
[[gnu::always_inline]] inline Stream stream(const HeadRows<T>& x, int64_t b, int64_t t, int64_t h,
                                            int64_t rows) {
  return {reinterpret_cast<const char*>(x.row(b, t, h)), x.step * static_cast<int64_t>(sizeof(T)),
          rows, !kConst<T>};
}

// --- forward ------------------------------------------------------------------------------------

/// What a forward item keeps for its queries.
template <class F>
struct Queries {
  F* q;       // [rows, Dp] times scale · log2(e)
  F* y;       // [rows, Dp] Σ p v so far
  F* max;     // [rows] of the scores so far
  F* sum;     // [rows, lanes] Σ p so far
  F* shrink;  // [rows] 2^(old max - new max)
};

/// The largest of a query's scores; hidden ones become -inf. `limit` keys of the tile are visible.
template <class F>
[[gnu::always_inline]] inline F hide_and_max(F* scores, int64_t limit, const bool* seen) {
  constexpr int64_t L = kLanes<F>;
  Vec<F> top = splat(-infinity<F>());
  for (int64_t n = 0; n < limit; n += L) {
    Vec<F> s = load(scores + n);
    if (limit - n < L) s = first_lanes(s, limit - n, -infinity<F>());
    if (seen != nullptr) s = where_seen(s, seen + n, -infinity<F>());
    if (limit - n < L || seen != nullptr) store(scores + n, s);
    top = max(top, s);
  }
  return largest(top);
}

/// Scores of `rows` ≤ kRows queries become p = 2^(score - max), with max, sum and shrink brought up
/// to date. Query i sees limit(i) keys of the tile; p is 0 from there to `width`.
template <class F, class Limit>
[[gnu::always_inline]] inline void softmax_rows(F* p, int64_t ldp, int64_t rows, int64_t width,
                                                const bool* seen, F* max, F* sum, F* shrink,
                                                const Limit& limit) {
  constexpr int64_t L = kLanes<F>;
  static_assert(kRows <= L);
  F base[L] = {};
  F change[L] = {};  // of the maxima: one 2^x serves all rows
  for (int64_t i = 0; i < rows; ++i) {
    const F highest = hide_and_max(p + i * ldp, limit(i), seen);
    const F now = highest > max[i] ? highest : max[i];
    base[i] = now == -infinity<F>() ? F(0) : now;
    change[i] = max[i] - base[i];
    max[i] = now;
  }
  store(change, exp2(load(change)));
  for (int64_t i = 0; i < rows; ++i) {
    shrink[i] = change[i];
    Vec<F> total = load(sum + i * L) * splat(change[i]);
    F* const row = p + i * ldp;
    const int64_t end = limit(i);
    int64_t n = 0;
    for (; n < end; n += L) {
      const Vec<F> e = exp2(load(row + n) - splat(base[i]));
      store(row + n, e);
      total += e;
    }
    for (; n < width; n += L) store(row + n, Vec<F>{});
    store(sum + i * L, total);
  }
}

/// Brings queries [r0, r0 + count) of the item up to date with one tile of keys.
template <class F>
void attend(const Queries<F>& queries, int64_t r0, int64_t count, int64_t first_limit, bool causal,
            const KeyTile& tile, const F* keys, const F* values, F* scores, int64_t D,
            int64_t tile_size, Ahead& ahead) {
  constexpr int64_t L = kLanes<F>;
  const int64_t Dp = round_up(D, L);
  // Keys of the tile that a group of kRows queries needs: what its last query sees.
  const auto limit_of = [&](int64_t r) __attribute__((always_inline)) {
    const int64_t n = causal ? first_limit + smaller(r, count - 1) - tile.n0 : tile.n;
    return larger(0, smaller(n, tile.n));
  };
  const int64_t longest = limit_of(count - 1);
  for (int64_t n = 0; n < longest; n += kPanel<F>) {
    for (int64_t r = 0; r < count; r += kRows) {
      const int64_t limit = limit_of(r + kRows - 1);
      if (n >= limit) continue;
      ahead.step();
      multiply<F>({queries.q + (r0 + r) * Dp, Dp, 1, keys + n * D, kPanel<F>, D,
                   scores + r * tile_size + n, tile_size},
                  smaller(kPanelVecs, (limit - n + L - 1) / L));
    }
  }
  for (int64_t r = 0; r < count; r += kRows) {
    const int64_t group = limit_of(r + kRows - 1);
    if (group == 0) continue;
    softmax_rows(
        scores + r * tile_size, tile_size, smaller(kRows, count - r), group, tile.seen,
        queries.max + r0 + r, queries.sum + (r0 + r) * L,
        queries.shrink + r0 + r, [&](int64_t i) __attribute__((always_inline)) {
          return limit_of(r + i);
        });
    scale_multiply_add<F>(
        {scores + r * tile_size, tile_size, 1, values, Dp, group, queries.y + (r0 + r) * Dp, Dp},
        Dp / L, queries.shrink + r0 + r);
  }
}

/// Hands out y and lse of query t from their sums.
template <class T>
void finish_query(const AttentionForward<T>& op, int64_t b, int64_t h, int64_t t,
                  const Accumulate<T>* y, Accumulate<T> max, const Accumulate<T>* sums) {
  using F = sherd::Accumulate<T>;
  const F weight = total(load(sums));
  const F share = weight == 0 ? F(0) : 1 / weight;
  T* const to = op.y.row(b, t, h);
  for_lanes<T>(
      op.sizes.D, [&](int64_t d, int64_t n) __attribute__((always_inline)) {
        store(to + d, load(y + d) * splat(share), n);
      });
  if (op.lse != nullptr)
    op.lse[(b * op.sizes.H + h) * op.sizes.T + t] =
        weight == 0 ? infinity<F>() : max + log2_of(weight);
}

/// So few queries that packing keys for them costs more than it saves: each reads its keys in
/// place.
constexpr int64_t kFewQueries = 2;

template <class T>
void forward_one(const AttentionForward<T>& op, int64_t b, int64_t h, int64_t t,
                 Accumulate<T>* memory) {
  using F = sherd::Accumulate<T>;
  constexpr int64_t L = kLanes<F>;
  const AttentionSizes& z = op.sizes;
  const int64_t D = z.D;
  const int64_t g = h / (z.H / z.Hkv);
  Scratch<F> scratch{memory};
  F* const q = scratch.take(round_up(D, L));
  F* const y = scratch.take(round_up(D, L));
  F* const p = scratch.take(kMaxKeyTile);
  F* const sums = scratch.take(L);
  pack_rows<F>(op.q.row(b, t, h), 0, 1, 1, D, static_cast<F>(op.scale * kLog2E), nullptr, q,
               round_up(D, L));
  for (int64_t d = 0; d < D; d += L) store(y + d, Vec<F>{});
  store(sums, Vec<F>{});
  F max = -infinity<F>();
  const int64_t end = z.visible(t);
  for (int64_t n0 = 0; n0 < end; n0 += kMaxKeyTile) {
    const int64_t n = smaller(kMaxKeyTile, end - n0);
    bool copied[kMaxKeyTile];
    const bool* const seen = seen_keys(op.mask, b * z.S + n0, n, copied);
    const T* const keys = op.k.row(b, n0, g);
    for (int64_t i0 = 0; i0 < n; i0 += L) {
      Vec<F> products[L] = {};
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) {
        const T* const key = keys + smaller(i0 + i, n - 1) * op.k.step;
        if (i0 + i + L < n) prefetch_row(key + L * op.k.step, D);
        for_lanes<T>(
            D, [&](int64_t d, int64_t count) __attribute__((always_inline)) {
              products[i] += load(q + d) * load(key + d, count);
            });
      }
      store(p + i0, sum_each(products));
    }
    F shrink = 0;
    softmax_rows(
        p, 0, 1, n, seen, &max, sums,
        &shrink, [n](int64_t) __attribute__((always_inline)) { return n; });
    const T* const values = op.v.row(b, n0, g);
    for (int64_t d = 0; d < D; d += L) store(y + d, load(y + d) * splat(shrink));
    for (int64_t i0 = 0; i0 < n; i0 += L) {
      const int64_t count = smaller(L, n - i0);
      for (int64_t i = L; i < 2 * L && i0 + i < n; ++i)
        prefetch_row(values + (i0 + i) * op.v.step, D);
      for_lanes<T>(
          D, [&](int64_t d, int64_t width) __attribute__((always_inline)) {
            Vec<F> sum = load(y + d);
            for (int64_t i = i0; i < i0 + count; ++i)
              if (seen == nullptr || seen[i])
                sum += splat(p[i]) * load(values + i * op.v.step + d, width);
            store(y + d, sum);
          });
    }
  }
  finish_query(op, b, h, t, y, max, sums);
}

/// The queries of a forward item. Late queries see most: they go first, which leaves threads little
/// to wait for.
struct ForwardItem {
  int64_t b, h, g, t0, rows;
};
[[gnu::always_inline]] inline ForwardItem forward_item_at(const AttentionSizes& z, int64_t item) {
  const int64_t size = attention_query_tile(z.D);
  const int64_t tiles = (z.T + size - 1) / size;
  const int64_t t0 = (tiles - 1 - item % tiles) * size;
  const int64_t h = item / tiles % z.H;
  return {item / tiles / z.H, h, h / (z.H / z.Hkv), t0, smaller(size, z.T - t0)};
}

template <class T>
void forward_item(const AttentionForward<T>& op, int64_t item, int64_t items_end,
                  Accumulate<T>* memory) {
  using F = sherd::Accumulate<T>;
  constexpr int64_t L = kLanes<F>;
  const AttentionSizes& z = op.sizes;
  const int64_t D = z.D;
  const int64_t Dp = round_up(D, L);
  const int64_t tile_size = key_tile<F>(D, z.S);
  const auto [b, h, g, t0, rows] = forward_item_at(z, item);
  const int64_t padded = round_up(rows, kRows);

  Scratch<F> scratch{memory};
  Queries<F> queries{};
  queries.q = scratch.take(padded * Dp);
  queries.y = scratch.take(padded * Dp);
  queries.max = scratch.take(padded);
  queries.sum = scratch.take(padded * L);
  queries.shrink = scratch.take(padded);
  F* const keys = scratch.take(round_up(tile_size, kPanel<F>) * D);
  F* const values = scratch.take(tile_size * Dp);
  F* const scores = scratch.take(kForwardRows * tile_size);

  pack_rows<F>(op.q.row(b, t0, h), op.q.step, rows, padded, D, static_cast<F>(op.scale * kLog2E),
               nullptr, queries.q, Dp);
  for (int64_t i = 0; i < padded * Dp; i += L) store(queries.y + i, Vec<F>{});
  for (int64_t i = 0; i < padded * L; i += L) store(queries.sum + i, Vec<F>{});
  for (int64_t i = 0; i < padded; ++i) queries.max[i] = -infinity<F>();
  for (int64_t i = 0; i < padded; ++i) queries.shrink[i] = 1;

  const int64_t end = z.visible(t0 + rows - 1);
  for (int64_t n0 = 0; n0 < end; n0 += tile_size) {
    const int64_t n = smaller(tile_size, end - n0);
    bool copied[kMaxKeyTile];
    const bool* const mask = seen_keys(op.mask, b * z.S + n0, n, copied);
    pack_panels<F>(op.k.row(b, n0, g), op.k.step, n, round_up(n, kRows), D, mask, keys);
    pack_rows<F>(op.v.row(b, n0, g), op.v.step, n, n, D, F(1), mask, values, Dp);
    const KeyTile tile{n0, n, mask};
    Ahead ahead{{}, D * static_cast<int64_t>(sizeof(T))};
    if (n0 + tile_size < end) {
      const int64_t next = n0 + tile_size;
      ahead.streams[0] = stream(op.k, b, next, g, smaller(tile_size, end - next));
      ahead.streams[1] = stream(op.v, b, next, g, smaller(tile_size, end - next));
    } else {
      ahead.streams[0] = stream(op.y, b, t0, h, rows);
      if (item + 1 < items_end) {
        const ForwardItem next = forward_item_at(z, item + 1);
        const int64_t keys_next = smaller(tile_size, z.visible(next.t0 + next.rows - 1));
        ahead.streams[1] = stream(op.k, next.b, 0, next.g, keys_next);
        ahead.streams[2] = stream(op.v, next.b, 0, next.g, keys_next);
        ahead.streams[3] = stream(op.q, next.b, next.t0, next.h, next.rows);
      }
    }
    for (int64_t r = 0; r < rows; r += kForwardRows) {
      const int64_t count = smaller(kForwardRows, rows - r);
      if (z.visible(t0 + r + count - 1) <= n0) continue;
      attend<F>(queries, r, count, t0 + r + 1 + z.S - z.T, z.causal, tile, keys, values, scores, D,
                tile_size, ahead);
    }
  }

  for (int64_t r = 0; r < rows; ++r) {
    if (r + kAhead < rows) prefetch_to_write(op.y.row(b, t0 + r + kAhead, h), D);
    finish_query(op, b, h, t0 + r, queries.y + r * Dp, queries.max[r], queries.sum + r * L);
  }
}

// --- backward -----------------------------------------------------------------------------------

/// The packed tile of keys and what is summed for it.
template <class F>
struct KeySums {
  KeyTile tile;
  const F* keys;      // panels
  const F* values;    // panels
  const F* key_rows;  // [tile, Dp]
  F* dk;              // [tile, Dp] Σ ds q, where q is packed
  F* dv;              // [tile, Dp] Σ p dy
};

/// A block of queries, packed, and where its dq goes.
template <class F>
struct QueryBlock {
  int64_t count;        // ≤ kBackwardRows
  int64_t first_limit;  // keys that its first query sees
  bool causal;
  F* q;   // [rows, Dp] times scale · log2(e)
  F* dy;  // [rows, Dp]
  F* p;   // [rows, tile]
  F* ds;  // [rows, tile]
  const F* lse;
  const F* delta;
  F* dq;  // [rows, Dp] what the tile gives

  /// Keys of the tile that query r sees.
  [[gnu::always_inline]] int64_t limit(int64_t r, const KeyTile& tile) const {
    const int64_t n = causal ? first_limit + smaller(r, count - 1) - tile.n0 : tile.n;
    return larger(0, smaller(n, tile.n));
  }
};

/// p and ds of one query from its scores and dp, `width` of them; both 0 from `limit` on.
template <class F>
[[gnu::always_inline]] inline void row_gradients(F* p, F* ds, int64_t limit, int64_t width,
                                                 const bool* seen, F lse, F delta) {
  constexpr int64_t L = kLanes<F>;
  for (int64_t n = 0; n < width; n += L) {
    Vec<F> e = exp2(load(p + n) - splat(lse));
    if (limit - n < L) e = first_lanes(e, limit - n, F(0));
    if (seen != nullptr) e = where_seen(e, seen + n, F(0));
    store(p + n, e);
    store(ds + n, e * (load(ds + n) - splat(delta)));
  }
}

/// p and ds of a block: p = 2^(q·k - lse), ds = p (dy·v - delta).
template <class F>
void probabilities(const QueryBlock<F>& block, const KeySums<F>& sums, int64_t D, int64_t size,
                   Ahead& ahead) {
  constexpr int64_t L = kLanes<F>;
  const int64_t Dp = round_up(D, L);
  const KeyTile& tile = sums.tile;
  // Columns that the products of exchange() read: whole groups of kRows keys, in whole vectors.
  const auto width_of = [&](int64_t r) __attribute__((always_inline)) {
    return round_up(round_up(block.limit(r + kRows - 1, tile), kRows), L);
  };
  const int64_t longest = width_of(block.count - 1);
  for (int64_t n = 0; n < longest; n += kPanel<F>) {
    for (int64_t r = 0; r < block.count; r += kRows) {
      const int64_t width = smaller(kPanel<F>, width_of(r) - n);
      if (width <= 0) continue;
      ahead.step();
      F* const p = block.p + r * size + n;
      F* const ds = block.ds + r * size + n;
      multiply<F>({block.q + r * Dp, Dp, 1, sums.keys + n * D, kPanel<F>, D, p, size}, width / L);
      multiply<F>({block.dy + r * Dp, Dp, 1, sums.values + n * D, kPanel<F>, D, ds, size},
                  width / L);
      for (int64_t i = 0; i < kRows; ++i)
        row_gradients<F>(p + i * size, ds + i * size, block.limit(r + i, tile) - n, width,
                         tile.seen == nullptr ? nullptr : tile.seen + n, block.lse[r + i],
                         block.delta[r + i]);
    }
  }
}

/// What a block of queries and a tile of keys give to each other: dv and dk grow, dq is set.
template <class F>
void exchange(const QueryBlock<F>& block, const KeySums<F>& sums, int64_t D, int64_t size,
              Ahead& ahead) {
  constexpr int64_t L = kLanes<F>;
  const int64_t Dp = round_up(D, L);
  const KeyTile& tile = sums.tile;
  probabilities(block, sums, D, size, ahead);
  const int64_t longest = block.limit(block.count - 1, tile);
  int64_t r0 = 0;  // the first group of queries that sees key n
  for (int64_t n = 0; n < longest; n += kRows) {
    while (block.limit(r0 + kRows - 1, tile) <= n) r0 += kRows;
    const int64_t rows = block.count - r0;
    multiply_add<F>(
        {block.p + r0 * size + n, 1, size, block.dy + r0 * Dp, Dp, rows, sums.dv + n * Dp, Dp},
        Dp / L);
    multiply_add<F>(
        {block.ds + r0 * size + n, 1, size, block.q + r0 * Dp, Dp, rows, sums.dk + n * Dp, Dp},
        Dp / L);
  }
  for (int64_t r = 0; r < block.count; r += kRows)
    multiply<F>({block.ds + r * size, size, 1, sums.key_rows, Dp, block.limit(r + kRows - 1, tile),
                 block.dq + r * Dp, Dp},
                Dp / L);
}

/// delta[r] = Σ_D y·dy, dy packed
template <class F, class T>
void row_products(const T* y, int64_t y_step, const F* dy, int64_t dy_step, int64_t rows, int64_t D,
                  F* delta) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const from = y + r * y_step;
    if (r + kAhead < rows) prefetch_row(from + kAhead * y_step, D);
    Vec<F> products{};
    for_lanes<T>(
        D, [&](int64_t d, int64_t n) __attribute__((always_inline)) {
          products += load(from + d, n) * load(dy + r * dy_step + d);
        });
    delta[r] = total(products);
  }
}

/// sum = or += factor · part, rows of D.
template <class F>
void add_rows(const F* part, int64_t part_step, int64_t rows, int64_t D, F factor, bool first,
              F* sum, int64_t step) {
  for (int64_t r = 0; r < rows; ++r)
    for_lanes<F>(
        D, [&](int64_t d, int64_t n) __attribute__((always_inline)) {
          F* const to = sum + r * step + d;
          const Vec<F> x = splat(factor) * load(part + r * part_step + d);
          store(to, first ? x : load(to, n) + x, n);
        });
}

/// to = factor · from, rows of D.
template <class T, class F>
void unpack_rows(const F* from, int64_t from_step, int64_t rows, int64_t D, F factor, T* to,
                 int64_t step) {
  for (int64_t r = 0; r < rows; ++r)
    for_lanes<T>(
        D, [&](int64_t d, int64_t n) __attribute__((always_inline)) {
          store(to + r * step + d, splat(factor) * load(from + r * from_step + d, n), n);
        });
}

template <class T>
void backward_item(const AttentionBackward<T>& op, int64_t item, int64_t end,
                   Accumulate<T>* memory) {
  using F = sherd::Accumulate<T>;
  constexpr int64_t L = kLanes<F>;
  const AttentionSizes& z = op.sizes;
  const int64_t D = z.D;
  const int64_t Dp = round_up(D, L);
  const int64_t size = key_tile<F>(D, z.S);
  const int64_t b = item / z.Hkv;
  const int64_t g = item % z.Hkv;
  const int64_t group = z.H / z.Hkv;

  Scratch<F> scratch{memory};
  F* const keys = scratch.take(round_up(size, kPanel<F>) * D);
  F* const values = scratch.take(round_up(size, kPanel<F>) * D);
  F* const key_rows = scratch.take(size * Dp);
  F* const dk = scratch.take(size * Dp);
  F* const dv = scratch.take(size * Dp);
  QueryBlock<F> block{};
  block.causal = z.causal;
  block.q = scratch.take(kBackwardRows * Dp);
  block.dy = scratch.take(kBackwardRows * Dp);
  block.p = scratch.take(kBackwardRows * size);
  block.ds = scratch.take(kBackwardRows * size);
  F* const lse = scratch.take(kBackwardRows);
  F* const delta = scratch.take(kBackwardRows);
  block.lse = lse;
  block.delta = delta;
  block.dq = scratch.take(kBackwardRows * Dp);

  for (int64_t n0 = 0; n0 < z.S; n0 += size) {
    const int64_t n = smaller(size, z.S - n0);
    bool copied[kMaxKeyTile];
    const bool* const mask = seen_keys(op.mask, b * z.S + n0, n, copied);
    pack_panels<F>(op.k.row(b, n0, g), op.k.step, n, round_up(n, kRows), D, mask, keys);
    pack_panels<F>(op.v.row(b, n0, g), op.v.step, n, round_up(n, kRows), D, mask, values);
    pack_rows<F>(op.k.row(b, n0, g), op.k.step, n, n, D, F(1), mask, key_rows, Dp);
    for (int64_t i = 0; i < round_up(n, kRows) * Dp; i += L) {
      store(dk + i, Vec<F>{});
      store(dv + i, Vec<F>{});
    }
    const KeySums<F> sums{{n0, n, mask}, keys, values, key_rows, dk, dv};
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      for (int64_t t0 = 0; t0 < z.T; t0 += kBackwardRows) {
        block.count = smaller(kBackwardRows, z.T - t0);
        if (n0 > 0 && z.visible(t0 + block.count - 1) <= n0) continue;
        const int64_t padded = round_up(block.count, kRows);
        block.first_limit = t0 + 1 + z.S - z.T;
        pack_rows<F>(op.q.row(b, t0, h), op.q.step, block.count, padded, D,
                     static_cast<F>(op.scale * kLog2E), nullptr, block.q, Dp);
        pack_rows<F>(op.dy.row(b, t0, h), op.dy.step, block.count, padded, D, F(1), nullptr,
                     block.dy, Dp);
        const int64_t at = (b * z.H + h) * z.T + t0;
        if (n0 == 0)
          row_products<F>(op.y.row(b, t0, h), op.y.step, block.dy, Dp, block.count, D,
                          op.delta + at);
        for (int64_t i = 0; i < padded; ++i) {
          lse[i] = i < block.count ? op.lse[at + i] : infinity<F>();
          delta[i] = i < block.count ? op.delta[at + i] : F(0);
        }
        Ahead ahead{{}, D * static_cast<int64_t>(sizeof(T))};
        if (t0 + kBackwardRows < z.T) {
          const int64_t t1 = t0 + kBackwardRows;
          const int64_t rows = smaller(kBackwardRows, z.T - t1);
          ahead.streams[0] = stream(op.q, b, t1, h, rows);
          ahead.streams[1] = stream(op.dy, b, t1, h, rows);
          if (n0 == 0) ahead.streams[2] = stream(op.y, b, t1, h, rows);
          ahead.streams[3] = stream(op.dq_sum, b, t1, h, rows);
        } else if (h == (g + 1) * group - 1) {
          ahead.streams[0] = stream(op.dk, b, n0, g, n);
          ahead.streams[1] = stream(op.dv, b, n0, g, n);
          const bool more = n0 + size < z.S;
          if (more || item + 1 < end) {
            const int64_t from = more ? n0 + size : 0;
            const int64_t next = more ? item : item + 1;
            const int64_t rows = smaller(size, z.S - from);
            ahead.streams[2] = stream(op.k, next / z.Hkv, from, next % z.Hkv, rows);
            ahead.streams[3] = stream(op.v, next / z.Hkv, from, next % z.Hkv, rows);
          }
        }
        exchange(block, sums, D, size, ahead);
        add_rows<F>(block.dq, Dp, block.count, D, op.scale, n0 == 0, op.dq_sum.row(b, t0, h),
                    op.dq_sum.step);
      }
    }
    unpack_rows<T>(dk, Dp, n, D, static_cast<F>(kLn2), op.dk.row(b, n0, g), op.dk.step);
    unpack_rows<T>(dv, Dp, n, D, F(1), op.dv.row(b, n0, g), op.dv.step);
  }
  if constexpr (kLanes<T> != L || sizeof(T) != sizeof(F)) {
    for (int64_t h = g * group; h < (g + 1) * group; ++h)
      unpack_rows<T>(op.dq_sum.row(b, 0, h), op.dq_sum.step, z.T, D, F(1), op.dq.row(b, 0, h),
                     op.dq.step);
  }
}

}  // namespace

template <class T>
template <Isa I>
void AttentionForward<T>::run(int64_t begin, int64_t end) const {
  const int64_t D = sizes.D;
  const int64_t rows = smaller(attention_query_tile(D), round_up(sizes.T, kRows));
  const int64_t keys = key_tile<F>(D, sizes.S);
  const int64_t elements = rows * (2 * round_up(D, 16) + 16 + 2) + round_up(keys, kPanel<F>) * D +
                           keys * round_up(D, 16) + kForwardRows * keys;
  auto* const memory = static_cast<F*>(
      __builtin_alloca_with_align(static_cast<size_t>(elements + 16 * 16) * sizeof(F), 512));
  for (int64_t item = begin; item < end; ++item) {
    if (sizes.T > kFewQueries) {
      forward_item<T>(*this, item, end, memory);
    } else {
      for (int64_t t = 0; t < sizes.T; ++t)
        forward_one<T>(*this, item / sizes.H, item % sizes.H, t, memory);
    }
  }
}

template void AttentionForward<float>::run<kIsa>(int64_t, int64_t) const;
template void AttentionForward<double>::run<kIsa>(int64_t, int64_t) const;
template void AttentionForward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void AttentionForward<f16>::run<kIsa>(int64_t, int64_t) const;

template <class T>
template <Isa I>
void AttentionBackward<T>::run(int64_t begin, int64_t end) const {
  const int64_t D = sizes.D;
  const int64_t keys = key_tile<F>(D, sizes.S);
  const int64_t elements = 2 * round_up(keys, kPanel<F>) * D + 3 * keys * round_up(D, 16) +
                           kBackwardRows * (3 * round_up(D, 16) + 2 * keys + 2);
  auto* const memory = static_cast<F*>(
      __builtin_alloca_with_align(static_cast<size_t>(elements + 16 * 16) * sizeof(F), 512));
  for (int64_t item = begin; item < end; ++item) backward_item<T>(*this, item, end, memory);
}

template void AttentionBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void AttentionBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void AttentionBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void AttentionBackward<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
