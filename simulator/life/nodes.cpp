#include "simulator/life/nodes.h"

#include <algorithm>
#include <functional>

namespace trainyard {
namespace {

constexpr std::uint64_t kRepairStream = 1001;

}  // namespace

Nodes::Nodes(int spares, Seconds repair, std::uint64_t seed)
    : spares_(spares), repair_(repair.value() * 1e9), random_(seed, kRepairStream) {}

void Nodes::lose(int nodes, Nanoseconds now) {
  for (int i = 0; i < nodes; ++i) {
    const Seconds repaired(random_.exponential(repair_) * 1e-9);
    returns_.push_back(now + to_nanoseconds(repaired));
    std::push_heap(returns_.begin(), returns_.end(), std::greater<>());
  }
  const int replaced = std::min(nodes, spares_);
  spares_ -= replaced;
  missing_ += nodes - replaced;
}

void Nodes::come_back(Nanoseconds now) {
  while (!returns_.empty() && returns_.front() <= now) {
    std::pop_heap(returns_.begin(), returns_.end(), std::greater<>());
    returns_.pop_back();
    (missing_ > 0 ? --missing_ : ++spares_);
  }
}

Nanoseconds Nodes::next_return() const { return returns_.empty() ? kNever : returns_.front(); }

}  // namespace trainyard
