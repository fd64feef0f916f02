// Norms of rows, and rotary embedding (Su et al. 2021).
#include <cmath>

#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

constexpr float kEpsilon = 1e-5F;

struct RowStatistics {
  float mean, inverse;
};

// Of one row, by its team.
template <int N, int kKept>
__device__ RowStatistics statistics_of(const View& in, std::int64_t row,
                                       const RowShare<N, kKept>& share,
                                       const RowPart<N, kKept>& part, bool centred) {
  const auto width = static_cast<float>(in.columns);
  float mean = 0;
  if (centred) {
    share.each([&](int k, std::int64_t c) {
      const Pack<N> x = part.pack(in, row, k, c);
      for (int j = 0; j < N; ++j) mean += x.x[j];
    });
    mean = team_sum(mean, share.team) / width;
  }
  float squares = 0;
  share.each([&](int k, std::int64_t c) {
    const Pack<N> x = part.pack(in, row, k, c);
    for (int j = 0; j < N; ++j) squares += (x.x[j] - mean) * (x.x[j] - mean);
  });
  return {mean, rsqrtf(team_sum(squares, share.team) / width + kEpsilon)};
}

template <int N, int kKept>
__global__ void __launch_bounds__(2 * kBlock)
    norm_kernel(View out, View in, View scale, View shift, bool shifts, bool centred, int team) {
  for_rows(in.rows, team, [&](std::int64_t row) {
    const RowShare<N, kKept> share{row < in.rows ? in.columns : 0, team};
    RowPart<N, kKept> part;
    part.bring(in, row, share);
    const RowStatistics s = statistics_of(in, row, share, part, centred);
    share.each([&](int k, std::int64_t c) {
      Pack<N> y = part.pack(in, row, k, c);
      const Pack<N> scales = load<N>(scale, c);
      for (int j = 0; j < N; ++j) y.x[j] = (y.x[j] - s.mean) * s.inverse * scales.x[j];
      if (shifts) {
        const Pack<N> more = load<N>(shift, c);
        for (int j = 0; j < N; ++j) y.x[j] += more.x[j];
      }
      store<N>(out, row * out.columns + c, y);
    });
  });
}

// What a thread has summed up of the columns that it keeps: the gradients of scale and shift.
template <int kKept, bool kShifts>
struct ColumnSums {
  Pack<8> scale[kKept > 0 ? kKept : 1], shift[kShifts && kKept > 0 ? kKept : 1];
};

// dx = (g − mean(g) − x̂·mean(g·x̂)) / σ with g = dy·scale; the first mean only where x is centred.
// A thread that keeps its columns has them in every row of its team, so it sums up x̂·dy and dy on
// the way: a row of `scales` and `shifts` for each team. Else the rows' statistics are left behind.
template <int N, int kKept, bool kShifts>
__global__ void __launch_bounds__(2 * kBlock)
    norm_gradient_kernel(NormGradient of, View statistics, View scales, View shifts, int team) {
  const View& in = of.in;
  const auto width = static_cast<float>(in.columns);
  ColumnSums<kKept, kShifts> sums{};
  for_rows(in.rows, team, [&](std::int64_t row) {
    const RowShare<N, kKept> share{row < in.rows ? in.columns : 0, team};
    RowPart<N, kKept> x_part, dy_part;
    x_part.bring(in, row, share);
    dy_part.bring(of.dout, row, share);
    const RowStatistics s = statistics_of(in, row, share, x_part, of.centred);
    float along = 0, mean = 0;
    share.each([&](int k, std::int64_t c) {
      const Pack<N> x = x_part.pack(in, row, k, c), dy = dy_part.pack(of.dout, row, k, c);
      const Pack<N> scale = load<N>(of.scale, c);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float normed = (x.x[j] - s.mean) * s.inverse, g = dy.x[j] * scale.x[j];
        along += g * normed;
        mean += g;
        if constexpr (kKept > 0) sums.scale[k].x[j] += normed * dy.x[j];
        if constexpr (kKept > 0 && kShifts) sums.shift[k].x[j] += dy.x[j];
      }
    });
    along = team_sum(along, team) / width;
    mean = of.centred ? team_sum(mean, team) / width : 0;
    share.each([&](int k, std::int64_t c) {
      Pack<N> x = x_part.pack(in, row, k, c);
      const Pack<N> dy = dy_part.pack(of.dout, row, k, c), scale = load<N>(of.scale, c);
      for (int j = 0; j < N; ++j) {
        const float normed = (x.x[j] - s.mean) * s.inverse;
        x.x[j] = (dy.x[j] * scale.x[j] - mean - along * normed) * s.inverse;
      }
      store<N>(of.din, row * in.columns + c, x);
    });
    if (kKept == 0 && threadIdx.x == 0) {  // a team is the block
      put(statistics, row * 2, s.mean);
      put(statistics, row * 2 + 1, s.inverse);
    }
  });
  if constexpr (kKept > 0) {
    const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
    const std::int64_t mine = blockIdx.x * teams + threadIdx.x / static_cast<unsigned>(team);
    RowShare<8, kKept>{in.columns, team}.each([&](int k, std::int64_t c) {
      store<8>(scales, mine * in.columns + c, sums.scale[k]);
      if constexpr (kShifts) store<8>(shifts, mine * in.columns + c, sums.shift[k]);
    });
  }
}

