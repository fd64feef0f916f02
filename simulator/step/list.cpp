#include "simulator/step/list.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/cost/layer_cost.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/cost/slowest_rank.h"

namespace trainyard {
namespace {

constexpr std::int32_t kNobody = -1;

// The stream of an operation. The exposed part of tensor- and expert-parallel exchanges is on the
// compute stream (simulator/step/calls.h).
Stream stream_of(const Operation& operation, bool sends_beside) {
  const bool of_a_pass =
      operation.phase == Phase::forward || operation.phase == Phase::input_gradient;
  switch (operation.stream) {
    case ProgramStream::compute:
      return Stream::compute;
    case ProgramStream::tensor_parallel:
      return of_a_pass ? Stream::compute : Stream::tensor;
    case ProgramStream::expert_parallel:
      return of_a_pass ? Stream::compute : Stream::expert;
    case ProgramStream::context_parallel:
      return Stream::context;
    case ProgramStream::pipeline:
      if (operation.kind == OperationKind::receive) return Stream::receive;
      if (!sends_beside) return Stream::compute;
      return operation.phase == Phase::forward ? Stream::pipeline : Stream::gradient;
    case ProgramStream::data_parallel:
      return Stream::data;
    case ProgramStream::embedding:
      return Stream::embedding;
    case ProgramStream::copy:
      return Stream::copy;
    case ProgramStream::fetch:
      break;
  }
  return Stream::fetch;
}

// The tasks that last wrote and have since read each buffer instance of a stage.
class Uses {
 public:
  explicit Uses(int instances) : instances_(static_cast<std::size_t>(instances)) {}

  std::int32_t writer(int instance) const { return at(instance).writer; }
  bool is_used(int instance) const { return at(instance).used; }
  bool is_created(int instance) const { return at(instance).buffer != kNobody; }
  std::int32_t buffer(int instance) const { return at(instance).buffer; }
  void set_buffer(int instance, std::int32_t buffer) { at(instance).buffer = buffer; }

  template <typename Visit>
  void for_readers(int instance, Visit visit) const {
    for (std::int32_t i = at(instance).readers; i != kNobody;) {
      visit(readers_[static_cast<std::size_t>(i)].task);
      i = readers_[static_cast<std::size_t>(i)].next;
    }
  }
  void read(int instance, std::int32_t task) {
    readers_.push_back({task, at(instance).readers});
    at(instance).readers = static_cast<std::int32_t>(readers_.size()) - 1;
    at(instance).used = true;
  }
  void write(int instance, std::int32_t task) {
    Instance& of = at(instance);
    of.writer = task;
    of.readers = kNobody;
    of.used = true;
  }

 private:
  struct Instance {
    std::int32_t writer = kNobody;
    std::int32_t readers = kNobody;  // newest in readers_
    std::int32_t buffer = kNobody;   // in the list, once an operation created it
    bool used = false;
  };
  struct Reader {
    std::int32_t task = 0;
    std::int32_t next = kNobody;
  };
  Instance& at(int instance) { return instances_[static_cast<std::size_t>(instance)]; }
  const Instance& at(int instance) const { return instances_[static_cast<std::size_t>(instance)]; }

  std::vector<Instance> instances_;
  std::vector<Reader> readers_;
};

class ListBuilder {
 public:
  ListBuilder(const Program& program, int stage, const StepTimes& times, const StepCalls& calls,
              const StepLoads& loads)
      : program_(program),
        stage_(program.stages[static_cast<std::size_t>(stage)]),
        number_(stage),
        times_(times),
        calls_(calls),
        loads_(loads),
        uses_(stage_.instances),
        held_throughout_(program.buffers.size()) {
    const auto operations = static_cast<std::size_t>(stage_.operations);
    out_.tasks.reserve(operations);
    out_.list.tasks.reserve(operations);
    out_.list.first_dependency.reserve(operations + 1);
  }

  StepList build() {
    IssuedOperation last;
    for (const IssuedOperation issued : operations_of(program_, number_)) {
      if (last.block != nullptr && (issued.call != last.call || issued.step != last.step)) {
        end_block(last);
      }
      if (gathers_updated_weights(issued)) end_update(last);
      add(issued);
      last = issued;
    }
    if (last.block != nullptr) end_block(last);
    end_update(last);
    add_standing_buffers();
    return std::move(out_);
  }

