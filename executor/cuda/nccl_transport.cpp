#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "executor/cuda/device_transport.h"
#include "executor/cuda/status.h"
#include "executor/memberships.h"
#include "model/program/view.h"

namespace trainyard {
namespace {

// A queue of messages: sending stage, receiving stage and pass.
using Way = std::tuple<int, int, int>;

std::set<Way> ways_in(const Program& program) {
  std::set<Way> ways;
  for (int stage = 0; stage < static_cast<int>(program.stages.size()); ++stage) {
    for (const IssuedOperation issued : operations_of(program, stage)) {
      if (issued.operation->kind != OperationKind::send) continue;
      ways.insert({stage, issued.call->peer, static_cast<int>(issued.operation->phase)});
    }
  }
  return ways;
}

// Numbers in 8 bits are moved as bytes, and never summed up.
ncclDataType_t type_of(const View& view) {
  switch (view.type) {
    case ElementType::bf16:
      return ncclBfloat16;
    case ElementType::f16:
      return ncclHalf;
    case ElementType::u8:
    case ElementType::e4m3:
    case ElementType::e5m2:
      return ncclUint8;
    case ElementType::f32:
      break;
  }
  return ncclFloat32;
}

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

class NcclTransport final : public DeviceTransport {
 public:
  NcclTransport(const Program& program, const RankLayout& layout, Transport& host)
      : layout_(layout), host_(host), rank_(host.rank()) {
    groups_.fill(nullptr);
    error_ = connect(program);
  }
  ~NcclTransport() override {
    // Aborts the communicators: destroying them would wait for a peer that has gone, and the work
    // is done by now or lost. All are aborted at once, because an abort waits for what runs on the
    // device, also for other communicators' kernels.
    ncclGroupStart();
    for (ncclComm_t communicator : all_) ncclCommAbort(communicator);
    ncclGroupEnd();
  }
  const Expected<void>& connected() const { return error_; }

  Expected<void> all_reduce(const Queue& queue, Group group, const View& numbers,
                            Reduction how) override {
    return checked(
        ncclAllReduce(numbers.data, numbers.data, as_size(numbers.size()), type_of(numbers),
                      how == Reduction::max ? ncclMax : ncclSum, of(group), queue.stream),
        "ncclAllReduce");
  }

  // Parts of equal size go in one call. If the last ones are shorter, each part is reduced on its
  // own.
  Expected<void> reduce_scatter(const Queue& queue, Group group, const View& all,
                                const Counts& counts, const View& mine) override {
    if (are_alike(counts)) {
      return checked(ncclReduceScatter(all.data, mine.data, as_size(counts.front()), type_of(all),
                                       ncclSum, of(group), queue.stream),
                     "ncclReduceScatter");
    }
    return together("ncclReduce", [&] {
      std::int64_t first = 0;
      for (std::size_t member = 0; member < counts.size(); ++member) {
        const View part = all.from(first, counts[member]);
        note(ncclReduce(part.data, mine.data, as_size(counts[member]), type_of(all), ncclSum,
                        static_cast<int>(member), of(group), queue.stream));
        first += counts[member];
      }
    });
  }

  Expected<void> all_gather(const Queue& queue, Group group, const View& mine, const Counts& counts,
                            const View& all) override {
    if (are_alike(counts)) {
      return checked(ncclAllGather(mine.data, all.data, as_size(counts.front()), type_of(all),
                                   of(group), queue.stream),
                     "ncclAllGather");
    }
    return together("ncclBroadcast", [&] {
      std::int64_t first = 0;
      for (std::size_t member = 0; member < counts.size(); ++member) {
        const View part = all.from(first, counts[member]);
        note(ncclBroadcast(mine.data, part.data, as_size(counts[member]), type_of(all),
                           static_cast<int>(member), of(group), queue.stream));
        first += counts[member];
      }
    });
  }

  Expected<void> all_to_all(const Queue& queue, Group group, const View& to,
                            const Counts& to_counts, const View& from,
                            const Counts& from_counts) override {
    return together("ncclSend", [&] {
      std::int64_t sent = 0, received = 0;
      for (std::size_t member = 0; member < to_counts.size(); ++member) {
        const auto peer = static_cast<int>(member);
        const View out = to.from(sent, to_counts[member]);
        const View in = from.from(received, from_counts[member]);
        if (out.size() > 0) {
          note(ncclSend(out.data, as_size(out.size()), type_of(to), peer, of(group), queue.stream));
        }
        if (in.size() > 0) {
          note(ncclRecv(in.data, as_size(in.size()), type_of(from), peer, of(group), queue.stream));
        }
        sent += out.size();
        received += in.size();
      }
    });
  }

  Expected<void> pass(const Queue& queue, Group group, RingWay way, const View& mine,
                      const View& received) override {
    const GroupMembers members = layout_.members(group, rank_);
    const int self = members.index_of(rank_), size = members.size();
    const int next = (self + 1) % size, previous = (self + size - 1) % size;
    const bool on = way == RingWay::on;
    return together("ncclSend", [&] {
      note(ncclSend(mine.data, as_size(mine.size()), type_of(mine), on ? next : previous, of(group),
                    queue.stream));
      note(ncclRecv(received.data, as_size(received.size()), type_of(received),
                    on ? previous : next, of(group), queue.stream));
    });
  }

