// Casts to 8 bits (OCP OFP8 1.0, MX 1.0), as executor/cpu/kernels/casts.cpp does them: a scale is
// the smallest power of two with which nothing exceeds the format's largest number.
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

constexpr int kTile = 32;  // rows and columns; also the width of a block with one scale

__device__ float largest_number(ElementType type) {
  return type == ElementType::e4m3 ? 448 : 57344;
}

// The smallest power of two that is not below `least`; 1 for 0, NaN and infinity. Never below
// 2⁻¹²⁶, whose inverse is a float too.
__device__ float power_of_two(float least) {
  if (!(least > 0) || least == INFINITY) return 1;
  int exponent = 0;
  const float fraction = frexpf(least, &exponent);
  if (fraction == 0.5F) --exponent;
  return ldexpf(1.0F, exponent < -126 ? -126 : exponent);
}

__device__ void put_exponent(const Scales& scales, std::int64_t block, float scale) {
  int exponent = 0;
  frexpf(scale, &exponent);
  static_cast<unsigned char*>(scales.of)[block] = static_cast<unsigned char>(exponent - 1 + 127);
}

// Writes the largest magnitude of each thread block's share of the numbers to part `first` + block.
template <int N>
__global__ void largest_of_share(View parts, std::int64_t first, View of, std::int64_t even) {
  float mine = 0;
  each_pack<N>(of, Stretch{0, of.size(), even}, global_thread(), all_threads(),
               [&](std::int64_t, const auto& pack) {
                 for (const float x : pack.x) mine = fmaxf(mine, fabsf(x));
               });
  const float largest = block_max(mine);
  if (threadIdx.x == 0) put(parts, first + blockIdx.x, largest);
}

// Run by one block.
__global__ void scale_of_parts(View scaled, View parts) {
  float largest = 0;
  for (std::int64_t i = threadIdx.x; i < parts.size(); i += blockDim.x) {
    largest = fmaxf(largest, at(parts, i));
  }
  largest = block_max(largest);
  if (threadIdx.x == 0) {
    *static_cast<float*>(scaled.scales.of) = power_of_two(largest / largest_number(scaled.type));
  }
}

// Rounds to columns `first` … of every row of `out`, with the scale already stored there.
struct RoundColumns {
  View out, in;
  std::int64_t first;
  template <int N>
  __device__ void run(const Spot& at) const {
    store<N>(out, at.row * out.columns + first + at.column, load<N>(in, at.i));
  }
};

// The same with a scale for each block: four threads have eight of a block's numbers each.
__global__ void round_blocks(View out, std::int64_t first, View in) {
  constexpr int kSharers = kTile / 8;
  const std::int64_t packs = in.size() / 8;
  const std::int64_t step = all_threads();
  for (std::int64_t begin = global_thread() - threadIdx.x; begin < packs; begin += step) {
    const std::int64_t from = (begin + threadIdx.x) * 8;
    const bool inside = from < in.size();
    const Pack<8> pack = inside ? load<8>(in, from) : Pack<8>{};
    float largest = 0;
    for (int k = 0; k < 8; ++k) largest = fmaxf(largest, fabsf(pack.x[k]));
    for (int away = 1; away < kSharers; away *= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, away));
    }
    const std::int64_t into = from / in.columns * out.columns + first + from % in.columns;
    if (inside && threadIdx.x % kSharers == 0) {
      put_exponent(out.scales, into / kTile, power_of_two(largest / largest_number(out.type)));
    }
    __syncwarp();  // the other threads read the scale
    if (inside) store<8>(out, into, pack);
  }
}

