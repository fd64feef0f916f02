// Norms of rows, and rotary embedding (Su et al. 2021).
#include <algorithm>
#include <cmath>

#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

constexpr float kEpsilon = 1e-5F;
constexpr std::int64_t kMultiprocessors = kMostBlocks / 16;

struct RowStatistics {
  float mean, inverse;
};

// Mean and inverse standard deviation of a row, by its team.
template <bool kCentred, typename Type, int N, int kKept>
__device__ RowStatistics statistics_of(const View& in, std::int64_t row,
                                       const RowShare<N, kKept>& share,
                                       RowPart<Type, N, kKept>& part) {
  const float of_mean = 1.0F / static_cast<float>(in.columns);
  TeamSums<1, false> sum_up(share.team);
  float mean[1]{}, squares[1]{};
  if constexpr (kCentred) {
    share.each([&](int k, std::int64_t c) {
      const Pack<N> x = part.pack(in, row, k, c);
      for (int j = 0; j < N; ++j) mean[0] += x.x[j];
    });
    sum_up(mean);
    mean[0] *= of_mean;
    part.forget_floats();
  }
  share.each([&](int k, std::int64_t c) {
    const Pack<N> x = part.pack(in, row, k, c);
    for (int j = 0; j < N; ++j) squares[0] += (x.x[j] - mean[0]) * (x.x[j] - mean[0]);
  });
  sum_up(squares);
  part.forget_floats();
  return {mean[0], rsqrtf(squares[0] * of_mean + kEpsilon)};
}

// Threads that a multiprocessor's registers have room for when each fetches four packs at once.
template <typename Type>
constexpr int many_threads() {
  return (Type::bytes == 2 ? 4 : 2) * kBlock;
}

constexpr int kNormKept = 4;  // packs of a row that a thread keeps

struct NormOperands {
  View out, in, scale, shift;  // shift may have no data
};

// A row for each team, and no more: many short blocks keep memory busier than blocks that stay and
// wait for one row after the other.
template <typename Type, int N, int kKept, bool kCentred>
__global__ void __launch_bounds__(many_threads<Type>()) norm_kernel(NormOperands of, int team) {
  const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
  const std::int64_t row = blockIdx.x * teams + threadIdx.x / static_cast<unsigned>(team);
  const RowShare<N, kKept> share{row < of.in.rows ? of.in.columns : 0, team};
  RowPart<Type, N, kKept> part, scales;
  part.bring(of.in, row, share);
  scales.bring(of.scale, 0, share);
  const RowStatistics s = statistics_of<kCentred>(of.in, row, share, part);
  share.each([&](int k, std::int64_t c) {
    Pack<N> y = part.pack(of.in, row, k, c);
    const Pack<N> by = scales.pack(of.scale, 0, k, c);
    for (int j = 0; j < N; ++j) y.x[j] = (y.x[j] - s.mean) * s.inverse * by.x[j];
    if (of.shift.data != nullptr) {
      const Pack<N> more = load<N>(Type::of(of.shift), c);
      for (int j = 0; j < N; ++j) y.x[j] += more.x[j];
    }
    store<N>(Type::of(of.out), row * of.out.columns + c, y);
  });
}

// ---- The gradient -------------------------------------------------------------------------------

// as many as a multiprocessor's registers have room for
constexpr int kGradientThreads = 2 * kBlock;

// Pairs of rows: inputs, and gradients of the norm's outputs.
template <typename Type, int N, int kKept>
using GradientRows = RowPairs<Type, N, kKept, kGradientThreads>;

// dx = (g − mean(g) − x̂·mean(g·x̂)) / σ with g = dy·scale; the first mean only where x is centred.
// Sums that need nothing but the means are taken together.
template <typename Type, int N, int kKept, bool kCentred>
struct RowGradient {
  static constexpr int kPacks = kKept > 0 ? kKept : 1;

