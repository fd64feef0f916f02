// A matrix in device memory, row by row, as kernels see it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard {

enum class ElementType : std::uint8_t { f32, bf16, u8 };  // u8: masks, 0 or 1
constexpr std::size_t bytes_of(ElementType type) {
  return type == ElementType::f32 ? 4 : type == ElementType::bf16 ? 2 : 1;
}

struct View {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  ElementType type = ElementType::f32;

  constexpr std::int64_t size() const { return rows * columns; }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * bytes_of(type); }
  // Requires: as many elements.
  View shaped(std::int64_t new_rows, std::int64_t new_columns) const {
    return {data, new_rows, new_columns, type};
  }
  View from(std::int64_t element, std::int64_t count) const {
    return {static_cast<char*>(data) + static_cast<std::size_t>(element) * bytes_of(type), count, 1,
            type};
  }
  View rows_from(std::int64_t first, std::int64_t count) const {
    return from(first * columns, count * columns).shaped(count, columns);
  }
};

}  // namespace trainyard
