// One rank of a program, run: walks the rank's operations in the order of the program, hands them
// to a backend with the dependencies that their buffers say (model/program/operation.h), and keeps
// what persists from step to step.
#pragma once

#include <map>
#include <vector>

#include "executor/backend.h"
#include "executor/holdings.h"
#include "executor/loss_scale.h"
#include "executor/supervision/device_progress.h"

namespace trainyard {

// Told of every operation before it is handed over.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
  virtual void begins(std::int64_t number, const IssuedOperation& issued) = 0;
  // All operations of a step were handed over, so many.
  virtual void ends_step(std::int64_t /*operations*/) {}
  // Between operations, of work that takes its time: a tensor, or much of a large one, was filled,
  // read or compared.
  virtual void goes_on() {}
};

// Since the step began, by operation of the rank's list.
struct OperationTimes {
  Seconds begin, end;
};

struct StepOutcome {
  double loss = 0;          // this rank's share; the sum over all ranks is the batch's mean
  double squared_norm = 0;  // of the gradient, over the whole network
  bool skipped = false;     // its gradient overflowed in fp16: nothing was updated
  Seconds time;
  std::vector<OperationTimes> operations;
};

// A weight or gradient that the rank holds.
struct HeldTensor {
  int buffer = -1;  // index in Program::buffers
  int layer = -1;
  std::vector<float> numbers;
  std::int64_t known_from = 0, known_to = 0;  // of them; the plan leaves the rest to other ranks
};

class RankExecutor {
 public:
  // Requires: all but `rank` and `watch` outlive it. Allocates and fills what is there before a
  // step, and tells `watch` of each tensor.
  RankExecutor(const Setting& setting, const Program& program, const RankLayout& layout, int rank,
               Backend& backend, Watch& watch);

  // `batch`: which batch of the run it sees; `number` counts the steps from 0.
  Expected<StepOutcome> step(std::int64_t number, std::int64_t batch, Watch& watch);

  // Gradients as the optimizer finds them, in the steps that follow.
  void keep_gradients(bool keep) { keeps_gradients_ = keep; }
  const std::vector<HeldTensor>& gradients() const { return gradients_; }
  std::vector<HeldTensor> weights(Watch& watch);
  const Holdings& holdings() const { return holdings_; }
  // Of the step that runs; another thread may look.
  DeviceProgress& progress() { return progress_; }

 private:
  // What is there before a step and after it.
  struct Resident {
    int instance = -1, buffer = -1, layer = -1, microbatch = 0;
  };
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