// Block (x, y): N columns a lane of x̂·dy, a strip of the rows.
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

// A thread turns N pairs of as many heads as it has the same angles for. `ratio`: of the speeds of
// two neighbours. Angles are whole turns but for a rest, taken off in double: positions may be
// large, and sines of floats are then as good as sines of doubles at a fraction of the time.
template <int N>
__global__ void rotate_kernel(View x, RotaryColumns columns, RowPlaces places, double direction,
                              double ratio) {
  constexpr std::int64_t kHeads = 4;
  constexpr double kTurns = 0.15915494309189534;  // 1 / 2π
  const std::int64_t half = columns.width / 2, packs = half / N;
  const std::int64_t groups = (columns.heads + kHeads - 1) / kHeads;
  for (std::int64_t n = global_thread(); n < x.rows * groups * packs; n += all_threads()) {
    const std::int64_t i = n % packs * N, group = n / packs % groups, row = n / packs / groups;
    double turns = direction * kTurns * static_cast<double>(position_of(places, row)) *
                   pow(ratio, static_cast<double>(i));
    Pack<N> cosine, sine;
    for (int k = 0; k < N; ++k) {
      sincospif(static_cast<float>(2 * (turns - rint(turns))), &sine.x[k], &cosine.x[k]);
      turns *= ratio;
    }
    const std::int64_t end = (group + 1) * kHeads;
    for (std::int64_t head = group * kHeads; head < end && head < columns.heads; ++head) {
      const std::int64_t at_a = row * x.columns + columns.first + head * columns.stride + i;
      const Pack<N> a = load<N>(x, at_a), b = load<N>(x, at_a + half);
      Pack<N> turned_a, turned_b;
      for (int k = 0; k < N; ++k) {
        turned_a.x[k] = a.x[k] * cosine.x[k] - b.x[k] * sine.x[k];
        turned_b.x[k] = a.x[k] * sine.x[k] + b.x[k] * cosine.x[k];
      }
      store<N>(x, at_a, turned_a);
      store<N>(x, at_a + half, turned_b);
    }
  }
}

// Heads side by side, each with its own part and one that all share.
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

// In packs of eight.
bool come_out_even(std::initializer_list<std::int64_t> widths) {
  for (const std::int64_t width : widths) {
    if (width % 8 != 0) return false;
  }
  return true;
}

