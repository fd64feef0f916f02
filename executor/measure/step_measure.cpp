#include "executor/measure/step_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "executor/rank_executor.h"
#include "executor/setting.h"
#include "executor/transport/transport.h"
#include "model/plan/layer_shard.h"
#include "model/program/lower.h"
#include "model/schedule/schedule.h"
#include "model/workload/optimizer.h"

namespace trainyard {
namespace {

struct SmallNetwork {
  int layers, hidden, heads, kv_heads;
  std::int64_t ffn, vocabulary, sequence, batch;
  int micro_batch;
};
// Networks of different proportions; steps take about a tenth of a second.
constexpr std::array<SmallNetwork, 8> kNetworks = {{{2, 128, 4, 4, 512, 1000, 64, 4, 1},
                                                    {1, 256, 4, 4, 768, 4000, 128, 4, 2},
                                                    {2, 320, 5, 5, 1280, 1500, 96, 4, 1},
                                                    {1, 384, 6, 3, 1536, 1000, 128, 2, 1},
                                                    {1, 512, 8, 4, 1536, 2000, 128, 2, 2},
                                                    {1, 576, 9, 3, 2304, 1000, 192, 1, 1},
                                                    {1, 768, 12, 4, 2048, 1000, 64, 4, 2},
                                                    {2, 192, 3, 3, 768, 8000, 256, 1, 1}}};
// The same for a device: tens of milliseconds, at most 20 GB.
constexpr std::array<SmallNetwork, 8> kWideNetworks = {
    {{2, 2048, 16, 16, 8192, 32000, 2048, 4, 1},
     {2, 4096, 32, 8, 14336, 32000, 4096, 2, 1},
     {4, 2560, 20, 20, 10240, 16000, 1024, 8, 2},
     {2, 3072, 24, 8, 8192, 64000, 2048, 2, 2},
     {2, 5120, 40, 8, 13824, 32000, 2048, 2, 1},
     {4, 1536, 12, 12, 6144, 32000, 2048, 4, 2},
     {1, 8192, 64, 8, 28672, 16000, 2048, 2, 1},
     {4, 1024, 16, 16, 4096, 50304, 1024, 16, 4}}};
constexpr int kFewestSteps = 5, kMostSteps = 60;
constexpr int kFewestLateSteps = 2;   // when the budget is spent
constexpr double kSureEnough = 0.02;  // half of the 95 % interval of a step's median

Setting setting_for(const SmallNetwork& network, BackendKind backend) {
  Setting setting;
  setting.model = {.layers = network.layers,
                   .hidden_size = network.hidden,
                   .attention_heads = network.heads,
                   .kv_heads = network.kv_heads,
                   .head_dim = network.hidden / network.heads,
                   .ffn_size = network.ffn,
                   .vocabulary = network.vocabulary};
  setting.training = {.global_batch = network.batch, .sequence_length = network.sequence};
  setting.training.precision =
      *find_precision_recipe(backend == BackendKind::cpu ? "fp32" : "bf16");
  setting.training.optimizer = *find_optimizer("adam");
  setting.training.stack.cross_entropy_forward_bytes = 1;  // so that traffic counts logits
  setting.training.stack.cross_entropy_backward_bytes = 1;
  setting.plan.schedule = find_schedule("1f1b");
  setting.plan.micro_batch = network.micro_batch;
  setting.plan.microbatches = static_cast<int>(network.batch / network.micro_batch);
  setting.descent.learning_rate = 1e-3;
  setting.marks_unknown = false;
  return setting;
}

class NobodyWatches final : public Watch {
 public:
  void begins(std::int64_t, const IssuedOperation&) override {}
};

// Times of each operation, over all layers, micro-batches and steps.
using SecondsByOperation = std::map<const Operation*, std::vector<double>>;

// Turns times of a network's operations into samples of the operators that they belong to.
class NetworkSamples {
 public:
  NetworkSamples(const Setting& setting, const Program& program, StepSamples& samples)
      : setting_(setting), program_(program), samples_(samples) {
    const LayerShard shard = layer_shard(setting.plan);
    for (const Operator& op : layer_operators(setting.model, setting.training, shard, {})) {
      operators_.push_back(op);
    }
    for (const Operator& op : embedding_operators(setting.model, setting.training, shard)) {
      operators_.push_back(op);
    }
    for (const Operator& op : head_operators(setting.model, setting.training, shard)) {
      operators_.push_back(op);
    }
  }

