// A row-major matrix in device memory, as kernels see it. A view does not own its memory; numbers
// in 8 bits have scales beside them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard {

// u8: masks of 0 and 1. e4m3, e5m2: operands of GEMMs in 8 bits, each number times a scale (OCP
// OFP8, MX 1.0).
enum class ElementType : std::uint8_t { f32, bf16, f16, u8, e4m3, e5m2 };
constexpr std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return 4;
    case ElementType::bf16:
    case ElementType::f16:
      return 2;
    case ElementType::u8:
    case ElementType::e4m3:
    case ElementType::e5m2:
      break;
  }
  return 1;
}
constexpr bool is_scaled(ElementType type) {
  return type == ElementType::e4m3 || type == ElementType::e5m2;
}

// The factors of scaled numbers: one float for the whole tensor, or a power of two for each `block`
// neighbours of a row, stored as its exponent (e8m0). With blocks, rows are a multiple of `block`
// long.
struct Scales {
  void* of = nullptr;
  int block = 0;  // 0: one scale for the whole tensor
};

struct View {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  ElementType type = ElementType::f32;
  Scales scales;

  constexpr std::int64_t size() const { return rows * columns; }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * bytes_of(type); }
  std::size_t scale_bytes() const {
    if (!is_scaled(type)) return 0;
    return scales.block == 0 ? sizeof(float) : static_cast<std::size_t>(size() / scales.block);
  }
  // The same memory in another shape. Requires: as many elements.
  View shaped(std::int64_t new_rows, std::int64_t new_columns) const {
    return {data, new_rows, new_columns, type, scales};
  }
  // `count` elements from `element` on, as a column. Requires: whole blocks.
  View from(std::int64_t element, std::int64_t count) const {
    return {static_cast<char*>(data) + static_cast<std::size_t>(element) * bytes_of(type), count, 1,
            type, scales_from(element)};
  }
  View rows_from(std::int64_t first, std::int64_t count) const {
    return from(first * columns, count * columns).shaped(count, columns);
  }
  Scales scales_from(std::int64_t element) const {
    if (scales.block == 0) return scales;
    return {static_cast<char*>(scales.of) + element / scales.block, scales.block};
  }
  // The stored bytes alone, without scales.
  View bare() const {
    return is_scaled(type) ? View{data, rows, columns, ElementType::u8, {}} : *this;
  }
};

// Where the scales begin behind `bytes` bytes of numbers, and the memory that a view needs with
// them.
constexpr std::size_t scales_at(std::size_t bytes) {
  constexpr std::size_t kAligned = 256;
  return (bytes + kAligned - 1) / kAligned * kAligned;
}
inline std::size_t room_for(const View& view) {
  return is_scaled(view.type) ? scales_at(view.bytes()) + view.scale_bytes() : view.bytes();
}

}  // namespace trainyard