// Rows that no thread keeps: the scale's gradient in a second pass.
void scale_gradient(const Queue& queue, const NormGradient& of, const View& statistics) {
  const Strips strips(of.in);
  const Scratch parts(queue, strips.count, of.in.columns, ElementType::f32);
  const bool even = of.in.columns % 8 == 0;
  const dim3 blocks(even ? Strips::across<8>(of.in) : Strips::across<1>(of.in),
                    static_cast<unsigned>(strips.count));
  start(queue, "scale_gradient", even ? scale_gradient_of_strip<8> : scale_gradient_of_strip<1>,
        blocks, kBlock, 0, *parts, of.in, of.dout, statistics, strips.rows);
  add_column_sums(queue, of.scale_gradient, *parts);
  if (of.shift_gradient != nullptr) add_column_sums(queue, *of.shift_gradient, of.dout);
}

// Of two matrices and the sums of both gradients.
constexpr int kMostKept = 2;

// Few blocks, since each of their teams leaves a row of sums behind.
template <bool kShifts>
void norm_gradient_in_one(const Queue& queue, const NormGradient& of, const RowTeams& teams) {
  const unsigned blocks = row_blocks(of.in.rows, teams, kMostBlocks / 4);
  const std::int64_t rows = std::int64_t{blocks} * (teams.threads / teams.team);
  const Scratch scales(queue, rows, of.in.columns, ElementType::f32);
  const Scratch shifts(queue, kShifts ? rows : 0, of.in.columns, ElementType::f32);
  with_row_sizes(of.in.columns, teams, [&](auto sizes) {
    if constexpr (decltype(sizes)::kept > 0 && decltype(sizes)::kept <= kMostKept) {
      start(queue, "norm_gradient", norm_gradient_kernel<8, decltype(sizes)::kept, kShifts>,
            dim3(blocks), teams.threads, 0, of, View{}, *scales, *shifts, teams.team);
    }
  });
  add_column_sums(queue, of.scale_gradient, *scales);
  if (kShifts) add_column_sums(queue, *of.shift_gradient, *shifts);
}

}  // namespace

void norm(const Queue& queue, const View& out, const View& in, const View& scale, const View* shift,
          bool centred) {
  const RowTeams teams = row_teams(in.columns);
  with_row_sizes(in.columns, teams, [&](auto sizes) {
    start(queue, "norm", norm_kernel<decltype(sizes)::n, decltype(sizes)::kept>,
          dim3(row_blocks(in.rows, teams)), teams.threads, 0, out, in, scale,
          shift == nullptr ? View{} : *shift, shift != nullptr, centred, teams.team);
  });
}

void norm_gradient(const Queue& queue, const NormGradient& of) {
  if (of.in.rows == 0) return;
  const RowTeams teams = row_teams(of.in.columns, kMostKept);
  if (teams.kept > 0) {
    return of.shift_gradient == nullptr ? norm_gradient_in_one<false>(queue, of, teams)
                                        : norm_gradient_in_one<true>(queue, of, teams);
  }
  const Scratch statistics(queue, of.in.rows, 2, ElementType::f32);
  const dim3 blocks(row_blocks(of.in.rows, teams));
  start(queue, "norm_gradient",
        of.in.columns % 8 == 0 ? norm_gradient_kernel<8, 0, false>
                               : norm_gradient_kernel<1, 0, false>,
        blocks, teams.threads, 0, of, *statistics, View{}, View{}, teams.team);
  scale_gradient(queue, of, *statistics);
}

void rotate(const Queue& queue, const View& in_place, const RotaryColumns& columns,
            const RowPlaces& places, double direction) {
  const double ratio = std::pow(1e4, -2.0 / static_cast<double>(columns.width));
  const std::int64_t packs =
      come_out_even({columns.width / 2, columns.first, columns.stride, in_place.columns}) ? 8 : 1;
  const std::int64_t threads =
      in_place.rows * columns.width / 2 / packs * ((columns.heads + 3) / 4);
  start(queue, "rotate", packs == 8 ? rotate_kernel<8> : rotate_kernel<1>,
        dim3(blocks_for(threads)), kBlock, 0, in_place, columns, places, direction, ratio);
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
