#include <algorithm>

#include "executor/random.h"
#include "executor/transport/transport.h"

namespace trainyard {
namespace {

// In the place of what others would have sent: what this rank sends, repeated to the wanted length.
void fill(const float* from, std::size_t available, float* to, std::size_t wanted) {
  for (std::size_t done = 0; done < wanted; done += available) {
    if (available == 0) return;
    std::copy_n(from, std::min(available, wanted - done), to + done);
  }
}

std::size_t total_of(const Counts& counts) {
  std::size_t sum = 0;
  for (const std::int64_t count : counts) sum += static_cast<std::size_t>(count);
  return sum;
}

class StandInTransport final : public Transport {
 public:
  StandInTransport(const RankLayout& layout, int rank)
      : Transport(rank, layout.ranks()), layout_(layout) {}

  // Reads and writes the numbers once, as summing up what has arrived would.
  Expected<void> all_reduce(Group, float* numbers, std::int64_t count, Reduction) override {
    scratch_.assign(numbers, numbers + count);
    std::copy(scratch_.begin(), scratch_.end(), numbers);
    return {};
  }
  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    const int self = layout_.members(group, rank()).index_of(rank());
    std::copy_n(all, counts[static_cast<std::size_t>(self)], mine);
    return {};
  }
  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    const int self = layout_.members(group, rank()).index_of(rank());
    scratch_.assign(mine, mine + counts[static_cast<std::size_t>(self)]);
    fill(scratch_.data(), scratch_.size(), all, total_of(counts));
    return {};
  }
  Expected<void> all_to_all(Group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    fill(to, total_of(to_counts), from, total_of(from_counts));
    return {};
  }
  Expected<void> pass(Group, RingWay, const float* mine, float* received,
                      std::int64_t count) override {
    std::copy_n(mine, count, received);
    return {};
  }
  Expected<void> send(int, int, const float* numbers, std::int64_t count) override {
    scratch_.assign(numbers, numbers + count);
    return {};
  }
  // Copies noise, as a received message would be copied.
  Expected<void> receive(int, int, float* numbers, std::int64_t count) override {
    for (auto i = noise_.size(); i < static_cast<std::size_t>(count + kMessageShifts); ++i) {
      noise_.push_back(message_noise(0, i));
    }
    std::copy_n(noise_.begin() + messages_++ % kMessageShifts, count, numbers);
    return {};
  }
  Expected<void> wait_for_messages() override { return {}; }
  Expected<void> broadcast(std::string&, int) override { return {}; }

 private:
  const RankLayout& layout_;
  std::vector<float> scratch_;
  std::vector<float> noise_;
  std::int64_t messages_ = 0;  // received
};

}  // namespace

std::unique_ptr<Transport> make_stand_in_transport(const RankLayout& layout, int rank) {
  return std::make_unique<StandInTransport>(layout, rank);
}

}  // namespace trainyard