// out[c, r] = in[r, c], zeros where `in` has no such row. With blocks the scales are made anew: a
// column of the tile becomes one block. All threads work on one tile. `leading`: elements from one
// row of `in` to the next.
__global__ void transpose_tiles(View out, View in, std::int64_t leading) {
  __shared__ float tile[kTile][kTile + 1];
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int first = static_cast<int>(threadIdx.x) / kTile;
  const int step = static_cast<int>(blockDim.x) / kTile;
  for (int r = first; r < kTile; r += step) {
    const std::int64_t row = first_row + r, column = first_column + lane;
    const bool inside = row < in.rows && column < in.columns;
    tile[r][lane] = inside ? at(in, row * leading + column) : 0;
  }
  __syncthreads();
  if (out.scales.block > 0 && threadIdx.x < kTile && first_column + threadIdx.x < in.columns) {
    float largest = 0;
    for (int r = 0; r < kTile; ++r) largest = fmaxf(largest, fabsf(tile[r][threadIdx.x]));
    const std::int64_t place = (first_column + threadIdx.x) * out.columns + first_row;
    put_exponent(out.scales, place / kTile, power_of_two(largest / largest_number(out.type)));
  }
  __syncthreads();
  for (int c = first; c < kTile; c += step) {
    const std::int64_t row = first_column + c, column = first_row + lane;
    if (row < out.rows && column < out.columns) {
      put(out, row * out.columns + column, tile[lane][c]);
    }
  }
}

// Transposes 4 × 4 bytes: a to d hold four columns of one row each, and afterwards four rows of one
// column each.
__device__ void transpose_words(unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  const unsigned ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const unsigned cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  a = __byte_perm(ab_low, cd_low, 0x5410);
  b = __byte_perm(ab_low, cd_low, 0x7632);
  c = __byte_perm(ab_high, cd_high, 0x5410);
  d = __byte_perm(ab_high, cd_high, 0x7632);
}

// transpose_tiles() for bytes alone, where one scale holds for all of them and 16 bytes are aligned
// in both views. A thread transposes sixteen columns of four rows. In shared memory a column of the
// tile is 32 words of four rows each, shifted so that neither reads nor writes meet in a bank.
constexpr int kByteTile = 128;
__global__ void transpose_bytes(View out, View in, std::int64_t leading) {
  constexpr int kVector = 16, kAcross = kByteTile / kVector, kRows = 4;
  __shared__ uint4 tile[kByteTile * kAcross];
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kByteTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * kByteTile;
  const auto* from = static_cast<const unsigned char*>(in.data);
  auto* to = static_cast<unsigned char*>(out.data);
  const int across = static_cast<int>(threadIdx.x) % kAcross;
  const int step = static_cast<int>(blockDim.x) / kAcross;
  for (int four = static_cast<int>(threadIdx.x) / kAcross; four < kByteTile / kRows; four += step) {
    const std::int64_t row = first_row + four * kRows, column = first_column + across * kVector;
    unsigned words[kRows][kVector / 4]{};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= in.rows || column >= in.columns) continue;
      const uint4 sixteen = *reinterpret_cast<const uint4*>(from + (row + r) * leading + column);
      memcpy(words[r], &sixteen, sizeof(sixteen));
    }
    auto* column_words = reinterpret_cast<unsigned*>(tile) + across * kVector * (kByteTile / 4);
#pragma unroll
    for (int w = 0; w < kVector / 4; ++w) {
      transpose_words(words[0][w], words[1][w], words[2][w], words[3][w]);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        column_words[(4 * w + c) * (kByteTile / 4) + (four ^ (4 * across))] = words[c][w];
      }
    }
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x) / kAcross; c < kByteTile; c += step) {
    const std::int64_t row = first_column + c, column = first_row + across * kVector;
    if (row >= out.rows || column >= out.columns) continue;
    *reinterpret_cast<uint4*>(to + row * out.columns + column) =
        tile[c * kAcross + (across ^ (c / kVector))];
  }
}

// Numbers of several ranks, each with a scale of its own, are rescaled to the largest scale.
struct ShareScale {
  View all, scales;
  template <int N>
  __device__ void run(const Spot& spot) const {
    const std::int64_t i = spot.i;
    float largest = 0;
    for (std::int64_t k = 0; k < scales.size(); ++k) largest = fmaxf(largest, at(scales, k));
    const float scale = at(scales, spot.row) / largest;
    unsigned char numbers[N];
    take_part(all, i, fetch_pack<N>(all, i), numbers);
    for (int k = 0; k < N; ++k) {
      numbers[k] = narrow_bits(narrow_number(numbers[k], all.type) * scale, all.type);
    }
    put_part(all, i, numbers);
    if (i == 0) *static_cast<float*>(all.scales.of) = largest;
  }
};