  const NormGradient& of;
  TeamSums<2, true> sum_up;
  RowPart<Type, N, kKept> scale{};
  // Sums of the columns that a thread keeps: the gradients of scale and shift.
  Pack<8> scale_sums[kPacks]{}, shift_sums[kCentred ? kPacks : 1]{};

  // Calls visit(k, column, x − mean, scale, dy) for each pack.
  template <typename Visit>
  __device__ void each(std::int64_t row, const RowShare<N, kKept>& share,
                       const GradientRows<Type, N, kKept>& rows, float mean, const Visit& visit) {
    share.each([&](int k, std::int64_t c) {
      Pack<N> x = rows.pack(0, of.in, row, k, c);
      if constexpr (kCentred) {
        for (int j = 0; j < N; ++j) x.x[j] -= mean;
      }
      visit(k, c, x, scale.pack(of.scale, 0, k, c), rows.pack(1, of.dout, row, k, c));
    });
    scale.forget_floats();
    asm volatile("" ::: "memory");  // do not keep the rows as floats either
  }

  __device__ RowStatistics run(std::int64_t row, const RowShare<N, kKept>& share,
                               const GradientRows<Type, N, kKept>& rows) {
    const float of_mean = 1.0F / static_cast<float>(of.in.columns);
    float means[2]{}, sums[2]{};  // of x and g; of (x − mean)² and g·(x − mean)
    if constexpr (kCentred) {
      each(row, share, rows, 0,
           [&](int, std::int64_t, const auto& x, const auto& by, const auto& dy) {
             for (int j = 0; j < N; ++j) means[0] += x.x[j], means[1] += by.x[j] * dy.x[j];
           });
      sum_up(means);
      for (float& mean : means) mean *= of_mean;
    }
    const float mean = means[0];
    each(row, share, rows, mean,
         [&](int, std::int64_t, const auto& x, const auto& by, const auto& dy) {
           for (int j = 0; j < N; ++j) {
             sums[0] += x.x[j] * x.x[j], sums[1] += by.x[j] * dy.x[j] * x.x[j];
           }
         });
    sum_up(sums);
    const float inverse = rsqrtf(sums[0] * of_mean + kEpsilon);
    const float along = sums[1] * of_mean * inverse * inverse * inverse;
    const float mean_g = means[1] * inverse;
    each(row, share, rows, mean,
         [&](int k, std::int64_t c, auto& x, const auto& by, const auto& dy) {
           for (int j = 0; j < N; ++j) {
             const float weighed = dy.x[j] * inverse;
             if constexpr (kKept > 0) scale_sums[k].x[j] += x.x[j] * weighed;
             if constexpr (kKept > 0 && kCentred) shift_sums[k].x[j] += dy.x[j];
             const float g = kCentred ? by.x[j] * weighed - mean_g : by.x[j] * weighed;
             x.x[j] = g - x.x[j] * along;
           }
           store<N>(Type::of(of.din), row * of.in.columns + c, x);
         });
    return {mean, inverse};
  }
};

// Writes what a block's teams have summed up, in their order, to the block's row of `parts`.
template <int kKept>
__device__ void leave_sums(const View& parts, const Pack<8> (&sums)[kKept], int team) {
  auto* of_teams = reinterpret_cast<float*>(shared_memory());
  const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
  const std::int64_t mine = threadIdx.x / static_cast<unsigned>(team) * parts.columns;
  const View in_fours{of_teams, teams, parts.columns, ElementType::f32, {}};
  __syncthreads();  // nobody reads the former content any more
  RowShare<8, kKept>{parts.columns, team}.each(
      [&](int k, std::int64_t c) { store<8>(in_fours, mine + c, sums[k]); });
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < parts.columns; c += blockDim.x) {
    float sum = 0;
    for (std::int64_t i = 0; i < teams; ++i) sum += of_teams[i * parts.columns + c];
    static_cast<float*>(parts.data)[blockIdx.x * parts.columns + c] = sum;
  }
}

