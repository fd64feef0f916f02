// Ranks as MPI processes (MPI 3.1): a communicator for each group that the program uses, made once.
// The library is initialised by the first MpiWorld and by nothing else.
#pragma once

#include <atomic>
#include <memory>

#include "executor/transport/transport.h"
#include "model/program/program.h"

namespace trainyard {

class MpiWorld {
 public:
  MpiWorld();  // collective over all processes that were started together
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  // Ends all of them, this one too, with an exit status.
  static void abort(int status);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  int rank_ = 0, ranks_ = 1;
};

// Collective over all processes: the first `layout.ranks()` of them become the program's ranks, the
// others get nothing. `call` says at any time what the rank is in.
std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, const Program& program,
                                              const RankLayout& layout,
                                              std::atomic<RankCall>& call);

}  // namespace trainyard
