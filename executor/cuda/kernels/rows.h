// Kernels that work on rows of a matrix, each row by a team of threads. A team has a thread for
// each pack of eight elements, so that narrow rows (those of heads) do not leave most of a block
// idle. A thread fetches its share of a row at once and keeps it where that is little; else it
// reads it again.
#pragma once

#include "executor/cuda/kernels/access.h"

namespace trainyard {

struct RowTeams {
  int team = kBlock;     // threads per row: a power of two within a warp, or the block
  int threads = kBlock;  // threads per block
};

// Teams in which a thread has `each` packs of a row, or more if that would take over `most`
// threads.
inline RowTeams row_teams(std::int64_t columns, int each = 1, int most = kBlock) {
  if (columns % 8 != 0) return {};
  const std::int64_t lanes = (columns / 8 + each - 1) / each;
  if (lanes > 32) {
    const std::int64_t whole_warps = (lanes + 31) / 32 * 32;
    const int team = whole_warps < most ? static_cast<int>(whole_warps) : most;
    return {team, team};
  }
  int team = 1;
  while (team < lanes) team *= 2;
  return {team, kBlock};
}
// Whether every thread has at most `each` packs of a row.
inline bool keeps_rows(std::int64_t columns, const RowTeams& teams, int each) {
  return columns % 8 == 0 && columns <= std::int64_t{8} * each * teams.team;
}
inline unsigned row_blocks(std::int64_t rows, const RowTeams& teams,
                           std::int64_t most = kMostBlocks) {
  const std::int64_t side_by_side = teams.threads / teams.team;
  return blocks_at_most((rows + side_by_side - 1) / side_by_side, most);
}

__device__ inline float team_sum(float mine, int team) {
  if (team > 32) return block_sum(mine);
  for (int away = team / 2; away > 0; away /= 2) mine += __shfl_xor_sync(~0u, mine, away);
  return mine;
}

// Several sums over a team at once, called repeatedly, with one barrier each time: two buffers take
// turns, so threads that are ahead write where nobody reads any more. Where teams of whole warps
// share a block (kShareBlock) they do not wait for each other; that takes all 16 barriers of a
// block, of which a multiprocessor has 64.
template <int kSums, bool kShareBlock>
class TeamSums {
 public:
  __device__ explicit TeamSums(int team) : team_(team) {}
  __device__ void operator()(float (&sums)[kSums]) {
#pragma unroll
    for (int away = 16; away > 0; away /= 2) {
      if (away >= team_) continue;
      for (int k = 0; k < kSums; ++k) sums[k] += __shfl_xor_sync(~0u, sums[k], away);
    }
    if (team_ <= 32) return;
    __shared__ float parts[2][32][kSums];
    turn_ = 1 - turn_;
    if (threadIdx.x % 32 == 0) {
      for (int k = 0; k < kSums; ++k) parts[turn_][threadIdx.x / 32][k] = sums[k];
    }
    int first = 0;  // warp of the team
    if constexpr (kShareBlock) {
      const unsigned mine = threadIdx.x / static_cast<unsigned>(team_);
      meet(1 + mine, team_);
      first = static_cast<int>(mine) * team_ / 32;
    } else {
      __syncthreads();
    }
    for (int k = 0; k < kSums; ++k) sums[k] = 0;
    for (int warp = first; warp < first + team_ / 32; ++warp) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) sums[k] += parts[turn_][warp][k];
    }
  }

 private:
  int team_, turn_ = 0;
};

// Rows per block with which each thread has `each` packs; at most a row for each thread.
inline std::int64_t rows_of_block(std::int64_t packs, std::int64_t each) {
  const std::int64_t rows = each * kBlock / packs;
  return rows < 1 ? 1 : rows < kBlock ? rows : kBlock;
}
// Calls visit(k, n) for this thread's places n of begin … end − 1, the k-th of up to kCount.
template <int kCount, typename Visit>
__device__ inline void each_place(unsigned begin, unsigned end, const Visit& visit) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const unsigned n = begin + static_cast<unsigned>(k) * blockDim.x + threadIdx.x;
    if (n < end) visit(k, n);
  }
}

// Calls visit(row) for every row of this thread's team, equally often in all threads of a block, so
// that all reach the barriers of the sums: it may go beyond the last row.
template <typename Visit>
__device__ inline void for_rows(std::int64_t rows, int team, const Visit& visit) {
  const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
  const std::int64_t mine = threadIdx.x / static_cast<unsigned>(team);
  for (std::int64_t first = blockIdx.x * teams; first < rows; first += gridDim.x * teams) {
    visit(first + mine);
  }
}

