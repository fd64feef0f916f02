#include "executor/cuda/compute.h"
#include "executor/cuda/device_transport.h"

namespace trainyard {
namespace {

class StagedTransport final : public DeviceTransport {
 public:
  explicit StagedTransport(Transport& host) : host_(host) {}

  Expected<void> all_reduce(const Queue& queue, Group group, const View& numbers,
                            Reduction how) override {
    std::vector<float> staged = downloaded(queue, numbers);
    auto done = host_.all_reduce(group, staged.data(), numbers.size(), how);
    upload(queue, numbers, staged);
    return done;
  }

  Expected<void> reduce_scatter(const Queue& queue, Group group, const View& all,
                                const Counts& counts, const View& mine) override {
    const std::vector<float> staged = downloaded(queue, all);
    return received(queue, mine, [&](float* numbers) {
      return host_.reduce_scatter(group, staged.data(), counts, numbers);
    });
  }

  Expected<void> all_gather(const Queue& queue, Group group, const View& mine, const Counts& counts,
                            const View& all) override {
    const std::vector<float> staged = downloaded(queue, mine);
    return received(queue, all, [&](float* numbers) {
      return host_.all_gather(group, staged.data(), counts, numbers);
    });
  }

  Expected<void> all_to_all(const Queue& queue, Group group, const View& to,
                            const Counts& to_counts, const View& from,
                            const Counts& from_counts) override {
    const std::vector<float> staged = downloaded(queue, to);
    return received(queue, from, [&](float* numbers) {
      return host_.all_to_all(group, staged.data(), to_counts, numbers, from_counts);
    });
  }

  Expected<void> pass(const Queue& queue, Group group, RingWay way, const View& mine,
                      const View& got) override {
    const std::vector<float> staged = downloaded(queue, mine);
    return received(queue, got, [&](float* numbers) {
      return host_.pass(group, way, staged.data(), numbers, mine.size());
    });
  }

  Expected<void> send(const Queue& queue, int to, int way, const View& numbers) override {
    const std::vector<float> staged = downloaded(queue, numbers);
    return host_.send(to, way, staged.data(), numbers.size());
  }

  Expected<void> receive(const Queue& queue, int from, int way, const View& numbers) override {
    return received(queue, numbers, [&](float* staged) {
      return host_.receive(from, way, staged, numbers.size());
    });
  }

  // While the host waits for the device, its own messages make progress.
  Expected<void> check() override {
    host_.move_messages();
    return {};
  }
  Expected<void> wait_for_messages() override { return host_.wait_for_messages(); }

 private:
  template <typename Call>
  static Expected<void> received(const Queue& queue, const View& to, const Call& call) {
    std::vector<float> staged(static_cast<std::size_t>(to.size()));
    auto done = call(staged.data());
    upload(queue, to, staged);
    return done;
  }

  Transport& host_;
};

}  // namespace

std::unique_ptr<DeviceTransport> make_staged_transport(Transport& host) {
  return std::make_unique<StagedTransport>(host);
}

}  // namespace trainyard
