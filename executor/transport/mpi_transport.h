// Ranks as MPI processes (MPI 3.1), with one communicator for each group that the program uses,
// made once. Only MpiWorld initialises the library.
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

  // Ends all processes, this one included, with an exit status.
  static void abort(int status);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  int rank_ = 0, ranks_ = 1;
};

// Collective over all processes. The first `layout.ranks()` of them become the program's ranks; the
// others get a null pointer. `call` says at any time which call the rank is in.
std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, const Program& program,
                                              const RankLayout& layout,
                                              std::atomic<RankCall>& call);

}  // namespace trainyard
