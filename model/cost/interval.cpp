#include "model/cost/interval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

bool seen(const StackEvidence& evidence, const std::optional<DeviceGeneration>& generation) {
  if (!generation) return false;
  switch (*generation) {
    case DeviceGeneration::ampere:
      return evidence.ampere;
    case DeviceGeneration::hopper:
      return evidence.hopper;
    case DeviceGeneration::blackwell:
      break;
  }
  return evidence.blackwell;
}

// In which ways a prediction lies beyond the runs of its stack.
struct Beyond {
  bool generation = false;
  bool tensor_parallel = false, pipeline_parallel = false, context_parallel = false;
  bool leaves_nodes = false;  // all runs were inside a node, the plan is not
  double larger = 1;          // devices over those of the largest run; at least 1
  double longer = 1;          // sequence length over the longest; at least 1
};

bool leaves_nodes(const Job& job, const Plan& plan) {
  const int in_node = std::max(job.cluster.devices_per_node, job.cluster.nvlink_domain);
  return plan.devices() > in_node && job.training.stack.evidence.devices <= in_node;
}

Beyond beyond(const Job& job, const Plan& plan) {
  const StackEvidence& evidence = job.training.stack.evidence;
  if (evidence.runs == 0) return {};  // the stack's interval does not come from runs
  const double larger = static_cast<double>(plan.devices()) / std::max(1, evidence.devices);
  const auto sequence = static_cast<double>(job.training.sequence_length);
  const double longer =
      evidence.sequence_length > 0 ? sequence / static_cast<double>(evidence.sequence_length) : 1;
  return {.generation = !seen(evidence, job.cluster.device.generation),
          .tensor_parallel = plan.tensor_parallel > 1 && !evidence.tensor_parallel,
          .pipeline_parallel = plan.pipeline_parallel > 1 && !evidence.pipeline_parallel,
          .context_parallel = plan.context_parallel > 1 && !evidence.context_parallel,
          .leaves_nodes = leaves_nodes(job, plan),
          .larger = std::max(1.0, larger),
          .longer = std::max(1.0, longer)};
}

// The same as phrases that follow "no run had".
std::vector<std::string> beyond_words(const Job& job, const Plan& plan) {
  const Beyond what = beyond(job, plan);
  std::vector<std::string> words;
  if (what.generation) words.emplace_back("this generation of devices");
  if (what.tensor_parallel) words.emplace_back("tensor parallelism");
  if (what.pipeline_parallel) words.emplace_back("pipeline parallelism");
  if (what.context_parallel) words.emplace_back("context parallelism");
  if (what.leaves_nodes) words.emplace_back("traffic between nodes");
  if (what.larger > 1) {
    words.push_back(fmt::format("more than {} devices", job.training.stack.evidence.devices));
  }
  if (what.longer > 1) {
    words.push_back(fmt::format("a sequence longer than {} tokens",
                                job.training.stack.evidence.sequence_length));
  }
  return words;
}

}  // namespace

double interval_widening(const Job& job, const Plan& plan) {
  const Beyond what = beyond(job, plan);
  double wider = job.cluster.device.interval_widening;
  if (job.model.experts > 0) wider *= job.training.stack.interval_moe;
  if (what.generation) wider *= kUnseenGeneration;
  for (const bool kind : {what.tensor_parallel, what.pipeline_parallel, what.context_parallel}) {
    if (kind) wider *= kUnseenParallelism;
  }
  if (what.leaves_nodes) wider *= kUnseenNetwork;
  for (const double times : {what.larger, what.longer}) {
    if (times > 1) wider *= 1 + kPerDoubling * std::log2(times);
  }
  return wider;
}

Interval step_interval(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  const double wider = interval_widening(job, plan);
  return {.low = std::pow(std::min(1.0, stack.interval_low), wider),
          .high = std::pow(std::max(1.0, stack.interval_high), wider)};
}

Interval memory_interval(const Stack& stack) {
  return {.low = std::min(1.0, stack.memory_interval_low),
          .high = std::max(1.0, stack.memory_interval_high)};
}

std::vector<std::string> widening_reasons(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  const Device& device = job.cluster.device;
  if (stack.interval_low >= 1 && stack.interval_high <= 1) return {};
  std::vector<std::string> reasons;
  if (const auto beyond = beyond_words(job, plan); !beyond.empty()) {
    reasons.push_back(
        fmt::format("no published run of {} had {}", stack.name, fmt::join(beyond, ", ")));
  }
  if (device.interval_widening > 1) {
    reasons.push_back(fmt::format("no kernel of {} was measured", device.name));
  }
  return reasons;
}

}  // namespace trainyard
