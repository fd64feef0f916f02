#include "executor/transport/mpi_transport.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <list>
#include <utility>

#include "executor/memberships.h"
#include "executor/transport/pieces.h"

namespace trainyard {
namespace {

// Counts and offsets of the members of a group as MPI's ints; their total must fit an int too.
struct Pieces {
  std::vector<int> counts, offsets;
};
Expected<Pieces> pieces_of(const Counts& counts) {
  Pieces pieces;
  std::int64_t next = 0;
  for (const std::int64_t count : counts) {
    pieces.counts.push_back(static_cast<int>(count));
    pieces.offsets.push_back(static_cast<int>(std::exchange(next, next + count)));
  }
  if (next <= kLargestCount) return pieces;
  return failure(
      "", fmt::format("a collective of {} numbers: MPI counts up to {}", next, kLargestCount));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm world, int rank, const Program& program, const RankLayout& layout,
               std::atomic<RankCall>& call)
      : Transport(rank, layout.ranks()), world_(world), call_(call) {
    communicators_.fill(MPI_COMM_NULL);
    for (const Membership& of : memberships(program, layout, rank)) {
      MPI_Comm_split(world_, of.color < 0 ? MPI_UNDEFINED : of.color, of.place,
                     &communicators_[static_cast<std::size_t>(of.group)]);
    }
    communicators_[static_cast<std::size_t>(Group::all)] = world_;
  }

  ~MpiTransport() override {
    for (MPI_Comm& communicator : communicators_) {
      if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
    }
  }

  Expected<void> all_reduce(Group group, float* numbers, std::int64_t size,
                            Reduction how) override {
    const WithinCall within(call_, RankCall::all_reduce);
    return in_pieces(size, kLargestCount, [&](std::int64_t first, int count) {
      return checked(MPI_Allreduce(MPI_IN_PLACE, numbers + first, count, MPI_FLOAT,
                                   how == Reduction::max ? MPI_MAX : MPI_SUM, of(group)));
    });
  }

  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    const WithinCall within(call_, RankCall::reduce_scatter);
    const auto pieces = pieces_of(counts);
    if (!pieces) return tl::unexpected(pieces.error());
    return checked(
        MPI_Reduce_scatter(all, mine, pieces->counts.data(), MPI_FLOAT, MPI_SUM, of(group)));
  }

  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    const WithinCall within(call_, RankCall::all_gather);
    const auto pieces = pieces_of(counts);
    if (!pieces) return tl::unexpected(pieces.error());
    int self = 0;
    MPI_Comm_rank(of(group), &self);
    return checked(MPI_Allgatherv(mine, pieces->counts[static_cast<std::size_t>(self)], MPI_FLOAT,
                                  all, pieces->counts.data(), pieces->offsets.data(), MPI_FLOAT,
                                  of(group)));
  }

  Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    const WithinCall within(call_, RankCall::all_to_all);
    const auto sent = pieces_of(to_counts), received = pieces_of(from_counts);
    if (!sent) return tl::unexpected(sent.error());
    if (!received) return tl::unexpected(received.error());
    return checked(MPI_Alltoallv(to, sent->counts.data(), sent->offsets.data(), MPI_FLOAT, from,
                                 received->counts.data(), received->offsets.data(), MPI_FLOAT,
                                 of(group)));
  }

  Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                      std::int64_t size) override {
    const WithinCall within(call_, RankCall::exchange_ring);
    int self = 0, members = 1;
    MPI_Comm_rank(of(group), &self);
    MPI_Comm_size(of(group), &members);
    int to = (self + 1) % members, from = (self + members - 1) % members;
    if (way == RingWay::back) std::swap(to, from);
    return in_pieces(size, kLargestCount, [&](std::int64_t first, int count) {
      return checked(MPI_Sendrecv(mine + first, count, MPI_FLOAT, to, 0, received + first, count,
                                  MPI_FLOAT, from, 0, of(group), MPI_STATUS_IGNORE));
    });
  }

  Expected<void> send(int to, int way, const float* numbers, std::int64_t size) override {
    const WithinCall within(call_, RankCall::send);
    move_messages();
    return in_pieces(size, kLargestCount, [&](std::int64_t first, int count) {
      Message& message = messages_.emplace_back();
      message.numbers.assign(numbers + first, numbers + first + count);
      return checked(
          MPI_Isend(message.numbers.data(), count, MPI_FLOAT, to, way, world_, &message.request));
    });
  }

  Expected<void> receive(int from, int way, float* numbers, std::int64_t size) override {
    const WithinCall within(call_, RankCall::receive);
    return in_pieces(size, kLargestCount, [&](std::int64_t first, int count) {
      return checked(
          MPI_Recv(numbers + first, count, MPI_FLOAT, from, way, world_, MPI_STATUS_IGNORE));
    });
  }

  void move_messages() override {
    std::erase_if(messages_, [](Message& message) {
      int left = 0;
      MPI_Test(&message.request, &left, MPI_STATUS_IGNORE);
      return left != 0;
    });
  }

  Expected<void> wait_for_messages() override {
    const WithinCall within(call_, RankCall::wait);
    for (Message& message : messages_) {
      if (auto done = checked(MPI_Wait(&message.request, MPI_STATUS_IGNORE)); !done) return done;
    }
    messages_.clear();
    return {};
  }

  Expected<void> broadcast(std::string& bytes, int from) override {
    const WithinCall within(call_, RankCall::broadcast);
    auto size = static_cast<std::uint64_t>(bytes.size());
    if (auto done = checked(MPI_Bcast(&size, 1, MPI_UINT64_T, from, world_)); !done) return done;
    bytes.resize(size);
    return in_pieces(
        static_cast<std::int64_t>(size), kLargestCount, [&](std::int64_t first, int count) {
          return checked(MPI_Bcast(bytes.data() + first, count, MPI_BYTE, from, world_));
        });
  }

 private:
  struct Message {
    std::vector<float> numbers;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm of(Group group) const { return communicators_[static_cast<std::size_t>(group)]; }

  Expected<void> checked(int status) const {
    if (status == MPI_SUCCESS) return {};
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(status, text.data(), &length);
    return failure("",
                   fmt::format("{} failed: {}", name_of(call_.load()),
                               std::string_view(text.data(), static_cast<std::size_t>(length))));
  }

  MPI_Comm world_;
  std::atomic<RankCall>& call_;
  std::array<MPI_Comm, kGroupKinds> communicators_{};
  std::list<Message> messages_;
};

}  // namespace

MpiWorld::MpiWorld() {
  // One thread at a time communicates; in a calibration it is not always the first thread.
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
}

MpiWorld::~MpiWorld() { MPI_Finalize(); }

void MpiWorld::abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, const Program& program,
                                              const RankLayout& layout,
                                              std::atomic<RankCall>& call) {
  const bool takes_part = world.rank() < layout.ranks();
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world.rank(), &communicator);
  if (!takes_part) return nullptr;
  return std::make_unique<MpiTransport>(communicator, world.rank(), program, layout, call);
}

}  // namespace trainyard
