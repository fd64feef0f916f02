// What a real run of a program measured: the document profile/1 (docs/execution.md). Times are of
// the measured steps, without warm-up. Operations that do the same work are added up over layers
// and micro-batches and averaged over steps and over the ranks of a stage.
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
  // Nothing: a rank ran alone, whose peers would have sent other numbers.
  std::optional<double> loss, gradient_norm;
};

// The gaps between the operations of one stream, in a rank's last step.
struct ProfiledStream {
  std::string stream;
  double between = 0;        // share of the step in which no operation of the stream ran
  double communicating = 0;  // share of the step that lies in `between` and in which another stream
                             // communicated
  Seconds longest_gap;
  std::string after, before;  // the operations around the longest gap; empty: there is none
};

struct ProfiledRank {
  int rank = 0;
  int stage = 0;
  std::string host;
  Bytes peak_memory;            // of the program's buffers; on a device, what its pool gave out
  Bytes predicted_peak_memory;  // by the simulation: the program's buffers
  Bytes reserved_memory;        // kept from the device by the pool; nothing: there is none
  double between = 0;           // share of its last step in which no operation of it ran or waited
  Seconds longest_gap;
  std::string after, before;  // the operations around it; empty: there is none
  std::vector<ProfiledStream> streams;
};

// A receive or a collective is timed from when its rank is ready for it: waiting counts.
struct ProfiledOperation {
  int stage = 0;
  std::string operation;
  std::string of_class;  // class of kernels that do this work: "gemm"; empty: `operation` is one
  int tasks = 0;         // on one rank in one step
  Seconds measured;      // of all these tasks together, a step
  Seconds predicted;     // by the simulation of the same program
};

// As large as a float allows: runs that diverge are tried too.
inline constexpr double kMostLearningRate = 1e38;

// What a comparison with the same network on one rank found, which trains on the same tokens.
struct Verification {
  std::int64_t compared = 0;   // tensors and scalars
  std::int64_t differing = 0;  // of these, further off than allowed
  std::string furthest;        // the one that is the furthest off
  // How far that is, over what is allowed. Nothing: something is no number, or no rank has it.
  std::optional<double> furthest_share;
  bool complete = true;  // false: the run ended before the weights were compared
};

struct Profile {
  std::string name;  // of the scenario
  std::string backend;
  // What was run beside the scenario and the plan: with these the run can be repeated.
  std::int64_t seed = 0;
  double learning_rate = 0;
  bool same_batch = false;  // every step saw the first one
  std::string tokens;       // file; empty: by the seed
  std::string scaled_down;  // what was made smaller than in the scenario; empty: nothing
  std::string note;         // what the plan changes of the training itself; empty: nothing
  bool alone = false;       // one rank ran without its peers; local copies replaced communication
  std::optional<PlanRequest> plan;
  int warmup_steps = 0;  // the first of `steps`
  std::vector<ProfiledStep> steps;
  Seconds predicted_step_time;
  // Of the measured steps, with the FLOP and the peak of the cost model. Nothing: no step was
  // measured, or one rank ran alone, which does not wait for others as in a real run.
  std::optional<double> mfu;
  std::vector<ProfiledRank> ranks;
  std::vector<ProfiledOperation> operations;
  std::optional<Verification> verification;
  std::string failure;  // why the run ended early; empty: it did not
};

// Mean over the steps after the warm-up; 0 if there are none.
Seconds mean_step_time(const Profile& profile);

}  // namespace trainyard
