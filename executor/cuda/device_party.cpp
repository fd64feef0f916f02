#include "executor/cuda/device_party.h"

#include <algorithm>
#include <utility>

#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_memory.h"
#include "executor/cuda/device_transport.h"
#include "executor/cuda/gemm.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/placement.h"

namespace trainyard {
namespace {

// A stream whose work is timed, with its own memory and status, because threads must not share
// them.
class TimedStream {
 public:
  explicit TimedStream(int device) : device_(device), memory_(status_, device, 1) {
    status_.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags");
    status_.check(cudaEventCreate(&begin_), "cudaEventCreate");
    status_.check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~TimedStream() {
    cudaStreamSynchronize(stream_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  TimedStream(const TimedStream&) = delete;
  TimedStream& operator=(const TimedStream&) = delete;

  Queue queue() { return {status_, stream_, memory_.pool()}; }
  CudaStatus& status() { return status_; }
  Expected<void> state() const {
    if (status_.ok()) return {};
    return failure("", status_.message());
  }

  // Seconds that `work` takes on the device; `waiting` is called again and again meanwhile.
  template <typename Work, typename Waiting>
  Expected<double> time_of(const Work& work, const Waiting& waiting) {
    // a new thread starts with the first device
    status_.check(cudaSetDevice(device_), "cudaSetDevice");
    status_.check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    if (Expected<void> done = work(queue()); !done) return tl::unexpected(done.error());
    status_.check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    for (cudaError_t now = cudaEventQuery(end_); now != cudaSuccess; now = cudaEventQuery(end_)) {
      if (now != cudaErrorNotReady) status_.check(now, "cudaEventQuery");
      if (!status_.ok()) break;
      cudaGetLastError();  // else the next kernel's start would find it
      if (Expected<void> well = waiting(); !well) return tl::unexpected(well.error());
    }
    float milliseconds = 0;
    status_.check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    if (auto well = state(); !well) return tl::unexpected(well.error());
    return std::max(1e-3 * static_cast<double>(milliseconds), 1e-9);
  }

 private:
  int device_;
  CudaStatus status_;
  DeviceMemory memory_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

class DeviceTimedExchange final : public TimedExchange {
 public:
  DeviceTimedExchange(TimedStream& stream, DeviceTransport& transport, const Transport& host,
                      CollectiveOperation operation, int count, int most_in_a_row)
      : stream_(stream),
        transport_(transport),
        operation_(operation),
        most_in_a_row_(most_in_a_row),
        self_(host.rank()),
        parts_(static_cast<std::size_t>(host.ranks()), count / host.ranks()),
        queue_(stream.queue()),
        all_(queue_, count, 1, ElementType::f32),
        mine_(queue_, count, 1, ElementType::f32) {
    fill(queue_, *all_, 0);
    fill(queue_, *mine_, 0);
  }

  Expected<double> time_of_one(int in_a_row) override {
    const auto all = stream_.time_of(
        [&](const Queue& queue) {
          Expected<void> done;
          for (int i = 0; i < in_a_row && done; ++i) done = exchanged(queue);
          return done;
        },
        [&] { return transport_.check(); });
    return all ? *all / in_a_row : all;
  }
  int most_in_a_row() const override { return most_in_a_row_; }

 private:
  Expected<void> exchanged(const Queue& queue) {
    const Group all = Group::all;
    switch (operation_) {
      case CollectiveOperation::all_gather:
        return transport_.all_gather(queue, all, mine_->from(0, parts_.front()), parts_,
                                     gathered());
      case CollectiveOperation::reduce_scatter:
        return transport_.reduce_scatter(queue, all, gathered(), parts_,
                                         mine_->from(0, parts_.front()));
      case CollectiveOperation::all_to_all:
        return transport_.all_to_all(queue, all, mine_->from(0, gathered().size()), parts_,
                                     gathered(), parts_);
      case CollectiveOperation::broadcast:
        return transport_.all_gather(queue, all, mine_->from(0, self_ == 0 ? size() : 0),
                                     only(0, size()), *all_);
      case CollectiveOperation::send: {
        auto there = message(queue, 0, 1);
        return there ? message(queue, 1, 0) : there;
      }
      case CollectiveOperation::all_reduce:
        break;
    }
    return transport_.all_reduce(queue, all, *all_, Reduction::sum);
  }

  std::int64_t size() const { return all_->size(); }
  // The part of `all_` that holds equal parts of all ranks.
  View gathered() const { return all_->from(0, parts_.front() * ranks()); }
  std::int64_t ranks() const { return static_cast<std::int64_t>(parts_.size()); }
  Counts only(int member, std::int64_t count) const {
    Counts counts(parts_.size());
    counts[static_cast<std::size_t>(member)] = count;
    return counts;
  }

  Expected<void> message(const Queue& queue, int from, int to) {
    const std::int64_t sent = self_ == from ? size() : 0, received = self_ == to ? size() : 0;
    return transport_.all_to_all(queue, Group::all, mine_->from(0, sent), only(to, sent),
                                 all_->from(0, received), only(from, received));
  }

  TimedStream& stream_;
  DeviceTransport& transport_;
  CollectiveOperation operation_;
  int most_in_a_row_;
  int self_;
  Counts parts_;
  Queue queue_;
  Scratch all_, mine_;
};

Plan replicas(int ranks) {
  Plan plan;
  plan.data_parallel = ranks;
  return plan;
}

class DeviceGroup final : public CalibrationGroup {
 public:
  DeviceGroup(int device, std::unique_ptr<Transport> host)
      : host_(std::move(host)), layout_(replicas(host_->ranks()), 1), stream_(device) {}
  Expected<void> connect(bool shared) {
    // exchanges through the host's memory wait for the host and are timed one by one
    constexpr int kOfNccl = 20;
    most_in_a_row_ = shared ? 1 : kOfNccl;
    auto made = shared ? Expected<std::unique_ptr<DeviceTransport>>(make_staged_transport(*host_))
                       : make_nccl_transport({}, layout_, *host_);
    if (!made) return tl::unexpected(made.error());
    transport_ = *std::move(made);
    return stream_.state();
  }
  ~DeviceGroup() override { transport_.reset(); }  // first: kernels that wait for a peer end

  Transport& host() override { return *host_; }
  std::unique_ptr<TimedExchange> exchange(CollectiveOperation operation, int count) override {
    return std::make_unique<DeviceTimedExchange>(stream_, *transport_, *host_, operation, count,
                                                 most_in_a_row_);
  }

 private:
  std::unique_ptr<Transport> host_;
  RankLayout layout_;
  TimedStream stream_;
  std::unique_ptr<DeviceTransport> transport_;
  int most_in_a_row_ = 1;
};

// A product that takes about a millisecond.
class DeviceProduct {
 public:
  explicit DeviceProduct(int device)
      : stream_(device),
        gemm_(stream_.status()),
        queue_(stream_.queue()),
        a_(queue_, kWidth, kWidth, ElementType::bf16),
        b_(queue_, kWidth, kWidth, ElementType::bf16),
        c_(queue_, kWidth, kWidth, ElementType::bf16) {
    fill(queue_, *a_, 0.5F);
    fill(queue_, *b_, 0.5F);
  }
  double once() {
    const auto took = stream_.time_of(
        [&](const Queue& queue) {
          gemm_.multiply(queue, operand_of(*a_), transposed(operand_of(*b_)), operand_of(*c_),
                         false);
          return Expected<void>();
        },
        [] { return Expected<void>(); });
    return took ? *took : 1;
  }
  Expected<void> state() const { return stream_.state(); }

 private:
  static constexpr std::int64_t kWidth = 6144;

  TimedStream stream_;
  Gemm gemm_;
  Queue queue_;
  Scratch a_, b_, c_;
};

class OfThisDevice final : public DeviceParty {
 public:
  OfThisDevice(const DevicePlacement& placement,
               std::function<std::unique_ptr<Transport>(int ranks)> transport)
      : placement_(placement), transport_(std::move(transport)) {}

  CalibrationParty party() override {
    CalibrationParty party{.sizes = 18, .reduced = 1 << 24};
    party.group = [this](int ranks) { return group(ranks); };
    party.product = [this] {
      if (product_ == nullptr) product_ = std::make_unique<DeviceProduct>(placement_.device);
      return product_->once();
    };
    return party;
  }
  bool shared() const override { return placement_.shared; }
  Expected<void> state() const override {
    return product_ == nullptr ? Expected<void>() : product_->state();
  }

 private:
  Expected<std::unique_ptr<CalibrationGroup>> group(int ranks) const {
    auto host = transport_(ranks);
    if (!host) return nullptr;
    auto made = std::make_unique<DeviceGroup>(placement_.device, std::move(host));
    if (auto connected = made->connect(placement_.shared); !connected) {
      return tl::unexpected(connected.error());
    }
    return made;
  }

  DevicePlacement placement_;
  std::function<std::unique_ptr<Transport>(int ranks)> transport_;
  std::unique_ptr<DeviceProduct> product_;
};

}  // namespace

Expected<std::unique_ptr<DeviceParty>> make_device_party(
    Transport& all, std::function<std::unique_ptr<Transport>(int ranks)> transport) {
  auto placement = placed(all);
  if (!placement) return tl::unexpected(placement.error());
  return std::make_unique<OfThisDevice>(*placement, std::move(transport));
}

}  // namespace trainyard
