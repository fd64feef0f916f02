// How ranks exchange arrays in the host's memory. A collective joins the members of a group, in the
// group's order. There are four implementations: MPI, TCP, a single rank, and a stand-in that makes
// local copies in the place of the peers' messages.
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

// The end of the error message of a call whose peer has closed its connection.
inline constexpr std::string_view kHasGone = "has gone";

enum class RingWay { on, back };

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Reduces `count` numbers in place.
  virtual Expected<void> all_reduce(Group group, float* numbers, std::int64_t count,
                                    Reduction how) = 0;
  virtual Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                        float* mine) = 0;
  virtual Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                                    float* all) = 0;
  virtual Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts,
                                    float* from, const Counts& from_counts) = 0;
  // One step around a ring. On: sends to the next member and receives from the one before; back:
  // the other way round.
  virtual Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                              std::int64_t count) = 0;
  // Point to point. `way` is a tag: messages with the same one arrive in the order in which they
  // were sent. A send keeps a copy and returns at once.
  virtual Expected<void> send(int to, int way, const float* numbers, std::int64_t count) = 0;
  virtual Expected<void> receive(int from, int way, float* numbers, std::int64_t count) = 0;
  // Called between operations: lets sent messages make progress, where only the rank's own calls
  // do.
  virtual void move_messages() {}
  // Waits until every message sent has left.
  virtual Expected<void> wait_for_messages() = 0;
  // Sends `bytes` of rank `from` to all ranks.
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
// One of many ranks without its peers: local copies of as many bytes replace the messages. Its
// times are real, its numbers are not. Requires: `layout` outlives it.
std::unique_ptr<Transport> make_stand_in_transport(const RankLayout& layout, int rank);

}  // namespace trainyard
