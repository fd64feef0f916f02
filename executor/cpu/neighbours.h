// Stand-ins for the other ranks of a node: processes that train small networks of their own for as
// long as this object lives, so that what one rank measures meanwhile is what it attains beside
// others that share caches, memory and clock. They end with the process that started them.
#pragma once

#include <sys/types.h>

#include <vector>

namespace trainyard {

class Neighbours {
 public:
  // Starts `count` processes, or fewer where the system allows no more. Requires: the calling
  // process has one thread.
  explicit Neighbours(int count);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  int count() const { return static_cast<int>(processes_.size()); }

 private:
  std::vector<pid_t> processes_;
};

}  // namespace trainyard
