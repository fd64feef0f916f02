// The boards of the ranks of one host where no supervisor watches them. Each rank puts its own into
// a folder that all of them know. A rank that finds the run at a standstill, or a peer gone, can
// then see what the others were doing, and one rank reports it for all.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "executor/supervision/board.h"
#include "executor/transport/transport.h"

namespace trainyard {

// What is wrong with a run, in the words of the first rank of the host that found it.
struct Verdict {
  std::string sentence;
  bool is_own = true;  // this rank's own sentence; otherwise another rank has reported it
};

// All functions may be called from any thread.
class HostBoards {
 public:
  // Shares this rank's board, whose file is `own`. Collective over the ranks of `transport`: rank 0
  // chooses the folder's name, and each host makes a folder of that name.
  Expected<void> join(Transport& transport, const std::filesystem::path& own);

  // Sum of the progress of all ranks seen (BoardHead::beats).
  std::int64_t beats();
  // What `say` makes of the boards, which are empty for ranks of other hosts; there are none before
  // join(). A rank that was seen once stays in the list after it has left.
  std::string said_of(const std::function<std::string(const Boards& boards)>& say);

  // Settles on one sentence for the host: this rank's, unless another rank had one before.
  Verdict agree_on(const std::string& sentence);

  // Removes this rank's board; the last rank that runs removes the folder.
  void leave();

 private:
  void look();

  std::mutex mutex_;
  std::filesystem::path folder_;  // empty: has not joined
  int rank_ = 0;
  Boards boards_;
};

}  // namespace trainyard