 private:
  std::int32_t append(const Task& task, const StepTask& what) {
    latest_.erase(static_cast<std::size_t>(task.stream));
    out_.tasks.push_back(what);
    const std::int32_t added = out_.list.add(task, latest_.all());
    if (task.stream == Stream::compute) last_kernel_ = added;
    return added;
  }

  static bool gathers_updated_weights(const IssuedOperation& issued) {
    return issued.step->pass == StepPass::finish &&
           issued.operation->kind == OperationKind::all_gather;
  }

  // Adds the time of the update beyond its kernels, before its weights are gathered.
  void end_update(const IssuedOperation& last) {
    if (ended_update_) return;
    ended_update_ = true;
    latest_.clear();
    if (times_.update_overhead().count() > 0) {
      append({.duration = times_.update_overhead()}, {StepTaskKind::update_overhead, last});
    }
  }

  void end_block(const IssuedOperation& last) {
    const Picoseconds launch = times_.launch(last.call->block, last.step->pass);
    latest_.clear();
    if (launch.count() > 0) append({.duration = launch}, {StepTaskKind::launch, last});
  }

  void add(const IssuedOperation& issued) {
    latest_.clear();
    instances_.clear();
    for (const Operand& operand : issued.operation->operands) {
      const int instance = instance_of(program_, issued, operand);
      instances_.push_back(instance);
      if (operand.access == Access::create) continue;
      wait_for(uses_.writer(instance));
      if (operand.access == Access::update) {
        uses_.for_readers(instance, [&](std::int32_t reader) { wait_for(reader); });
      }
    }
    const Task task = task_of(issued);
    if (follows_kernels(task)) wait_for(last_kernel_);
    const std::int32_t added = append(task, {StepTaskKind::operation, issued});
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      use(issued, issued.operation->operands[i], instances_[i], added);
    }
    hold_for_backward(issued, added);
  }

  // A communication stream waits for the kernels that were launched before an exchange (torch's
  // process groups record an event on the current stream), so exchanges run ahead neither of the
  // passes nor of the host that launches them. Copies from the host may run ahead: they are fetched
  // before they are needed.
  static bool follows_kernels(const Task& task) {
    return task.kind == TaskKind::collective || task.kind == TaskKind::send ||
           (task.kind == TaskKind::copy && task.stream != Stream::fetch);
  }

  void wait_for(std::int32_t task) {
    if (task == kNobody) return;
    const Stream stream = out_.list.tasks[static_cast<std::size_t>(task)].stream;
    latest_.add(static_cast<std::size_t>(stream), task);
  }

  void use(const IssuedOperation& issued, const Operand& operand, int instance, std::int32_t task) {
    if (operand.access == Access::read) {
      uses_.read(instance, task);
    } else {
      uses_.write(instance, task);
    }
    if (operand.access == Access::create) create(operand, instance, task);
    if (operand.frees && uses_.is_created(instance)) {
      free(*issued.step, operand.hold, uses_.buffer(instance), task);
    }
  }

  void create(const Operand& operand, int instance, std::int32_t task) {
    const ProgramBuffer& buffer = program_.buffer(operand.buffer);
    Bytes bytes = buffer.bytes_on_device();
    if (operand.hold == Hold::throughout) {
      held_throughout_[static_cast<std::size_t>(operand.buffer)] += bytes;
      bytes = Bytes(0);
    }
    uses_.set_buffer(instance, static_cast<std::int32_t>(out_.list.buffers.size()));
    out_.list.buffers.push_back({bytes, task, kNobody, operand.buffer});
    if (buffer.kept_bytes > 0) {
      const Bytes kept(static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns) *
                       buffer.kept_bytes);
      out_.list.buffers.push_back({kept, task, kNobody, operand.buffer});
    }
  }

  void free(const Step& step, Hold hold, std::int32_t buffer, std::int32_t task) {
    if (hold == Hold::to_the_end) return;
    if (hold == Hold::until_backward) waiting_[visit_of(step)] = buffer;
    out_.list.buffers[static_cast<std::size_t>(buffer)].freed_by = task;
  }