// Packs of a row that a thread keeps: more where the sums need fewer registers.
template <typename Type, bool kCentred>
constexpr int gradient_kept() {
  return Type::bytes == 2 && !kCentred ? 4 : 2;
}

// A thread that keeps its columns has the same ones in every row of its team, so it sums up x̂·dy
// and dy on the way, while the next rows are fetched. Otherwise the kernel leaves the rows'
// statistics for a second pass.
template <typename Type, int N, int kKept, bool kCentred>
__global__ void __launch_bounds__(kGradientThreads)
    norm_gradient_kernel(NormGradient of, View statistics, View scales, View shifts, int team) {
  const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
  const std::int64_t mine = threadIdx.x / static_cast<unsigned>(team);
  const std::int64_t step = gridDim.x * teams;
  const auto share_of = [&](std::int64_t row) {
    return RowShare<N, kKept>{row < of.in.rows ? of.in.columns : 0, team};
  };
  RowGradient<Type, N, kKept, kCentred> gradient{of, TeamSums<2, true>(team)};
  gradient.scale.bring(of.scale, 0, share_of(0));
  GradientRows<Type, N, kKept> rows(shared_memory());
  std::int64_t row = blockIdx.x * teams + mine;
  rows.ask(of.in, of.dout, row, share_of(row));
#pragma unroll 1
  for (; row - mine < of.in.rows; row += step) {
    rows.ask(of.in, of.dout, row + step, share_of(row + step));
    const RowStatistics s = gradient.run(row, share_of(row), rows);
    if (kKept == 0 && threadIdx.x == 0) {  // a team is the block
      put(statistics, row * 2, s.mean);
      put(statistics, row * 2 + 1, s.inverse);
    }
  }
  if constexpr (kKept > 0) {
    leave_sums(scales, gradient.scale_sums, team);
    if constexpr (kCentred) leave_sums(shifts, gradient.shift_sums, team);
  }
}

// Block (x, y) sums x̂·dy over a strip of the rows, N columns for each lane.
template <int N>
__global__ void scale_gradient_of_strip(View parts, View in, View dout, View statistics,
                                        std::int64_t strip) {
  const auto value = [&](std::int64_t row, std::int64_t i) {
    Pack<N> x = load<N>(in, i);
    const Pack<N> dy = load<N>(dout, i);
    const float mean = at(statistics, row * 2), inverse = at(statistics, row * 2 + 1);
    for (int k = 0; k < N; ++k) x.x[k] = (x.x[k] - mean) * inverse * dy.x[k];
    return x;
  };
  sum_strip<N>(parts, in, strip, value);
}

// ---- Rotary -------------------------------------------------------------------------------------

struct RotarySpeeds {
  double direction, ratio;
};

// Cosines and sines that rotate the rows of a block, as matrices in shared memory, half a head
// wide.
struct Turns {
  View cosines, sines;
};

// `ratio`: base-2 logarithm of the ratio of two neighbours' speeds. Whole turns are taken off the
// angles in double, because positions may be large; sines of float remainders are then as good as
// sines of doubles and much faster. A thread stays in its columns, because powers are expensive.
__device__ void bring_turns(const Turns& to, std::int64_t first, int rows, const RowPlaces& places,
                            const RotarySpeeds& speeds) {
  constexpr double kTurns = 0.15915494309189534;  // 1 / 2π
  const int half = static_cast<int>(to.cosines.columns), threads = static_cast<int>(blockDim.x);
  const int across = half < threads ? half : threads, down = threads / across;
  const int thread = static_cast<int>(threadIdx.x), from = thread / across;
  if (from >= down) return;
  for (int i = thread % across; i < half; i += across) {
    const double speed = speeds.direction * kTurns * exp2(speeds.ratio * i);
    for (int row = from; row < rows; row += down) {
      const double turns = speed * static_cast<double>(position_of(places, first + row));
      const auto rest = static_cast<float>(2 * (turns - rint(turns)));
      sincospif(rest, static_cast<float*>(to.sines.data) + row * half + i,
                static_cast<float*>(to.cosines.data) + row * half + i);
    }
  }
}

