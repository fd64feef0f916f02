// Sums of columns: first over strips of the rows, then over the strips' sums.
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

template <typename Type, int N>
__global__ void __launch_bounds__(kBlock)
    column_sums_of_strip(View parts, View any_of, std::int64_t strip) {
  const View of = Type::of(any_of);
  sum_strip<N>(parts, of, strip, [&](std::int64_t, std::int64_t i) { return load<N>(of, i); });
}

constexpr int kPartsThreads = 4 * kBlock;

__global__ void add_parts_kernel(View into, View any_parts) {
  const View parts = OneType<ElementType::f32>::of(any_parts);
  sum_rows<1, kPartsThreads>(
      parts, 0, parts.rows, [&](std::int64_t, std::int64_t i) { return load<1>(parts, i); },
      [&](std::int64_t column, const Pack<1>& sum) { add(into, column, sum.x[0]); });
}

}  // namespace

void add_parts(const Queue& queue, const View& into, const View& parts) {
  constexpr int kAtOnce = kBlock / 32 * 8;  // rows that the warps of a small block fetch at once
  const int threads = parts.rows > kAtOnce ? kPartsThreads : kBlock;
  start(queue, "add_parts", add_parts_kernel, dim3(Strips::across<1>(parts)), threads, 0, into,
        parts);
}

void add_column_sums(const Queue& queue, const View& into, const View& of) {
  if (of.size() == 0) return;
  const Strips strips(of);
  const Scratch parts(queue, strips.count, of.columns, ElementType::f32);
  const bool even = of.columns % 8 == 0 && even_place({&of}) == 0;
  const View* const all[] = {&of};
  with_packs(even, all, [&](auto type, auto of_pack) {
    start(queue, "column_sums_of_strip", column_sums_of_strip<decltype(type), of_pack>,
          dim3(Strips::across<of_pack>(of), static_cast<unsigned>(strips.count)), kBlock, 0, *parts,
          of, strips.rows);
  });
  add_parts(queue, into, *parts);
}

}  // namespace trainyard
