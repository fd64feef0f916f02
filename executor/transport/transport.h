// How the ranks of the CPU backend reach each other: numbers in arrays, among the members of a
// group in their order. One implementation speaks MPI, one TCP, one is the only rank that there is,
// and one has local copies in the place of its peers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/transport/rank_call.h"
#include "model/expected.h"
#include "model/program/rank_layout.h"

namespace trainyard {

// Elements for each member of a group.
using Counts = std::vector<std::int64_t>;

// How the error of a call ends whose peer has closed its connection.
inline constexpr std::string_view kHasGone = "has gone";

enum class RingWay { on, back };

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // In place.
  virtual Expected<void> all_reduce(Group group, float* numbers, std::int64_t count,
                                    Reduction how) = 0;
  virtual Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                        float* mine) = 0;
  virtual Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                                    float* all) = 0;
  virtual Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts,
                                    float* from, const Counts& from_counts) = 0;
  // On: to the next member, from the one before. Back: the other way round.
  virtual Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                              std::int64_t count) = 0;
  // Messages of one way arrive in their order. A send keeps a copy and returns at once.
  virtual Expected<void> send(int to, int way, const float* numbers, std::int64_t count) = 0;
  virtual Expected<void> receive(int from, int way, float* numbers, std::int64_t count) = 0;
  // Between operations: what was sent makes headway, where only the rank's own calls move it.
  virtual void move_messages() {}
  // Until every message sent has left.
  virtual Expected<void> wait_for_messages() = 0;
  // From one rank to all.
  virtual Expected<void> broadcast(std::string& bytes, int from) = 0;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 protected:
  Transport(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

 private:
  int rank_ = 0, ranks_ = 1;
};

// A single rank; every group has one member.
std::unique_ptr<Transport> make_single_rank_transport();
// One of many ranks, whose peers are replaced by local copies of as many bytes: its times are real,
// its numbers are not. Requires: `layout` outlives it.
std::unique_ptr<Transport> make_stand_in_transport(const RankLayout& layout, int rank);

}  // namespace trainyard