  void add(const SecondsByOperation& all, double steps) {
    for (const auto& [operation, times] : all) {
      runs_ = static_cast<double>(times.size()) / steps;
      add(*operation, timing_of(times));
    }
  }

 private:
  const Operator* find(const Operation& operation) const {
    if (!operation.part) return nullptr;
    const auto found = std::ranges::find(operators_, *operation.part, &Operator::kind);
    return found == operators_.end() ? nullptr : &*found;
  }

  void add(const Operation& operation, const Timing& timing) {
    const Operator* op = find(operation);
    if (operation.phase == Phase::update || operation.kind == OperationKind::clear) {
      return add_update(operation, timing);
    }
    if (op == nullptr) return add_traffic(samples_.memory_bound, Bytes(0), timing);
    switch (op->cls) {
      case OperatorClass::gemm:
        return add_gemm(operation, *op, timing);
      case OperatorClass::attention:
        return add_attention(operation, *op, timing);
      case OperatorClass::memory_bound:
        return add_memory_bound(operation, *op, timing);
      case OperatorClass::grouped_gemm:
        return;
    }
  }

  void note(std::string_view family, std::string what, const Timing& timing) {
    samples_.points.push_back({std::string(family), std::move(what), timing});
  }

  void add_traffic(TrafficSample& sum, Bytes traffic, const Timing& timing) const {
    sum.traffic += runs_ * traffic;
    sum.time += runs_ * timing.median;
  }

  void add_update(const Operation& operation, const Timing& timing) {
    double elements = 0;
    for (const Operand& operand : operation.operands) {
      const ProgramBuffer& buffer = program_.buffer(operand.buffer);
      if (buffer.role != BufferRole::gradient) continue;
      elements += static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns);
    }
    const double gradient = kept_gradient_bytes(setting_.training);
    double bytes = 0;
    if (operation.kind == OperationKind::sum_of_squares) bytes = gradient;
    if (operation.kind == OperationKind::optimizer_step) {
      bytes = update_bytes(setting_.training.optimizer, UpdatedPart::layer,
                           setting_.training.precision, gradient);
      note("optimizer in a step", fmt::format("{:.0f} parameters", elements), timing);
    }
    add_traffic(samples_.update, Bytes(elements * bytes), timing);
  }

  void add_gemm(const Operation& operation, const Operator& op, const Timing& timing) {
    const GemmShape& g = op.gemm;
    GemmShape shape = g;
    std::string_view pass = "forward";
    Bytes accumulated;
    if (operation.phase == Phase::input_gradient) {
      shape = {g.m, g.k, g.n};
      pass = "input gradient";
    }
    if (operation.phase == Phase::weight_gradient) {
      shape = {g.k, g.n, g.m};
      pass = "weight gradient";
      accumulated = Bytes(op.weights * kept_gradient_bytes(setting_.training));
    }
    samples_.gemm.push_back({operation.dtype, shape, timing.median});
    samples_.accumulated.push_back(accumulated);
    note("GEMM in a step", fmt::format("{} {}x{}x{}", pass, g.m, g.n, g.k), timing);
  }

