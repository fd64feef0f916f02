// Compares what ranks with one device each exchange by NCCL with an exchange through host memory:
// every call of executor/cuda/device_transport.h, every type, equal and unequal parts. Two ranks
// run as threads; with fewer GPUs there is nothing to compare. Numbers are small integers, so that
// sums are exact in every type and order.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "executor/cuda/compute.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_transport.h"
#include "model/program/lower.h"
#include "tests/executor/transport/socket_ranks.h"
#include "tests/model/program/tiny.h"
#ifdef TRAINYARD_EMULATED
#include "tests/gpu/emulated/runtime.h"
#endif

namespace trainyard {
namespace {

constexpr int kRanks = 2;
constexpr ElementType kNumbers[] = {ElementType::f32, ElementType::bf16, ElementType::f16};
constexpr ElementType kAll[] = {ElementType::f32, ElementType::bf16, ElementType::f16,
                                ElementType::u8};

// One rank with its device, and both transports to the other rank.
struct Rank {
  Rank(Transport& the_host, const Program& program, const RankLayout& layout, Group the_group)
      : host(the_host), group(the_group), staged(make_staged_transport(the_host)) {
    status.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags");
    auto made = make_nccl_transport(program, layout, the_host);
    EXPECT_TRUE(made) << made.error().message;
    if (made) nccl = *std::move(made);
  }
  ~Rank() {
    nccl.reset();
    cudaStreamDestroy(stream);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Numbers of this rank; a type of 8 bits can also represent them.
  std::vector<float> numbers(std::int64_t count, int seed) const {
    std::vector<float> all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(static_cast<float>((i * 7 + seed + 31 * host.rank()) % 61));
    }
    return all;
  }

  Transport& host;
  Group group;
  CudaStatus status;
  cudaStream_t stream = nullptr;
  DeviceMemory memory{status, host.rank(), 1 << 20};
  std::unique_ptr<DeviceTransport> staged, nccl;
};

// Runs call(transport, given, got) by NCCL and through the host, and expects the same result.
template <typename Call>
void expect_alike(Rank& rank, ElementType type, std::int64_t given, std::int64_t got,
                  const char* what, const Call& call) {
  if (rank.nccl == nullptr) return;
  const Queue queue{rank.status, rank.stream, rank.memory.pool()};
  std::vector<float> found[2];
  for (const bool by_nccl : {false, true}) {
    const Scratch from(queue, given, 1, type), into(queue, got, 1, type);
    upload(queue, *from, rank.numbers(given, 3));
    upload(queue, *into, rank.numbers(got, 5));
    const Expected<void> done = call(by_nccl ? *rank.nccl : *rank.staged, queue, *from, *into);
    ASSERT_TRUE(done) << what << ": " << done.error().message;
    found[by_nccl ? 1 : 0] = downloaded(queue, *into);
    // Messages through the host move only while their rank is in one of its calls.
    ASSERT_TRUE(rank.staged->wait_for_messages());
    const Expected<void> well = rank.nccl->check();
    ASSERT_TRUE(well) << what << ": " << well.error().message;
  }
  ASSERT_TRUE(rank.status.ok()) << what << ": " << rank.status.message();
  EXPECT_EQ(found[1], found[0]) << what << ", type " << static_cast<int>(type) << ", rank "
                                << rank.host.rank();
}

// The transport of the host knows only the group of all ranks.
Group of(const DeviceTransport& transport, const Rank& rank) {
  return &transport == rank.nccl.get() ? rank.group : Group::all;
}

void expect_sums(Rank& rank) {
  for (const ElementType type : kNumbers) {
    for (const Reduction how : {Reduction::sum, Reduction::max}) {
      expect_alike(rank, type, 0, 37, "all-reduce",
                   [&](auto& by, const Queue& queue, const View&, const View& all) {
                     return by.all_reduce(queue, of(by, rank), all, how);
                   });
    }
    for (const Counts& counts : {Counts{20, 20}, Counts{20, 13}, Counts{5, 0}}) {
      const std::int64_t mine = counts[static_cast<std::size_t>(rank.host.rank())];
      expect_alike(rank, type, counts[0] + counts[1], mine, "reduce-scatter",
                   [&](auto& by, const Queue& queue, const View& all, const View& part) {
                     return by.reduce_scatter(queue, of(by, rank), all, counts, part);
                   });
    }
  }
}

void expect_moves(Rank& rank) {
  const int self = rank.host.rank();
  for (const ElementType type : kAll) {
    for (const Counts& counts : {Counts{20, 20}, Counts{20, 13}, Counts{5, 0}}) {
      const std::int64_t mine = counts[static_cast<std::size_t>(self)];
      expect_alike(rank, type, mine, counts[0] + counts[1], "all-gather",
                   [&](auto& by, const Queue& queue, const View& part, const View& all) {
                     return by.all_gather(queue, of(by, rank), part, counts, all);
                   });
    }
    // Counts by sender and receiver.
    for (const auto& moved :
         {std::array{Counts{4, 4}, Counts{4, 4}}, std::array{Counts{3, 11}, Counts{0, 7}}}) {
      const auto me = static_cast<std::size_t>(self);
      const Counts to = moved.at(me), from = {moved[0].at(me), moved[1].at(me)};
      expect_alike(rank, type, to[0] + to[1], from[0] + from[1], "all-to-all",
                   [&](auto& by, const Queue& queue, const View& sent, const View& received) {
                     return by.all_to_all(queue, of(by, rank), sent, to, received, from);
                   });
    }
    for (const RingWay way : {RingWay::on, RingWay::back}) {
      expect_alike(rank, type, 23, 23, "pass",
                   [&](auto& by, const Queue& queue, const View& mine, const View& other) {
                     return by.pass(queue, of(by, rank), way, mine, other);
                   });
    }
  }
}

// Messages from the first stage to the second in the forward pass, and back in the pass of
// gradients.
void expect_messages(Rank& rank) {
  for (const ElementType type : kAll) {
    for (const Phase pass : {Phase::forward, Phase::input_gradient}) {
      const int sender = pass == Phase::forward ? 0 : 1, way = static_cast<int>(pass);
      for (const std::int64_t count : {1, 100}) {
        expect_alike(rank, type, count, count, "message",
                     [&](auto& by, const Queue& queue, const View& sent, const View& received) {
                       return rank.host.rank() == sender ? by.send(queue, 1 - sender, way, sent)
                                                         : by.receive(queue, sender, way, received);
                     });
      }
    }
  }
}

class NcclTransport : public testing::Test {
 protected:
  void SetUp() override {
#ifdef TRAINYARD_EMULATED
    set_emulated_devices(kRanks);
#endif
    if (nccl_version().empty()) GTEST_SKIP() << "built without NCCL";
    if (cuda_devices() < kRanks) {
      GTEST_SKIP() << "NCCL was not called: needs two GPUs, there is " << cuda_devices();
    }
  }
  void TearDown() override {
#ifdef TRAINYARD_EMULATED
    set_emulated_devices(1);
    set_emulated_nccl_error(false);
#endif
  }

