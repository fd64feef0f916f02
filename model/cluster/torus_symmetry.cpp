#include "model/cluster/torus_symmetry.h"

#include <cstdint>

namespace trainyard {
namespace {

class Movement {
 public:
  Movement(const TorusNodes& nodes, std::span<const int> ranks, std::size_t size)
      : nodes_(nodes), ranks_(ranks), size_(size) {
    std::size_t devices = static_cast<std::size_t>(nodes.devices);
    for (const int side : nodes.sides) devices *= static_cast<std::size_t>(side);
    group_at_.assign(devices, kNone);
    for (std::size_t at = 0; at < ranks.size(); at += size) {
      group_at_[static_cast<std::size_t>(ranks[at])] = static_cast<std::int64_t>(at);
    }
  }

  // The least shift along a dimension that maps the groups onto each other; `side`: there is none.
  int least(int side, int stride) const {
    for (int distance = 1; distance < side; ++distance) {
      const bool keeps_domains =
          distance * stride % nodes_.domain == 0 && side * stride % nodes_.domain == 0;
      if (side % distance == 0 && keeps_domains && carries(side, stride, distance)) {
        return distance;
      }
    }
    return side;
  }

 private:
  static constexpr std::int64_t kNone = -1;

  bool carries(int side, int stride, int distance) const {
    const auto moved = [&](int rank) {
      const int at = rank / nodes_.devices / stride % side;
      return rank + ((at + distance) % side - at) * stride * nodes_.devices;
    };
    for (std::size_t group = 0; group < ranks_.size(); group += size_) {
      const std::int64_t other = group_at_[static_cast<std::size_t>(moved(ranks_[group]))];
      if (other == kNone) return false;
      for (std::size_t i = 1; i < size_; ++i) {
        if (moved(ranks_[group + i]) != ranks_[static_cast<std::size_t>(other) + i]) return false;
      }
    }
    return true;
  }

  const TorusNodes& nodes_;
  std::span<const int> ranks_;
  std::size_t size_;
  std::vector<std::int64_t> group_at_;  // by a group's first rank: where it begins in ranks_
};

}  // namespace

TorusSymmetry::TorusSymmetry(const TorusNodes& nodes, std::span<const int> ranks, std::size_t size)
    : sides_(nodes.sides), periods_(nodes.sides) {
  if (sides_.empty()) return;
  const Movement movement(nodes, ranks, size);
  int stride = 1;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    periods_[i] = movement.least(sides_[i], stride);
    stride *= sides_[i];
  }
}

std::size_t TorusSymmetry::copies() const {
  std::size_t copies = 1;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    copies *= static_cast<std::size_t>(sides_[i] / periods_[i]);
  }
  return copies;
}

int TorusSymmetry::first(int node) const {
  int stride = 1;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const int at = node / stride % sides_[i];
    node -= (at - at % periods_[i]) * stride;
    stride *= sides_[i];
  }
  return node;
}

}  // namespace trainyard