  // Of what the micro-batch sent from the chunk: its backward passes hold it until they end.
  void hold_for_backward(const IssuedOperation& issued, std::int32_t task) {
    const StepPass pass = issued.step->pass;
    const bool backward = pass == StepPass::backward || pass == StepPass::input_gradient ||
                          pass == StepPass::weight_gradient;
    if (!backward || waiting_.empty()) return;
    const auto sent = waiting_.find(visit_of(*issued.step));
    if (sent == waiting_.end()) return;
    out_.list.buffers[static_cast<std::size_t>(sent->second)].freed_by = task;
  }

  static std::pair<int, int> visit_of(const Step& step) { return {step.chunk, step.microbatch}; }

  // Adds the buffers that exist before and after the step: those that operations use and none
  // creates, and those that are created in memory that is always there.
  void add_standing_buffers() {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const int first = stage_.first_instance[i];
      const int end =
          i + 1 < stage_.first_instance.size() ? stage_.first_instance[i + 1] : stage_.instances;
      int count = 0;
      for (int instance = first; instance < end; ++instance) {
        count += uses_.is_used(instance) && !uses_.is_created(instance) ? 1 : 0;
      }
      const Bytes standing = program_.buffers[i].bytes_on_device() * count + held_throughout_[i];
      if (standing <= Bytes(0)) continue;
      out_.list.buffers.push_back({standing, kNobody, kNobody, static_cast<std::int32_t>(i)});
    }
  }

  Task task_of(const IssuedOperation& issued) {
    const Operation& operation = *issued.operation;
    const int block = issued.call->block;
    const auto at = static_cast<std::size_t>(&operation - issued.block->operations.data());
    const int call = calls_.of(number_, issued);
    Task task{.stream = stream_of(operation, times_.sends_beside()),
              .load = loads_.of(program_, issued)};
    if (operation.kind == OperationKind::receive) {
      task.kind = TaskKind::receive;
    } else if (call >= 0) {
      task.kind = operation.kind == OperationKind::send ? TaskKind::send : TaskKind::collective;
      task.call = call;
    } else {
      const bool copies = task.stream != Stream::compute || operation.kind == OperationKind::copy;
      task.kind = copies ? TaskKind::copy : TaskKind::compute;
      task.duration = times_.kernel(block, at);
      return task;
    }
    task.channel =
        channel({.kind = task.kind,
                 .stream = task.kind == TaskKind::collective ? task.stream : Stream::receive,
                 .group = operation.group,
                 .phase = task.kind == TaskKind::collective ? Phase::forward : operation.phase,
                 .peer = task.kind == TaskKind::collective ? -1 : issued.call->peer});
    return task;
  }

  std::int32_t channel(const StepChannel& wanted) {
    std::vector<StepChannel>& all = out_.channels;
    const auto found = std::find(all.begin(), all.end(), wanted);
    if (found != all.end()) return static_cast<std::int32_t>(found - all.begin());
    all.push_back(wanted);
    return static_cast<std::int32_t>(all.size()) - 1;
  }

  // For each stream the last of the tasks that the next task waits for.
  class Latest {
   public:
    void clear() { tasks_.clear(); }
    void add(std::size_t stream, std::int32_t task) {
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (streams_[i] != stream) continue;
        tasks_[i] = std::max(tasks_[i], task);
        return;
      }
      streams_[tasks_.size()] = stream;
      tasks_.push_back(task);
    }
    // Needs no dependency: a stream runs in order anyway.
    void erase(std::size_t stream) {
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (streams_[i] != stream) continue;
        tasks_[i] = tasks_.back();
        streams_[i] = streams_[tasks_.size() - 1];
        tasks_.pop_back();
        return;
      }
    }
    std::span<const std::int32_t> all() const { return tasks_; }

   private:
    std::vector<std::int32_t> tasks_;
    std::array<std::size_t, kStreams> streams_{};
  };

  const Program& program_;
  const StageProgram& stage_;
  int number_ = 0;
  const StepTimes& times_;
  const StepCalls& calls_;
  const StepLoads& loads_;
  Uses uses_;
  Latest latest_;
  std::vector<int> instances_;          // of the operation's operands
  std::vector<Bytes> held_throughout_;  // by the program's buffers
  // Buffers of the list that a micro-batch's visit of a chunk sent and its backward passes hold.
  std::map<std::pair<int, int>, std::int32_t> waiting_;
  std::int32_t last_kernel_ = kNobody;
  bool ended_update_ = false;
  StepList out_;
};