// Scales in tiles of 128 rows and 4 blocks, tiles of the same rows one after the other. Within a
// tile, row r and block b are at (r mod 32)·16 + r / 32 · 4 + b. What pads a tile is zero.
__global__ void tile_scales(View out, View of, std::int64_t leading) {
  const std::int64_t blocks = of.columns / of.scales.block;
  const std::int64_t tiles = (blocks + 3) / 4;
  for (std::int64_t i = global_thread(); i < out.size(); i += all_threads()) {
    const std::int64_t tile = i / 512, within = i % 512;
    const std::int64_t row = tile / tiles * 128 + within / 16 + within % 16 / 4 * 32;
    const std::int64_t block = tile % tiles * 4 + within % 4;
    const bool inside = row < of.rows && block < blocks;
    const auto* from = static_cast<const unsigned char*>(of.scales.of);
    static_cast<unsigned char*>(out.data)[i] =
        inside ? from[row * (leading / of.scales.block) + block] : 0;
  }
}

void round_to(const Queue& queue, const View& out, std::int64_t first, const View& in) {
  if (out.scales.block > 0) {
    start(queue, "round_blocks", round_blocks, dim3(blocks_for(in.size() / 8)), kBlock, 0, out,
          first, in);
    return;
  }
  const bool even = out.columns % 8 == 0 && first % 8 == 0 && even_place({&out, &in}) == 0;
  each(queue, "round_columns", RoundColumns{out, in, first}, in.rows, in.columns, even);
}

void find_scale(const Queue& queue, const View& out, const std::vector<View>& in) {
  const auto blocks_of = [](const View& part) { return blocks_for((part.size() + 7) / 8); };
  std::int64_t count = 0;
  for (const View& part : in) count += blocks_of(part);
  const Scratch parts(queue, count, 1, ElementType::f32);
  count = 0;
  for (const View& part : in) {
    const std::int64_t even = even_place({&part});
    start(queue, "largest_of_share", even < 0 ? largest_of_share<1> : largest_of_share<8>,
          dim3(blocks_of(part)), kBlock, 0, *parts, count, part, even);
    count += blocks_of(part);
  }
  start(queue, "scale_of_parts", scale_of_parts, dim3(1), kBlock, 0, out, *parts);
}

}  // namespace

void cast(const Queue& queue, const View& out, const std::vector<View>& in) {
  for (const View& part : in) {
    if (out.scales.block == 0 || part.columns % out.scales.block == 0) continue;
    return queue.status.fail("a cast to mxfp8 failed: rows are no multiple of 32 elements");
  }
  if (out.scales.block == 0) find_scale(queue, out, in);
  std::int64_t first = 0;
  for (const View& part : in) {
    round_to(queue, out, first, part);
    first += part.columns;
  }
}

void transpose(const Queue& queue, const View& out, const View& in, std::int64_t leading) {
  const auto tiles = [&](std::int64_t tile) {
    return dim3(static_cast<unsigned>((out.columns + tile - 1) / tile),
                static_cast<unsigned>((out.rows + tile - 1) / tile));
  };
  const auto aligned = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
  };
  const bool sixteens = aligned(in.data) && aligned(out.data) && leading % 16 == 0 &&
                        in.columns % 16 == 0 && out.columns % 16 == 0;
  if (out.scales.block == 0 && out.type == in.type && sixteens) {
    start(queue, "transpose", transpose_bytes, tiles(kByteTile), kBlock, 0, out, in, leading);
  } else {
    start(queue, "transpose", transpose_tiles, tiles(kTile), kBlock, 0, out, in, leading);
  }
}

void to_one_scale(const Queue& queue, const View& all, const View& scales) {
  each(queue, "share_scale", ShareScale{all, scales}, scales.size(), all.size() / scales.size());
}

std::int64_t tiled_scale_bytes(std::int64_t rows, std::int64_t blocks) {
  return (rows + 127) / 128 * ((blocks + 3) / 4) * 512;
}

void arrange_scales(const Queue& queue, const View& out, const View& of, std::int64_t leading) {
  start(queue, "tile_scales", tile_scales, dim3(blocks_for(out.size())), kBlock, 0, out, of,
        leading);
}

}  // namespace trainyard
