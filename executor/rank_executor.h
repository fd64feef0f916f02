// Runs one rank of a program: walks the rank's operations in the order of the program, hands them
// to a backend with the dependencies that follow from their buffers (model/program/operation.h),
// and keeps the state that persists from step to step (weights, gradients, optimizer states).
#pragma once

#include <map>
#include <vector>

#include "executor/backend.h"
#include "executor/holdings.h"
#include "executor/loss_scale.h"
#include "executor/supervision/device_progress.h"

namespace trainyard {

// Observer that hears of every operation before it is handed over.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
  virtual void begins(std::int64_t number, const IssuedOperation& issued) = 0;
  // All operations of a step were handed over; `operations` is their number.
  virtual void ends_step(std::int64_t /*operations*/) {}
  // Sign of life during long work between operations: called each time a tensor, or a large part of
  // one, was filled, read or compared.
  virtual void goes_on() {}
};

// When one operation began and ended, counted from the begin of the step's first operation.
struct OperationTimes {
  Seconds begin, end;
};

struct StepOutcome {
  double loss = 0;          // this rank's share; the sum over all ranks is the mean over the batch
  double squared_norm = 0;  // squared norm of the whole network's gradient
  bool skipped = false;     // the gradient overflowed in fp16: nothing was updated
  Seconds time;
  // By number in the rank's list of operations.
  std::vector<OperationTimes> operations;
};

// A weight or gradient that the rank holds.
struct HeldTensor {
  int buffer = -1;  // index in Program::buffers
  int layer = -1;
  std::vector<float> numbers;
  // Numbers known_from … known_to − 1 are valid here; other ranks hold the rest.
  std::int64_t known_from = 0, known_to = 0;
};

class RankExecutor {
 public:
  // Allocates and fills everything that exists before a step, and tells `watch` of each tensor.
  // Requires: all arguments but `rank` and `watch` outlive this object.
  RankExecutor(const Setting& setting, const Program& program, const RankLayout& layout, int rank,
               Backend& backend, Watch& watch);

  // Runs one step. `number` counts the steps from 0; `batch` says which batch of the run it sees.
  Expected<StepOutcome> step(std::int64_t number, std::int64_t batch, Watch& watch);

  // Whether the following steps keep a copy of their gradients as the optimizer finds them.
  void keep_gradients(bool keep) { keeps_gradients_ = keep; }
  const std::vector<HeldTensor>& gradients() const { return gradients_; }
  std::vector<HeldTensor> weights(Watch& watch);
  const Holdings& holdings() const { return holdings_; }
  // Progress of the current step; another thread may look at it.
  DeviceProgress& progress() { return progress_; }

 private:
  // A buffer that exists before a step and after it.
  struct Resident {
    int instance = -1, buffer = -1, layer = -1, microbatch = 0;
  };
  // The events that the next user of a buffer may have to wait for.
  struct Users {
    bool written = false;
    Backend::Event writer = 0;
    std::vector<Backend::Event> readers;
  };

  const ProgramBuffer& buffer_of(const Operand& operand) const;
  void find_residents();
  void fill(const Resident& resident, Watch& watch);
  void begin_step(std::int64_t batch);
  Expected<void> run(std::int64_t number, std::int64_t batch, Watch& watch);
  void prepare(const Work& work);
  Expected<void> start(const Work& work);
  void finish(const Work& work, Backend::Event end);
  int shard_in(const Operation& operation) const;
  HeldTensor held(const Operation* writer, int buffer, int layer, std::vector<float> numbers) const;
  void note_gradients(const Work& work);
  std::vector<const Operation*> last_writers() const;
  StepOutcome outcome();

  const Setting& setting_;
  const Program& program_;
  const RankLayout& layout_;
  int rank_;
  Backend& backend_;
  Holdings holdings_;
  int stage_;
  std::vector<Resident> residents_;
  std::vector<Users> users_;  // by instance
  std::vector<Backend::Event> begins_, ends_;
  DeviceProgress progress_;
  LossScale loss_scale_;
  std::int64_t skipped_ = 0;  // steps
  bool keeps_gradients_ = false;
  std::vector<HeldTensor> gradients_;
};

}  // namespace trainyard