  // In a way's communicator the sender is rank 0 and the receiver rank 1.
  Expected<void> send(const Queue& queue, int to, int way, const View& numbers) override {
    return checked(ncclSend(numbers.data, as_size(numbers.size()), type_of(numbers), 1,
                            of_way(rank_, to, way), queue.stream),
                   "ncclSend");
  }
  Expected<void> receive(const Queue& queue, int from, int way, const View& numbers) override {
    return checked(ncclRecv(numbers.data, as_size(numbers.size()), type_of(numbers), 0,
                            of_way(from, rank_, way), queue.stream),
                   "ncclRecv");
  }

  Expected<void> at_once(const std::function<Expected<void>()>& calls) override {
    note(ncclGroupStart());
    auto done = calls();
    note(ncclGroupEnd());
    return done ? checked(result_, "ncclGroupEnd") : done;
  }

  Expected<void> check() override {
    for (ncclComm_t communicator : all_) {
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(communicator, &state);
      if (state == ncclSuccess || state == ncclInProgress) continue;
      error_ = failure("", fmt::format("NCCL failed: {}", ncclGetErrorString(state)));
      return error_;
    }
    return {};
  }
  Expected<void> wait_for_messages() override { return {}; }

 private:
  Expected<void> connect(const Program& program) {
    ncclUniqueId id{};
    if (rank_ == 0) note(ncclGetUniqueId(&id));
    std::string bytes(id.internal, sizeof(id.internal));
    if (auto told = host_.broadcast(bytes, 0); !told) return told;
    bytes.copy(id.internal, sizeof(id.internal));
    ncclComm_t world = nullptr;
    note(ncclCommInitRank(&world, layout_.ranks(), id, rank_));
    if (result_ != ncclSuccess) return checked(result_, "ncclCommInitRank");
    all_.push_back(world);
    split_groups(world, program);
    split_ways(world, program);
    if (result_ != ncclSuccess) return checked(result_, "ncclCommSplit");
    return connect_ways();
  }

  void split_groups(ncclComm_t world, const Program& program) {
    for (const Membership& of : memberships(program, layout_, rank_)) {
      groups_[static_cast<std::size_t>(of.group)] =
          split(world, of.color < 0 ? NCCL_SPLIT_NOCOLOR : of.color, of.place);
    }
    groups_[static_cast<std::size_t>(Group::all)] = world;
  }

  void split_ways(ncclComm_t world, const Program& program) {
    const int stage = layout_.coordinates(rank_).stage;
    for (const auto& [from, to, pass] : ways_in(program)) {
      const bool mine = stage == from || stage == to;
      const int color = mine ? layout_.in_stage(rank_, from) : NCCL_SPLIT_NOCOLOR;
      ways_[{from, to, pass}] = split(world, color, stage == from ? 0 : 1);
    }
  }

  // NCCL connects two ranks in the call of their first message, which waits for the peer's call:
  // two ranks that send to each other before they receive would wait for ever. So all ranks
  // exchange a byte on each way here, in the same order.
  Expected<void> connect_ways() {
    if (ways_.empty()) return {};
    void* byte = nullptr;
    CudaStatus status;
    status.check(cudaMalloc(&byte, 1), "cudaMalloc");
    const int stage = layout_.coordinates(rank_).stage;
    for (const auto& [way, pair] : ways_) {
      if (pair == nullptr || !status.ok()) continue;
      note(stage == std::get<0>(way) ? ncclSend(byte, 1, ncclUint8, 1, pair, nullptr)
                                     : ncclRecv(byte, 1, ncclUint8, 0, pair, nullptr));
    }
    status.check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    status.check(cudaFree(byte), "cudaFree");
    if (!status.ok()) return failure("", status.message());
    return checked(result_, "ncclSend");
  }

  ncclComm_t split(ncclComm_t world, int color, int key) {
    ncclComm_t made = nullptr;
    note(ncclCommSplit(world, color, key, &made, nullptr));
    if (made != nullptr) all_.push_back(made);
    return made;
  }

  ncclComm_t of(Group group) const { return groups_[static_cast<std::size_t>(group)]; }
  ncclComm_t of_way(int from, int to, int pass) const {
    return ways_.at({layout_.coordinates(from).stage, layout_.coordinates(to).stage, pass});
  }

  static bool are_alike(const Counts& counts) {
    return std::all_of(counts.begin(), counts.end(),
                       [&](std::int64_t count) { return count == counts.front(); });
  }

  // Keeps the first failure of several calls.
  void note(ncclResult_t result) {
    if (result_ == ncclSuccess) result_ = result;
  }
  template <typename Calls>
  Expected<void> together(const char* call, const Calls& calls) {
    note(ncclGroupStart());
    calls();
    note(ncclGroupEnd());
    return checked(result_, call);
  }
  static Expected<void> checked(ncclResult_t result, const char* call) {
    if (result == ncclSuccess) return {};
    return failure("", fmt::format("{} failed: {}", call, ncclGetErrorString(result)));
  }

  const RankLayout& layout_;
  Transport& host_;
  int rank_;
  ncclResult_t result_ = ncclSuccess;
  Expected<void> error_;
  std::vector<ncclComm_t> all_;
  std::array<ncclComm_t, kGroupKinds> groups_{};
  std::map<Way, ncclComm_t> ways_;
};

}  // namespace

Expected<std::unique_ptr<DeviceTransport>> make_nccl_transport(const Program& program,
                                                               const RankLayout& layout,
                                                               Transport& host) {
  auto transport = std::make_unique<NcclTransport>(program, layout, host);
  if (!transport->connected()) return tl::unexpected(transport->connected().error());
  return transport;
}

std::string nccl_version() {
  int number = 0;
  if (ncclGetVersion(&number) != ncclSuccess) return "";
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace trainyard
