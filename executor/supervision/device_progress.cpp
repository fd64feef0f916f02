#include "executor/supervision/device_progress.h"

#include <algorithm>
#include <utility>

namespace trainyard {

void DeviceProgress::begin_step() {
  const std::lock_guard lock(mutex_);
  lanes_.clear();
  begun_.clear();
  ++steps_;
  next_ = 0;
}

void DeviceProgress::begins(const Lane& lane, Backend::Event begin) {
  const std::lock_guard lock(mutex_);
  lanes_[lane].push_back({.number = next_++, .begin = begin});
}

void DeviceProgress::ends(const Lane& lane, Backend::Event end) {
  const std::lock_guard lock(mutex_);
  std::deque<Handed>& handed = lanes_[lane];
  if (!handed.empty()) handed.back().end = end;
}

bool DeviceProgress::has_ended(Handed& operation) {
  if (!operation.has_begun && reached_(operation.begin)) {
    operation.has_begun = true;
    begun_.push_back(operation.number);
    ++done_;
  }
  if (!operation.has_begun || !operation.end || !reached_(*operation.end)) return false;
  ++done_;
  return true;
}

DeviceProgress::Look DeviceProgress::look() {
  const std::lock_guard lock(mutex_);
  Look found;
  for (auto& [lane, handed] : lanes_) {
    while (!handed.empty() && has_ended(handed.front())) handed.pop_front();
    if (!handed.empty() && handed.front().has_begun) {
      found.under_way.push_back(handed.front().number);
    }
  }
  std::sort(found.under_way.begin(), found.under_way.end());
  found.done = done_;
  found.steps = steps_;
  found.begun = std::exchange(begun_, {});
  return found;
}

}  // namespace trainyard
