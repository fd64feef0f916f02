// A vector of bounded size that stores its elements inside itself, so that the estimate allocates
// nothing. Elements that were never pushed are never written, so a large capacity costs no time.
// Requires: never more than Capacity elements (asserted; a capacity is a static fact of the model,
// such as the number of operators in a layer, not a property of the input).
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace trainyard {

template <typename T, std::size_t Capacity>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied and dropped as bytes");

 public:
  InlineVector() {}  // NOLINT(modernize-use-equals-default): it leaves the elements unwritten
  void push_back(const T& element) {
    assert(size_ < Capacity && "an InlineVector's capacity is a static bound");
    std::construct_at(elements + size_++, element);
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return elements[i]; }
  const T& operator[](std::size_t i) const { return elements[i]; }
  T& back() { return elements[size_ - 1]; }
  T* begin() { return elements; }
  T* end() { return elements + size_; }
  const T* begin() const { return elements; }
  const T* end() const { return elements + size_; }

 private:
  union {  // not written by the constructor; its member counts as public, hence the name
    T elements[Capacity];
  };
  std::size_t size_ = 0;
};

}  // namespace trainyard
