#include <utility>

#include "executor/cpu/kernels/kernels.h"
#include "executor/measure/measure_collectives.h"

namespace trainyard {
namespace {

// One exchange, with its buffers.
class HostExchange final : public TimedExchange {
 public:
  HostExchange(Transport& transport, CollectiveOperation operation, int count)
      : transport_(transport),
        operation_(operation),
        all_(static_cast<std::size_t>(count)),
        mine_(all_.size()),
        bytes_(all_.size() * sizeof(float), '\0'),
        parts_(static_cast<std::size_t>(transport.ranks()), count / transport.ranks()) {}

  Expected<double> time_of_one(int) override {
    const auto begin = TimingClock::now();
    if (auto done = exchanged(); !done) return tl::unexpected(done.error());
    return seconds_since(begin);
  }

 private:
  Expected<void> exchanged() {
    switch (operation_) {
      case CollectiveOperation::all_gather:
        return transport_.all_gather(Group::all, mine_.data(), parts_, all_.data());
      case CollectiveOperation::reduce_scatter:
        return transport_.reduce_scatter(Group::all, all_.data(), parts_, mine_.data());
      case CollectiveOperation::all_to_all:
        return transport_.all_to_all(Group::all, mine_.data(), parts_, all_.data(), parts_);
      case CollectiveOperation::broadcast:
        return transport_.broadcast(bytes_, 0);
      case CollectiveOperation::send:
        return there_and_back();
      case CollectiveOperation::all_reduce:
        break;
    }
    return transport_.all_reduce(Group::all, all_.data(), size(), Reduction::sum);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(all_.size()); }

  // Requires: two ranks.
  Expected<void> there_and_back() {
    const int peer = 1 - transport_.rank();
    const auto send = [&] { return transport_.send(peer, 0, mine_.data(), size()); };
    const auto receive = [&] { return transport_.receive(peer, 0, all_.data(), size()); };
    auto first = transport_.rank() == 0 ? send() : receive();
    return first ? (transport_.rank() == 0 ? receive() : send()) : first;
  }

  Transport& transport_;
  CollectiveOperation operation_;
  std::vector<float> all_, mine_;
  std::string bytes_;
  Counts parts_;
};

class HostGroup final : public CalibrationGroup {
 public:
  explicit HostGroup(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  Transport& host() override { return *transport_; }
  std::unique_ptr<TimedExchange> exchange(CollectiveOperation operation, int count) override {
    return std::make_unique<HostExchange>(*transport_, operation, count);
  }

 private:
  std::unique_ptr<Transport> transport_;
};

// A product that takes about a millisecond.
class HostProducts {
 public:
  HostProducts()
      : a_(Tensor<float>::Random(128, 512)), b_(Tensor<float>::Random(512, 256)), c_(128, 256) {}
  double once() {
    const auto begin = TimingClock::now();
    c_.noalias() = a_ * b_;
    return seconds_since(begin);
  }

 private:
  Tensor<float> a_, b_, c_;
};

}  // namespace

CalibrationParty host_party(std::function<std::unique_ptr<Transport>(int ranks)> transport) {
  CalibrationParty party;
  party.group =
      [transport = std::move(transport)](int ranks) -> Expected<std::unique_ptr<CalibrationGroup>> {
    auto made = transport(ranks);
    if (!made) return nullptr;
    return std::make_unique<HostGroup>(std::move(made));
  };
  party.product = [products = std::make_shared<HostProducts>()] { return products->once(); };
  return party;
}

}  // namespace trainyard