constexpr int kTurned = 4;  // packs of pairs that a thread fetches at once

// A block rotates all heads of `block_rows` rows. It fetches the first pairs before it computes the
// sines and cosines.
template <typename Type, int N>
__global__ void __launch_bounds__(many_threads<Type>())
    rotate_kernel(View any_x, RotaryColumns columns, RowPlaces places, RotarySpeeds speeds,
                  int block_rows) {
  const View x = Type::of(any_x);
  const int half = static_cast<int>(columns.width / 2), packs = half / N;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_rows;
  const int rows = static_cast<int>(first + block_rows < x.rows ? block_rows : x.rows - first);
  const int heads = static_cast<int>(columns.heads);
  const auto all = static_cast<unsigned>(rows * heads * packs);
  auto* memory = reinterpret_cast<float*>(shared_memory());
  const auto floats = [&](float* at) { return View{at, block_rows, half, ElementType::f32, {}}; };
  const Turns turns{floats(memory), floats(memory + block_rows * half)};
  const std::int64_t from = first * x.columns + columns.first;
  for (unsigned begin = 0; begin < all; begin += kTurned * blockDim.x) {
    int place[kTurned], turn[kTurned];  // offsets in this block's rows
    Raw a[kTurned], b[kTurned];
    each_place<kTurned>(begin, all, [&](int k, unsigned n) {
      const unsigned nth = n / static_cast<unsigned>(packs),
                     row = nth / static_cast<unsigned>(heads);
      const unsigned i = (n - nth * static_cast<unsigned>(packs)) * N;
      const unsigned head = nth - row * static_cast<unsigned>(heads);
      turn[k] = static_cast<int>(row) * half + static_cast<int>(i);
      place[k] = static_cast<int>(row * x.columns + head * columns.stride + i);
      if constexpr (N == 8) {
        a[k] = fetch(x, from + place[k]);
        b[k] = fetch(x, from + place[k] + half);
      }
    });
    if (begin == 0) {
      bring_turns(turns, first, rows, places, speeds);
      __syncthreads();
    }
    each_place<kTurned>(begin, all, [&](int k, unsigned) {
      const Pack<N> a_before = unpacked<N>(x, from + place[k], a[k]);
      const Pack<N> b_before = unpacked<N>(x, from + place[k] + half, b[k]);
      const Pack<N> cosine = load<N>(turns.cosines, turn[k]), sine = load<N>(turns.sines, turn[k]);
      Pack<N> a_turned, b_turned;
      for (int j = 0; j < N; ++j) {
        a_turned.x[j] = a_before.x[j] * cosine.x[j] - b_before.x[j] * sine.x[j];
        b_turned.x[j] = a_before.x[j] * sine.x[j] + b_before.x[j] * cosine.x[j];
      }
      store<N>(x, from + place[k], a_turned);
      store<N>(x, from + place[k] + half, b_turned);
    });
  }
}

// Heads side by side, each made of its own part and one part that all heads share.
struct JoinHeads {
  View out, own, shared;
  unsigned heads;
  template <int N>
  __device__ void run(const Spot& at) const {
    const auto width = static_cast<unsigned>(out.columns) / heads;
    const auto mine = static_cast<unsigned>(own.columns) / heads;
    const auto column = static_cast<unsigned>(at.column);
    const unsigned head = column / width, k = column % width;
    store<N>(out, at.i,
             k < mine ? load<N>(own, at.row * own.columns + head * mine + k)
                      : load<N>(shared, at.row * shared.columns + k - mine));
  }
};

