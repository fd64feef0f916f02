// The boards of the ranks of one host where no supervisor looks at them: each rank puts its own
// into a folder that all of them know, so that whoever finds the run at a standstill, or a peer
// gone, sees what the others were at, and one rank says it for all.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "executor/supervision/board.h"
#include "executor/transport/transport.h"

namespace trainyard {

// What is wrong with a run, as the first rank of a host to find it says.
struct Verdict {
  std::string sentence;
  bool is_own = true;  // of this rank; else another one has said it
};

// From any thread.
class HostBoards {
 public:
  // Collective over the ranks of `transport`: the folder's name is rank 0's, and each host makes
  // one of that name. `own`: the file of this rank's board.
  Expected<void> join(Transport& transport, const std::filesystem::path& own);

  // What all that are seen have begun (BoardHead::beats).
  std::int64_t beats();
  // By rank, those of other hosts without one; of none before it has joined. Whoever was seen once
  // stays, also when it has left.
  std::string said_of(const std::function<std::string(const Boards& boards)>& say);

  // This rank's sentence, unless another rank of this host had one before it.
  Verdict agree_on(const std::string& sentence);

  // Takes this rank's board out; the last one that runs removes the folder.
  void leave();

 private:
  void look();

  std::mutex mutex_;
  std::filesystem::path folder_;  // empty: not joined
  int rank_ = 0;
  Boards boards_;
};

}  // namespace trainyard