// The packs of N elements that one thread has of a row.
template <int N, int kKept>
struct RowShare {
  std::int64_t columns;
  int team;

  // Calls visit(k, column) for its k-th pack.
  template <typename Visit>
  __device__ void each(const Visit& visit) const {
    const int lane = static_cast<int>(threadIdx.x % static_cast<unsigned>(team));
    if constexpr (kKept == 0) {
      for (std::int64_t c = lane * N; c < columns; c += std::int64_t{N} * team) visit(0, c);
    } else {
#pragma unroll
      for (int k = 0; k < kKept; ++k) {
        const int c = (lane + k * team) * N;
        if (c < columns) visit(k, c);
      }
    }
  }
};

// ---- The type of elements, where a kernel is made for it ---------------------------------------

// OneType::of(view) is the same view with a type that the compiler knows, so that no code asks for
// it and eight elements of two bytes take four registers.
struct AnyType {
  static constexpr std::size_t bytes = 4;  // at most
  __device__ static View of(const View& view) { return view; }
};
template <ElementType kType>
struct OneType {
  static constexpr std::size_t bytes = bytes_of(kType);
  __device__ static View of(View view) {
    view.type = kType;
    return view;
  }
};

// Calls begin() with the OneType that all views have. False: their types differ, or no kernels are
// made for that type.
template <std::size_t kViews, typename Begin>
bool with_one_type(const View* const (&views)[kViews], const Begin& begin) {
  const ElementType type = views[0]->type;
  for (const View* view : views) {
    if (view->type != type) return false;
  }
  if (type == ElementType::bf16) return begin(OneType<ElementType::bf16>{});
  if (type == ElementType::f16) return begin(OneType<ElementType::f16>{});
  return type == ElementType::f32 && begin(OneType<ElementType::f32>{});
}

// Calls begin(type, pack): packs of eight elements if `even`, with the OneType of the views if they
// share one; else single elements, or AnyType.
template <std::size_t kViews, typename Begin>
void with_packs(bool even, const View* const (&views)[kViews], const Begin& begin) {
  using Eight = std::integral_constant<int, 8>;
  if (!even) return begin(AnyType{}, std::integral_constant<int, 1>{});
  const bool of_one_type = with_one_type(views, [&](auto type) {
    begin(type, Eight{});
    return true;
  });
  if (!of_one_type) begin(AnyType{}, Eight{});
}

// What one thread has of a row of one matrix.
template <typename Type, int N, int kKept>
struct RowPart {
  Raw kept[kKept > 0 ? kKept : 1];

  __device__ void bring(const View& of, std::int64_t row, const RowShare<N, kKept>& share) {
    if constexpr (kKept > 0) {
      share.each(
          [&](int k, std::int64_t c) { kept[k] = fetch(Type::of(of), row * of.columns + c); });
    }
  }
  // Call it between two passes over the same row: numbers of two bytes are then unpacked anew.
  // Otherwise the compiler would keep them as floats, in twice the registers.
  __device__ void forget_floats() {
    if constexpr (kKept > 0 && Type::bytes == 2) {
#pragma unroll
      for (Raw& raw : kept) {
        uint4& word = raw.words[0];
        asm volatile("" : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w));
      }
    }
  }
  __device__ Pack<N> pack(const View& of, std::int64_t row, int k, std::int64_t c) const {
    const std::int64_t i = row * of.columns + c;
    if constexpr (kKept > 0) return unpacked<N>(Type::of(of), i, kept[k]);
    return load<N>(Type::of(of), i);
  }
};

// Rows of two matrices, copied through shared memory: the next rows come while these are used,
// without registers that wait for them. Each thread reads only what it asked for itself. Where
// threads keep no part of a row (kKept = 0), rows are read in place. `kThreads`: most threads of a
// block.
template <typename Type, int N, int kKept, int kThreads>
class RowPairs {
  static constexpr int kWords = Type::bytes / 2;  // words of 16 bytes in a pack of eight
  static constexpr int kOfRow = kKept * kWords * kThreads;

 public:
  static constexpr std::size_t kBytes = std::size_t{4} * kOfRow * sizeof(uint4);

  __device__ explicit RowPairs(void* memory) : mine_(static_cast<uint4*>(memory) + threadIdx.x) {}

