// The space of a search, laid out for speed: degrees in the outer loops with everything that cannot
// be legal left out (indivisible heads, batches, experts), and inside them *shapes*, the ways to
// cut a step into micro-batches and pipeline chunks, which depend on p and D only.
//
// Plans that cannot differ appear once: without a pipeline neither schedule nor virtual stages
// matter, over one rank no ZeRO stage does, and selective recomputation of the attention core does
// nothing under flash attention.
#pragma once

#include <cstdint>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "planner/search_space.h"

namespace trainyard {

struct Shape {
  int micro_batch = 1;
  int virtual_stages = 1;
  const Schedule* schedule = nullptr;
};

struct Degrees {
  int tensor = 1;
  int context = 1;
  int pipeline = 1;
  int data = 1;
  int expert = 1;
  int expert_tensor = 1;
  std::size_t shapes = 0;  // index into Enumeration::shapes
};

struct Enumeration {
  std::vector<Degrees> degrees;            // those inside an NVLink domain first
  std::vector<std::vector<Shape>> shapes;  // one list for every p and D that occurs
  std::vector<Recompute> recomputes;
  std::vector<int> zero_stages;
  bool has_experts = false;

  // ZeRO stages that differ for these degrees.
  std::vector<int> zero_stages_of(const Degrees& degrees) const;
  std::int64_t plans_per_zero_stage(const Degrees& degrees) const;
  std::int64_t size() const;
};

Enumeration enumerate(const PreparedJob& job, const SearchSpace& space);

// The names of the dimensions, as documents spell them.
std::vector<std::string> searched_dimensions();

// All divisors, ascending. Requires: number > 0.
std::vector<int> divisors(std::int64_t number);

}  // namespace trainyard