  void add_attention(const Operation& operation, const Operator& op, const Timing& timing) {
    const bool forward = operation.kind == OperationKind::attention;
    if (forward) samples_.attention.push_back({operation.dtype, op.attention, timing.median});
    (forward ? samples_.attention_forward : samples_.attention_gradient) += runs_ * timing.median;
    note("attention in a step",
         fmt::format("{} {} tokens, {} heads of {}", forward ? "forward" : "backward",
                     op.attention.queries, op.attention.heads, op.attention.query_head_dim),
         timing);
  }

  void add_memory_bound(const Operation& operation, const Operator& op, const Timing& timing) {
    const bool forward = operation.phase == Phase::forward;
    const Bytes traffic = forward ? op.forward_traffic : op.backward_traffic;
    if (op.kind == OperatorKind::cross_entropy) {
      if (operation.kind == OperationKind::cross_entropy_gradient) {
        samples_.logits += runs_ * traffic.value();
      }
      (forward ? samples_.cross_entropy : samples_.cross_entropy_gradient) += runs_ * timing.median;
      return;
    }
    add_traffic(samples_.memory_bound, traffic, timing);
    samples_.memory_bound_runs += runs_;
    note("memory-bound in a step", fmt::format("{:.0f} bytes", traffic.value()), timing);
  }

  const Setting& setting_;
  const Program& program_;
  StepSamples& samples_;
  std::vector<Operator> operators_;
  double runs_ = 1;  // runs of an operation in a step
};

struct StepTimes {
  SecondsByOperation operations;
  double all = 0, inside = 0;  // s, in the steps and inside their operations
  double steps = 0;
};

void note_step(const Program& program, const StepOutcome& outcome, StepTimes& times) {
  std::size_t i = 0;
  for (const IssuedOperation issued : operations_of(program, 0)) {
    const OperationTimes& of = outcome.operations[i++];
    const double time = (of.end - of.begin).value();
    times.operations[issued.operation].push_back(time);
    times.inside += time;
  }
  times.all += outcome.time.value();
  ++times.steps;
}

Expected<StepTimes> run_steps(const Setting& setting, const Program& program,
                              const StepLimits& limits, double budget) {
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_single_rank_transport();
  const auto backend = make_backend(limits.backend, {setting, program, layout, *transport});
  if (!backend) return tl::unexpected(backend.error());
  NobodyWatches watch;
  RankExecutor executor(setting, program, layout, 0, **backend, watch);
  StepTimes times;
  std::vector<double> steps;
  const auto begin = TimingClock::now();
  for (int number = 0; number <= kMostSteps && !limits.interrupted(); ++number) {
    const auto outcome = executor.step(number, number, watch);
    if (!outcome) return tl::unexpected(outcome.error());
    if (number == 0) continue;  // the first step meets new memory
    note_step(program, *outcome, times);
    steps.push_back(outcome->time.value());
    if (number >= kFewestSteps && timing_of(steps).uncertainty() < kSureEnough) break;
    if (number >= kFewestLateSteps && seconds_since(begin) > budget) break;
  }
  return times;
}

}  // namespace

Expected<StepSamples> measure_steps(const StepLimits& limits) {
  StepSamples samples;
  double all = 0, inside = 0, done = 0;
  const auto begin = TimingClock::now();
  const double each = limits.budget.value() / kNetworks.size();
  for (const SmallNetwork& network :
       limits.backend == BackendKind::cpu ? kNetworks : kWideNetworks) {
    const Setting setting = setting_for(network, limits.backend);
    const auto program = lower(setting.model, setting.training, setting.plan);
    if (!program) return tl::unexpected(program.error());
    const auto times = run_steps(setting, *program, limits, each);
    if (!times) return tl::unexpected(times.error());
    if (limits.interrupted()) return samples;
    NetworkSamples(setting, *program, samples).add(times->operations, times->steps);
    all += times->all;
    inside += times->inside;
    limits.progress(++done / kNetworks.size());
    if (seconds_since(begin) > limits.budget.value()) break;
  }
  samples.between = all / inside - 1;
  return samples;
}

}  // namespace trainyard