  // Calls work(rank) on both ranks, which are connected as in a plan.
  template <typename Work>
  static void on_ranks(const PlanRequest& request, Group group, const Work& work) {
    const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
    const auto program = lower(setting.model, setting.training, setting.plan);
    ASSERT_TRUE(program);
    const RankLayout layout(setting.plan, setting.model.kv_heads);
    ASSERT_EQ(layout.ranks(), kRanks);
    on_socket_ranks(kRanks, [&](Transport& host) {
      ASSERT_EQ(cudaSetDevice(host.rank()), cudaSuccess);
      Rank rank(host, *program, layout, group);
      work(rank);
    });
  }
};

PlanRequest stages() {
  PlanRequest request;
  request.pipeline_parallel = kRanks;
  request.data_parallel = 1;
  return request;
}
PlanRequest tensor_ranks() {
  PlanRequest request;
  request.tensor_parallel = kRanks;
  request.data_parallel = 1;
  return request;
}

TEST_F(NcclTransport, MovesAmongAllRanksWhatTheHostMoves) {
  on_ranks(stages(), Group::all, [](Rank& rank) {
    expect_sums(rank);
    expect_moves(rank);
  });
}

TEST_F(NcclTransport, MovesInAGroupOfThePlanWhatTheHostMoves) {
  on_ranks(tensor_ranks(), Group::tensor, [](Rank& rank) {
    expect_sums(rank);
    expect_moves(rank);
  });
}

TEST_F(NcclTransport, SendsBetweenStagesWhatTheHostSends) {
  on_ranks(stages(), Group::all, [](Rank& rank) { expect_messages(rank); });
}

// As in schedules whose micro-batches go both ways. NCCL connects two ranks in the call of their
// first message, which waits for the peer's call, so that call comes before these.
TEST_F(NcclTransport, SendsBothWaysBeforeEitherReceives) {
  PlanRequest both_ways = stages();
  both_ways.schedule = "dualpipe";
  on_ranks(both_ways, Group::all, [](Rank& rank) {
    if (rank.nccl == nullptr) return;
    const int other = 1 - rank.host.rank(), way = static_cast<int>(Phase::forward);
    cudaStream_t sending = nullptr;
    rank.status.check(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags");
    const Queue sends{rank.status, sending, rank.memory.pool()};
    const Queue receives{rank.status, rank.stream, rank.memory.pool()};
    const std::vector<float> mine = rank.numbers(23, 3);
    std::vector<float> theirs = mine;
    ASSERT_TRUE(rank.host.send(other, way, mine.data(), 23));
    ASSERT_TRUE(rank.host.receive(other, way, theirs.data(), 23));
    {
      const Scratch from(sends, 23, 1, ElementType::f32), into(receives, 23, 1, ElementType::f32);
      upload(sends, *from, mine);
      ASSERT_TRUE(rank.nccl->send(sends, other, way, *from));
      ASSERT_TRUE(rank.nccl->receive(receives, other, way, *into));
      EXPECT_EQ(downloaded(receives, *into), theirs);
    }
    EXPECT_TRUE(rank.status.ok()) << rank.status.message();
    cudaStreamSynchronize(sending);
    cudaStreamDestroy(sending);
  });
}

#ifdef TRAINYARD_EMULATED
// A real GPU's library cannot be made to fail in this way.
TEST_F(NcclTransport, TellsOfAnAsynchronousErrorAndAbortsEveryCommunicator) {
  const int before = aborted_emulated_communicators();
  on_ranks(stages(), Group::all, [](Rank& rank) {
    set_emulated_nccl_error(true);
    const auto failed = rank.nccl->check();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "NCCL failed: an error");
  });
  // On each rank: the communicator of all ranks, and at least one for each direction.
  EXPECT_GE(aborted_emulated_communicators() - before, 2 * 3);
}
#endif

}  // namespace
}  // namespace trainyard
