// A vector of bounded size that lives inside its owner: the estimate's path allocates nothing.
// Requires: never more than Capacity elements (asserted; capacities are static facts of the model,
// such as the number of operators in a layer, not properties of the input).
#pragma once

#include <array>
#include <cassert>
#include <cstddef>

namespace trainyard {

template <typename T, std::size_t Capacity>
class InlineVector {
 public:
  void push_back(const T& element) {
    assert(size_ < Capacity && "an InlineVector's capacity is a static bound");
    elements_[size_++] = element;
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return elements_[i]; }
  const T& operator[](std::size_t i) const { return elements_[i]; }
  T& back() { return elements_[size_ - 1]; }
  T* begin() { return elements_.data(); }
  T* end() { return elements_.data() + size_; }
  const T* begin() const { return elements_.data(); }
  const T* end() const { return elements_.data() + size_; }

 private:
  std::array<T, Capacity> elements_;
  std::size_t size_ = 0;
};

}  // namespace trainyard
