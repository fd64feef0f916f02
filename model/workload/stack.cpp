#include "model/workload/stack.h"

#include <charconv>

namespace trainyard {
namespace {

// Months since the year 2000 of a text that begins as "25.04"; nothing if it does not begin so.
std::optional<int> month_of(std::string_view release) {
  int year = 0;
  int month = 0;
  const char* end = release.data() + release.size();
  const auto [dot, bad_year] = std::from_chars(release.data(), end, year);
  const bool two_digits = release.data() + 2 == dot;
  if (bad_year != std::errc{} || !two_digits || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, bad_month] = std::from_chars(dot + 1, end, month);
  if (bad_month != std::errc{} || rest != dot + 3 || month < 1 || month > 12) return std::nullopt;
  return 12 * year + month;
}

bool holds(const StackRelease& entry, int month, const ReleasedJob& job) {
  const auto since = month_of(entry.since);
  const auto before = month_of(entry.before);
  return (!since || month >= *since) && (!before || month < *before) &&
         (entry.precision.empty() || entry.precision == job.precision) &&
         (entry.generation.empty() || entry.generation == job.generation) &&
         (!entry.latent_attention || job.latent_attention);
}

void apply(const StackRelease& entry, Stack& stack) {
  if (entry.moe_graphs.value_or(false)) stack.host_moe_layer_forward = Seconds(0);
  const auto set = [](const auto& said, auto& member) { member = said.value_or(member); };
  set(entry.expert_overlap, stack.overlap.expert_parallel);
  set(entry.deduplicated_dispatch, stack.deduplicated_dispatch);
  set(entry.expert_padding, stack.expert_padding);
  set(entry.fused_expert_casts, stack.fused_expert_casts);
  set(entry.expert_bias_apart, stack.expert_bias_apart);
  set(entry.delayed_scaling, stack.delayed_scaling);
  set(entry.fused_activation_casts, stack.fused_activation_casts);
  set(entry.quantised_activation_input, stack.quantised_activation_input);
  set(entry.offloads_activations, stack.offloads_activations);
  set(entry.flash_attention, stack.flash_attention);
  set(entry.gradient_bytes, stack.gradient_bytes);
  set(entry.reduction_bytes, stack.reduction_bytes);
  set(entry.cross_entropy_forward_bytes, stack.cross_entropy_forward_bytes);
  set(entry.cross_entropy_backward_bytes, stack.cross_entropy_backward_bytes);
  set(entry.saved_logit_bytes, stack.saved_logit_bytes);
  set(entry.parallel_logit_bytes, stack.parallel_logit_bytes);
  set(entry.attention_generation, stack.attention_generation);
  set(entry.pipeline_keeps_outputs, stack.pipeline_keeps_outputs);
  set(entry.pipeline_keeps_gradients, stack.pipeline_keeps_gradients);
  set(entry.pipeline_keeps_logits, stack.pipeline_keeps_logits);
}

}  // namespace

bool names_release(std::string_view text) { return month_of(text).has_value(); }

Stack at_release(Stack stack, const ReleasedJob& job) {
  const auto month = month_of(job.release);
  if (!month) return stack;
  const std::vector<StackRelease> releases = stack.releases;
  for (const StackRelease& entry : releases) {
    if (holds(entry, *month, job)) apply(entry, stack);
  }
  return stack;
}

}  // namespace trainyard