struct SplitHeads {
  View own, shared, in;
  std::int64_t heads;
  template <int N>
  __device__ void run(const Spot& at) const {
    const std::int64_t width = in.columns / heads, mine = own.columns / heads;
    if (at.column < own.columns) {
      const std::int64_t from = at.column / mine * width + at.column % mine;
      return store<N>(own, at.row * own.columns + at.column,
                      load<N>(in, at.row * in.columns + from));
    }
    const std::int64_t k = at.column - own.columns;
    Pack<N> sum{};
    for (std::int64_t head = 0; head < heads; ++head) {
      const Pack<N> more = load<N>(in, at.row * in.columns + head * width + mine + k);
      for (int j = 0; j < N; ++j) sum.x[j] += more.x[j];
    }
    store<N>(shared, at.row * shared.columns + k, sum);
  }
};

// Whether all widths are multiples of eight.
bool come_out_even(std::initializer_list<std::int64_t> widths) {
  for (const std::int64_t width : widths) {
    if (width % 8 != 0) return false;
  }
  return true;
}

template <bool kCentred>
void norm_of(const Queue& queue, const NormOperands& of) {
  const std::int64_t rows = of.in.rows, columns = of.in.columns;
  const auto begin = [&](auto* kernel, const RowTeams& teams) {
    start(queue, "norm", kernel, dim3(row_blocks(rows, teams, rows)), teams.threads, 0, of,
          teams.team);
  };
  const View* const all[] = {&of.out, &of.in, &of.scale,
                             of.shift.data == nullptr ? &of.scale : &of.shift};
  const bool kept = with_one_type(all, [&](auto type) {
    using Type = decltype(type);
    const RowTeams teams = row_teams(columns, kNormKept, many_threads<Type>());
    if (!keeps_rows(columns, teams, kNormKept)) return false;
    begin(norm_kernel<Type, 8, kNormKept, kCentred>, teams);
    return true;
  });
  if (kept) return;
  begin(columns % 8 == 0 ? norm_kernel<AnyType, 8, 0, kCentred>
                         : norm_kernel<AnyType, 1, 0, kCentred>,
        row_teams(columns, kNormKept, many_threads<AnyType>()));
}

// The gradient with rows kept in one pass; false: rows are too wide for that, or the device's
// shared memory is too small. There is one block for each multiprocessor, because a block's sums of
// the columns are written and read once more.
template <typename Type, int kKept, bool kCentred>
bool norm_gradient_in_one(const Queue& queue, const NormGradient& of) {
  const std::int64_t columns = of.in.columns, rows = of.in.rows;
  const int team = row_teams(columns, kKept, kGradientThreads).team;
  constexpr std::size_t kShared = GradientRows<Type, 8, kKept>::kBytes;
  if (!keeps_rows(columns, {team, team}, kKept) || kShared > most_shared_memory(queue)) {
    return false;
  }
  const std::int64_t share = (rows + kMultiprocessors - 1) / kMultiprocessors;
  const int side_by_side = static_cast<int>(std::min<std::int64_t>(kGradientThreads / team, share));
  const RowTeams teams{team, (side_by_side * team + 31) / 32 * 32};
  const unsigned blocks = row_blocks(rows, teams, kMultiprocessors);
  const Scratch scales(queue, blocks, columns, ElementType::f32);
  const Scratch shifts(queue, kCentred ? blocks : 0, columns, ElementType::f32);
  start(queue, "norm_gradient", norm_gradient_kernel<Type, 8, kKept, kCentred>, dim3(blocks),
        teams.threads, kShared, of, View{}, *scales, *shifts, team);
  add_parts(queue, of.scale_gradient, *scales);
  if (of.shift_gradient != nullptr) add_parts(queue, *of.shift_gradient, *shifts);
  return true;
}

