// Small random jobs whose whole space can be listed: dense and MoE networks, one to eight devices
// in nodes of one to four, memory from a quarter of what the states take to more than all of it.
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
