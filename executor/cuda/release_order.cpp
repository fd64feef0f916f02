#include "executor/cuda/release_order.h"

#include <algorithm>
#include <limits>

namespace trainyard {
namespace {

std::int64_t signed_of(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace

// The releases of one giver that a taker has not waited for yet.
struct ReleaseOrder::Unknown {
  const Giver& of;
  std::int64_t& known;
  std::vector<Release>::const_iterator next;
  cudaEvent_t event = nullptr;  // to wait for

  Unknown(const Giver& giver, std::int64_t& known_until)
      : of(giver),
        known(known_until),
        next(std::ranges::upper_bound(giver.peaks, known_until, {}, &Release::number)) {}

  // Bytes that the giver may hold beyond its present level.
  std::int64_t bytes() const {
    return next == of.peaks.end() ? 0 : std::max<std::int64_t>(0, next->level - of.level);
  }
  // Number of the next release, which is smallest for the oldest; the largest integer: none is
  // left.
  std::int64_t order() const {
    return bytes() == 0 ? std::numeric_limits<std::int64_t>::max() : next->number;
  }
  void wait_for_next() {
    known = next->number;
    event = next->event;
    ++next;
  }
};

ReleaseOrder::ReleaseOrder(CudaStatus& status, std::size_t room)
    : status_(status), room_(signed_of(room)) {
  status_.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
}

ReleaseOrder::~ReleaseOrder() {
  forget();
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  cudaStreamDestroy(stream_);
}

void ReleaseOrder::taken(cudaStream_t taker, std::size_t bytes) {
  givers_[taker].level += signed_of(bytes);
}

void ReleaseOrder::released(cudaStream_t giver, std::size_t bytes) {
  Giver& of = givers_[giver];
  while (!of.peaks.empty() && of.peaks.back().level <= of.level) {
    spare_.push_back(of.peaks.back().event);
    of.peaks.pop_back();
  }
  Release now{++count_, of.level, nullptr};
  if (spare_.empty()) {
    status_.check(cudaEventCreateWithFlags(&now.event, cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
  } else {
    now.event = spare_.back();
    spare_.pop_back();
  }
  status_.check(cudaEventRecord(now.event, giver), "cudaEventRecord");
  of.peaks.push_back(now);
  of.level -= signed_of(bytes);
}

void ReleaseOrder::make_room(cudaStream_t taker, std::size_t held, std::size_t bytes) {
  std::int64_t missing = signed_of(held) + signed_of(bytes) - room_;
  std::vector<Unknown> others;
  for (const auto& [stream, giver] : givers_) {
    if (stream == taker) continue;
    others.emplace_back(giver, known_[{taker, stream}]);
    missing += others.back().bytes();
  }
  while (missing > 0) {
    const auto oldest = std::ranges::min_element(others, {}, &Unknown::order);
    if (oldest == others.end() || oldest->bytes() == 0) break;
    missing -= oldest->bytes();
    oldest->wait_for_next();
    missing += oldest->bytes();
  }
  for (const Unknown& of : others) {
    if (of.event == nullptr) continue;
    status_.check(cudaStreamWaitEvent(taker, of.event, 0), "cudaStreamWaitEvent");
  }
}

void ReleaseOrder::forget() {
  for (const auto& [stream, giver] : givers_) {
    for (const Release& of : giver.peaks) spare_.push_back(of.event);
  }
  givers_.clear();
  known_.clear();
  count_ = 0;
}

}  // namespace trainyard