// The gradient with rows that no thread keeps: the scale's gradient takes a second pass.
template <int N, bool kCentred>
void norm_gradient_in_two(const Queue& queue, const NormGradient& of) {
  const Scratch statistics(queue, of.in.rows, 2, ElementType::f32);
  start(queue, "norm_gradient", norm_gradient_kernel<AnyType, N, 0, kCentred>,
        dim3(blocks_at_most(of.in.rows)), 2 * kBlock, 0, of, *statistics, View{}, View{},
        2 * kBlock);
  const Strips strips(of.in);
  const Scratch parts(queue, strips.count, of.in.columns, ElementType::f32);
  start(queue, "scale_gradient", scale_gradient_of_strip<N>,
        dim3(Strips::across<N>(of.in), static_cast<unsigned>(strips.count)), kBlock, 0, *parts,
        of.in, of.dout, *statistics, strips.rows);
  add_parts(queue, of.scale_gradient, *parts);
  if (of.shift_gradient != nullptr) add_column_sums(queue, *of.shift_gradient, of.dout);
}

template <bool kCentred>
void norm_gradient_of(const Queue& queue, const NormGradient& of) {
  const View* const all[] = {&of.in, &of.dout, &of.din, &of.scale};
  const bool kept = with_one_type(all, [&](auto type) {
    using Type = decltype(type);
    return norm_gradient_in_one<Type, gradient_kept<Type, kCentred>(), kCentred>(queue, of);
  });
  if (kept) return;
  of.in.columns % 8 == 0 ? norm_gradient_in_two<8, kCentred>(queue, of)
                         : norm_gradient_in_two<1, kCentred>(queue, of);
}

}  // namespace

void norm(const Queue& queue, const View& out, const View& in, const View& scale, const View* shift,
          bool centred) {
  const View no_shift;
  const NormOperands of{out, in, scale, shift == nullptr ? no_shift : *shift};
  centred ? norm_of<true>(queue, of) : norm_of<false>(queue, of);
}

void norm_gradient(const Queue& queue, const NormGradient& of) {
  if (of.in.rows == 0) return;
  of.centred ? norm_gradient_of<true>(queue, of) : norm_gradient_of<false>(queue, of);
}

void rotate(const Queue& queue, const View& in_place, const RotaryColumns& columns,
            const RowPlaces& places, double direction) {
  constexpr std::int64_t kMostTurns = 2048;  // cosines and sines of a block: 16 KiB
  const std::int64_t half = columns.width / 2;
  if (half == 0) return;  // heads of one element have no pair to turn
  const RotarySpeeds speeds{direction, std::log2(1e4) / static_cast<double>(-half)};
  const auto begin = [&](auto* kernel, std::int64_t packs) {
    const std::int64_t rows =
        std::clamp(kTurned * kBlock / (columns.heads * packs), std::int64_t{1},
                   std::max(kMostTurns / half, std::int64_t{1}));
    start(queue, "rotate", kernel, dim3(static_cast<unsigned>((in_place.rows + rows - 1) / rows)),
          kBlock, static_cast<std::size_t>(rows * half) * 2 * sizeof(float), in_place, columns,
          places, speeds, static_cast<int>(rows));
  };
  const View* const all[] = {&in_place};
  const bool even = come_out_even({half, columns.first, columns.stride, in_place.columns});
  const bool done = even && with_one_type(all, [&](auto type) {
                      begin(rotate_kernel<decltype(type), 8>, half / 8);
                      return true;
                    });
  if (!done) begin(rotate_kernel<AnyType, 1>, half);
}

void join_heads(const Queue& queue, const View& out, const View& own, const View& shared) {
  const std::int64_t heads = (out.columns - own.columns) / shared.columns;
  each(queue, "join_heads", JoinHeads{out, own, shared, static_cast<unsigned>(heads)}, out.rows,
       out.columns, come_out_even({own.columns / heads, shared.columns}));
}

void split_heads(const Queue& queue, const View& own, const View& shared, const View& in) {
  const std::int64_t heads = (in.columns - own.columns) / shared.columns;
  each(queue, "split_heads", SplitHeads{own, shared, in, heads}, own.rows,
       own.columns + shared.columns, come_out_even({own.columns / heads, shared.columns}));
}

}  // namespace trainyard
