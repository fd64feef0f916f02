// What a real run of a program measured, as a value: the document profile/1 (docs/execution.md).
// Times are of the measured steps; operations that do the same are added up over layers and
// micro-batches, and averaged over steps and over the ranks of a stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

struct ProfiledStep {
  Seconds time;  // of the slowest rank
  // Nothing: of a rank alone, whose peers would have sent other numbers.
  std::optional<double> loss, gradient_norm;
};

// Of a rank's last step: what lies between the operations of one of its streams.
struct ProfiledStream {
  std::string stream;
  double between = 0;        // share of the step
  double communicating = 0;  // of it, as a share of the step: while another stream communicated
  Seconds longest_gap;
  std::string after, before;  // the operations around it; empty: there is none
};

struct ProfiledRank {
  int rank = 0;
  int stage = 0;
  std::string host;
  Bytes peak_memory;            // buffers of the program; on a device what its pool gave out
  Bytes predicted_peak_memory;  // by the simulation: the program's buffers
  Bytes reserved_memory;        // kept from the device by the pool; nothing: there is none
  double between = 0;           // share of its last step in which no operation of it ran or waited
  Seconds longest_gap;
  std::string after, before;  // the operations around it; empty: there is none
  std::vector<ProfiledStream> streams;
};

// A receive or a collective takes from when its rank is ready for it: waiting for others shows.
struct ProfiledOperation {
  int stage = 0;
  std::string operation;
  std::string of_class;  // "gemm": what kernels do the same work; empty: `operation` is one
  int tasks = 0;         // of a rank and a step
  Seconds measured;      // of a step
  Seconds predicted;     // by the simulation of the same program
};

// Any that a float holds: runs are tried with what makes them diverge, too.
inline constexpr double kMostLearningRate = 1e38;

struct Profile {
  std::string name;  // of the scenario
  std::string backend;
  // What was run beside the scenario and the plan: with these the run can be repeated.
  std::int64_t seed = 0;
  double learning_rate = 0;
  bool same_batch = false;  // every step saw the first one
  std::string tokens;       // file; empty: by the seed
  std::string scaled_down;  // what is less than in the scenario; empty: nothing
  std::string note;         // what the plan changes of the training itself; empty: nothing
  bool alone = false;       // its one rank ran without its peers, local copies in their place
  std::optional<PlanRequest> plan;
  int warmup_steps = 0;  // the first of `steps`
  std::vector<ProfiledStep> steps;
  Seconds predicted_step_time;
  // Of the measured steps, by the FLOP and the peak that the cost model counts; nothing: none was
  // measured, or of a rank alone, which does not wait as ranks of a run do.
  std::optional<double> mfu;
  std::vector<ProfiledRank> ranks;
  std::vector<ProfiledOperation> operations;
  std::string failure;  // why the run ended early; empty: it did not
};

// Mean over the steps after the warm-up; 0 where there is none.
Seconds mean_step_time(const Profile& profile);

}  // namespace trainyard