// Whether a block recomputes a whole layer. If only attention's core is recomputed, norms are not;
// if attention is kept, it is not.
bool repeats_whole_layer(const Block& block) {
  const auto repeats = [&](OperationKind kind) {
    return std::any_of(block.operations.begin(), block.operations.end(),
                       [kind](const Operation& op) { return op.recomputed && op.kind == kind; });
  };
  return repeats(OperationKind::norm) && repeats(OperationKind::attention);
}

// Whether a block is part of a layer's passes. The others handle its parameters, gathers of weights
// among them.
bool is_pass(const Block& block) {
  return std::any_of(block.operations.begin(), block.operations.end(), [](const Operation& op) {
    return op.part && (op.phase == Phase::forward || op.phase == Phase::input_gradient);
  });
}

bool is_head(const Block& block) {
  return std::any_of(block.operations.begin(), block.operations.end(), [](const Operation& op) {
    return op.kind == OperationKind::cross_entropy_loss;
  });
}

}  // namespace

StepTimes::StepTimes(const PreparedJob& job, const Plan& plan, const Program& program)
    : kernel_stretch_(slowest_rank_factor(job.job.training.stack, plan)),
      sends_beside_(plan.overlap.pipeline),
      update_overhead_(to_picoseconds(serial_update_time(job.job.training.stack, plan))) {
  const OperationPrices prices(job, plan);
  for (const Block& block : program.blocks) {
    kernels_.emplace_back();
    for (const Operation& operation : block.operations) {
      const bool paced = operation.phase != Phase::update && operation.kind != OperationKind::copy;
      const double stretch = paced ? kernel_stretch_ : 1;
      kernels_.back().push_back(to_picoseconds(prices.of(program, block, operation) * stretch));
    }
  }
  add_launches(job, plan, program);
}

void StepTimes::add_launches(const PreparedJob& job, const Plan& plan, const Program& program) {
  const PlanLinks links = plan_links(job, plan);
  launches_.resize(program.blocks.size());
  std::array<LayerCost, kLayerKinds> layers;
  const LayerCounts all = job.all_layers();
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    if (all[static_cast<std::size_t>(kind)] == 0) continue;
    LayerCost& layer = layers[static_cast<std::size_t>(kind)];
    layer = layer_cost(job, plan, links, layer_kind_at(job.job.model, kind));
    add_second_gather(plan, layer);
  }
  const std::vector<bool> of_layers = called_by_layers(program);
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    const Block& block = program.blocks[i];
    if (is_head(block)) {
      launches_[i].forward = to_picoseconds(head_cost(job, plan, links).forward.launch);
    } else if (of_layers[i] && is_pass(block)) {
      const LayerCost& layer = layers[static_cast<std::size_t>(index_of(block.kind))];
      const Seconds again = repeats_whole_layer(block) ? layer.forward.launch : Seconds(0);
      launches_[i] = {to_picoseconds(layer.forward.launch),
                      to_picoseconds(layer.input_gradient.launch + again)};
    }
  }
}

Picoseconds StepTimes::launch(int block, StepPass pass) const {
  const Launch& of = launches_[static_cast<std::size_t>(block)];
  switch (pass) {
    case StepPass::forward:
      return of.forward;
    case StepPass::backward:
    case StepPass::input_gradient:
      return of.backward;
    case StepPass::weight_gradient:
    case StepPass::start:
    case StepPass::finish:
      break;
  }
  return Picoseconds(0);
}

StepList step_list(const Program& program, int stage, const StepTimes& times,
                   const StepCalls& calls, const StepLoads& loads) {
  return ListBuilder(program, stage, times, calls, loads).build();
}

}  // namespace trainyard
