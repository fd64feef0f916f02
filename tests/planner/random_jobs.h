// Small random jobs whose whole search space can be listed: dense and MoE networks on four or eight
// devices in nodes of one, two or four. The memory of a device ranges from about a third of the
// states of the whole network to ten times as much.
#pragma once

#include <initializer_list>
#include <random>

#include "model/job.h"

namespace trainyard {

class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  Job next();

 private:
  int pick(std::initializer_list<int> values);

  std::mt19937 random_;
};

}  // namespace trainyard
