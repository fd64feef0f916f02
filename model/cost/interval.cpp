#include "model/cost/interval.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

bool seen(const StackEvidence& evidence, DeviceGeneration generation) {
  switch (generation) {
    case DeviceGeneration::ampere:
      return evidence.ampere;
    case DeviceGeneration::hopper:
      return evidence.hopper;
    case DeviceGeneration::blackwell:
      break;
  }
  return evidence.blackwell;
}

double beyond(bool used, bool seen) { return used && !seen ? kUnseenParallelism : 1; }

}  // namespace

DeviceGeneration generation_of(const Device& device) {
  if (device.peak_of(Dtype::fp4) > FlopsPerSecond(0)) return DeviceGeneration::blackwell;
  return device.peak_of(Dtype::fp8) > FlopsPerSecond(0) ? DeviceGeneration::hopper
                                                        : DeviceGeneration::ampere;
}

double interval_widening(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  const StackEvidence& evidence = stack.evidence;
  double wider = job.model.experts > 0 ? stack.interval_moe : 1;
  if (evidence.runs == 0) return wider;  // an interval of its own, not of some runs
  if (!seen(evidence, generation_of(job.cluster.device))) wider *= kUnseenGeneration;
  wider *= beyond(plan.tensor_parallel > 1, evidence.tensor_parallel);
  wider *= beyond(plan.pipeline_parallel > 1, evidence.pipeline_parallel);
  wider *= beyond(plan.context_parallel > 1, evidence.context_parallel);
  const double larger = static_cast<double>(plan.devices()) / std::max(1, evidence.devices);
  return larger > 1 ? wider * (1 + kPerDoubling * std::log2(larger)) : wider;
}

Interval step_interval(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  const double wider = interval_widening(job, plan);
  return {.low = std::pow(std::min(1.0, stack.interval_low), wider),
          .high = std::pow(std::max(1.0, stack.interval_high), wider)};
}

}  // namespace trainyard
