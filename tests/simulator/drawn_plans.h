// What the agreement laws share: the random choices, the clusters, and the comparison of a plan's
// estimate with its simulation.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/estimate.h"
#include "scenarios/scenario.h"
#include "simulator/step.h"

namespace trainyard {

// The choices of one attempt of a law to draw a legal plan. They depend on the law's name and the
// attempt's number only.
class Choices {
 public:
  Choices(std::string_view law, int attempt);

  template <typename Value>
  Value one_of(const std::vector<Value>& values) {
    return values[random_() % values.size()];
  }

  // A name that is added to the list takes its share of the choices; all others stay as they were
  // (rendezvous hashing, Thaler & Ravishankar 1998), so the catalog may grow.
  std::string one_of_names(const std::vector<std::string>& names);

 private:
  std::mt19937_64 random_;
};

// A job of a random model on a random cluster: of any node of the catalog, on another of its
// fabrics, or of nodes whose devices are linked by PCIe. `training` is the members of the
// scenario's `training` after the batch and the sequence length.
Job drawn_job(Choices& choices, const std::vector<int>& nodes, const std::vector<int>& batches,
              const std::string& training);

// How many plans to draw: in the suite as many as said, under sanitizers a sixth of them. By hand
// TRAINYARD_AGREEMENT_PLANS says it, and then the law only prints.
bool is_drawn_by_hand();
int plans_to_draw(int in_the_suite);

// Whether so many layers × micro-batches × ranks have to be played as take a fraction of a second
// in the suite, and seconds by hand. (Where ranks cannot be folded, all of them are played.)
bool is_small(const Job& job, const Plan& plan);

std::string described(const Job& job, const Plan& plan);

// The estimate over the simulation, less 1.
struct Disagreement {
  double time = 0;
  double memory = 0;  // peak of what is allocated; the runtime's own memory is the same in both
};
Disagreement disagreement(const PreparedJob& job, const Plan& plan,
                          const StepSimulation& simulation);

// The part q of the values, which are sorted by size without their signs, lies below it.
double quantile(std::vector<double> values, double q);

}  // namespace trainyard