  // Asks for the next rows, and waits for those that were asked for before.
  __device__ void ask(const View& a, const View& b, std::int64_t row,
                      const RowShare<N, kKept>& share) {
    if constexpr (kKept > 0) {
      share.each([&](int k, std::int64_t c) {
        begin_copies(place(0, k), a, row * a.columns + c);
        begin_copies(place(1, k), b, row * b.columns + c);
      });
      wait_for_copies_before();
      turn_ = 1 - turn_;
    }
  }
  // A pack of the rows that the last ask() waited for; `which`: 0 is a, 1 is b.
  __device__ Pack<N> pack(int which, const View& of, std::int64_t row, int k,
                          std::int64_t c) const {
    const std::int64_t i = row * of.columns + c;
    if constexpr (kKept == 0) {
      return load<N>(Type::of(of), i);
    } else {
      Raw raw{};
      for (int w = 0; w < kWords; ++w) raw.words[w] = place(which, k)[w * kThreads];
      return unpacked<N>(Type::of(of), i, raw);
    }
  }

 private:
  __device__ uint4* place(int which, int k) const {
    return mine_ + (2 * turn_ + which) * kOfRow + k * kWords * kThreads;
  }
  __device__ static void begin_copies(uint4* to, const View& of, std::int64_t i) {
    const char* from = static_cast<const char*>(of.data) + i * std::int64_t{Type::bytes};
    // Two words of a pack are halves of one memory transaction: the first one brings the second
    // into the cache.
    for (int w = 0; w < kWords; ++w) {
      begin_copy<(kWords > 1)>(to + w * kThreads, from + w * sizeof(uint4));
    }
  }

  uint4* mine_;
  int turn_ = 0;  // buffer of the next rows; the current ones stay in it until then
};

// ---- Several packs on their way ----------------------------------------------------------------

constexpr int kUnderWay = 4;  // packs that a thread asks for before it looks at the first

// Calls visit(i, pack) for the packs that each_of() would visit, several fetches ahead.
template <int N, typename Visit>
__device__ inline void each_pack(const View& of, const Stretch& span, std::int64_t thread,
                                 std::int64_t threads, const Visit& visit) {
  const std::int64_t count = span.end - span.begin;
  const std::int64_t off = ((span.even - span.begin) % N + N) % N;
  const std::int64_t head = off < count ? off : count;
  const std::int64_t packs = (count - head) / N, first = span.begin + head;
  for (std::int64_t p = thread; p < packs; p += kUnderWay * threads) {
    Raw raw[kUnderWay];
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) {
      if (p + k * threads < packs) raw[k] = fetch_pack<N>(of, first + (p + k * threads) * N);
    }
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) {
      const std::int64_t i = first + (p + k * threads) * N;
      if (p + k * threads < packs) visit(i, unpacked<N>(of, i, raw[k]));
    }
  }
  for (std::int64_t k = thread; k < count - packs * N; k += threads) {
    const std::int64_t i = span.begin + (k < head ? k : k + packs * N);
    visit(i, load<1>(of, i));
  }
}

// ---- Rows that are picked ----------------------------------------------------------------------

// Row r of `out` becomes row pick(r) of `in`, or zeros where pick(r) is negative. A block has
// `block_rows` rows, at most one for each of its threads.
template <typename Type, int N, typename Pick>
__global__ void __launch_bounds__(kBlock)
    pick_rows_kernel(View any_out, View any_in, Pick pick, int block_rows) {
  const View out = Type::of(any_out), in = Type::of(any_in);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_rows;
  const std::int64_t left = out.rows - first, to = first * out.columns;
  const auto packs = static_cast<unsigned>(out.columns / N);
  const auto all = static_cast<unsigned>(block_rows < left ? block_rows : left) * packs;
  for (unsigned begin = 0; begin < all; begin += kUnderWay * kBlock) {
    std::int64_t from[kUnderWay];  // elements
    Raw raw[kUnderWay];
    each_place<kUnderWay>(begin, all, [&](int k, unsigned n) {
      const unsigned row = n / packs;
      from[k] = pick(first + row) * in.columns + std::int64_t{n - row * packs} * N;
    });
    each_place<kUnderWay>(begin, all, [&](int k, unsigned) {
      if (from[k] >= 0) raw[k] = fetch_pack<N>(in, from[k]);
    });
    each_place<kUnderWay>(begin, all, [&](int k, unsigned n) {
      store<N>(out, to + std::int64_t{n} * N,
               from[k] >= 0 ? unpacked<N>(in, from[k], raw[k]) : Pack<N>{});
    });
  }
}

