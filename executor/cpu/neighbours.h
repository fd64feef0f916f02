// The other ranks of a node, as far as they are in the way: processes that train small networks of
// their own for as long as this lives, so that what one rank measures meanwhile is what it attains
// beside them (caches, memory, clock). They end with the process that started them.
#pragma once

#include <sys/types.h>

#include <vector>

namespace trainyard {

class Neighbours {
 public:
  // Requires: the process has one thread. Fewer where the system has no room for more.
  explicit Neighbours(int count);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  int count() const { return static_cast<int>(processes_.size()); }

 private:
  std::vector<pid_t> processes_;
};

}  // namespace trainyard