template <typename Pick>
void pick_rows(const Queue& queue, const char* name, const View& out, const View& in,
               const Pick& pick) {
  if (out.size() == 0) return;
  const bool even = out.columns % 8 == 0 && even_place({&out, &in}) == 0;
  const View* const all[] = {&out, &in};
  with_packs(even, all, [&](auto type, auto of_pack) {
    const std::int64_t rows = rows_of_block(out.columns / of_pack, kUnderWay);
    start(queue, name, pick_rows_kernel<decltype(type), of_pack, Pick>,
          dim3(static_cast<unsigned>((out.rows + rows - 1) / rows)), kBlock, 0, out, in, pick,
          static_cast<int>(rows));
  });
}

// ---- Sums of columns ------------------------------------------------------------------------

// Cuts the rows into strips, so that there are as many blocks as the multiprocessors run at a time.
// The sums of a strip are one row of the matrix that is summed next.
struct Strips {
  explicit Strips(const View& of) {
    constexpr std::int64_t kLeast = 32, kBlocks = kMostBlocks / 4;
    const std::int64_t across = (of.columns + 255) / 256;
    const std::int64_t most = kBlocks > across ? kBlocks / across : 1;
    count = of.rows < most * kLeast ? (of.rows + kLeast - 1) / kLeast : most;
    rows = (of.rows + count - 1) / count;
  }
  template <int N>
  static unsigned across(const View& of) {
    return static_cast<unsigned>((of.columns + 32 * N - 1) / (32 * N));
  }
  std::int64_t count = 0, rows = 0;  // rows of each strip
};

// Sums rows first … end − 1 of `of` in block x, where each lane has N columns. value(row, element)
// is summed up, leave(column, sums) gets the result. `kThreads`: most threads of a block.
template <int N, int kThreads = kBlock, typename Value, typename Leave>
__device__ inline void sum_rows(const View& of, std::int64_t first, std::int64_t end,
                                const Value& value, const Leave& leave) {
  __shared__ float sums[kThreads * N];
  const std::int64_t lane = threadIdx.x % 32;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * 32 + lane) * N;
  Pack<N> sum{};
  constexpr int kAtOnce = N == 1 ? 8 : 4;  // rows fetched before the first is added
  const std::int64_t step = blockDim.x / 32, last = column < of.columns ? end : first;
  for (std::int64_t row = first + threadIdx.x / 32; row < last; row += kAtOnce * step) {
    Pack<N> more[kAtOnce]{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t r = row + i * step;
      if (r < last) more[i] = value(r, r * of.columns + column);
    }
    for (int i = 0; i < kAtOnce; ++i) {
      for (int k = 0; k < N; ++k) sum.x[k] += more[i].x[k];
    }
  }
  for (int k = 0; k < N; ++k) sums[k * kThreads + threadIdx.x] = sum.x[k];
  __syncthreads();
  if (threadIdx.x >= 32 || column >= of.columns) return;
  for (unsigned other = threadIdx.x + 32; other < blockDim.x; other += 32) {
    for (int k = 0; k < N; ++k) sum.x[k] += sums[k * kThreads + other];
  }
  leave(column, sum);
}

// Sums strip y of the rows in block (x, y), to row y of `parts`.
template <int N, typename Value>
__device__ inline void sum_strip(const View& parts, const View& of, std::int64_t strip,
                                 const Value& value) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * strip;
  const std::int64_t end = first + strip < of.rows ? first + strip : of.rows;
  sum_rows<N>(of, first, end, value, [&](std::int64_t column, const Pack<N>& sum) {
    store<N>(parts, static_cast<std::int64_t>(blockIdx.y) * of.columns + column, sum);
  });
}

// into[column] += Σ over the rows of `parts`, which are fp32.
void add_parts(const Queue& queue, const View& into, const View& parts);

// ---- Rows whose first element may lie anywhere -------------------------------------------------

// For rows of any width, eight at a time where they are aligned (each_of). Requires: the matrix
// begins where eight elements are aligned.
inline bool begins_even(const View& view) { return even_place({&view}) == 0; }
__device__ inline Stretch stretch_of_row(const View& of, std::int64_t row, std::int64_t columns) {
  return {row * of.columns, row * of.columns + columns, 0};
}

}  // namespace trainyard
