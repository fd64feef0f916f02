#include "cli/text/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "cli/text/layout/columns.h"
#include "model/schedule/schedule.h"
#include "planner/search_space.h"

namespace trainyard {
namespace {

constexpr std::string_view kAllRanks = "all";  // all ranks that hold the same states share them

std::vector<std::string> degree_words(const Plan& plan) {
  const std::pair<std::string_view, int> degrees[] = {
      {"tp", plan.tensor_parallel},   {"cp", plan.context_parallel},
      {"pp", plan.pipeline_parallel}, {"dp", plan.data_parallel},
      {"ep", plan.expert_parallel},   {"etp", plan.expert_tensor_parallel}};
  std::vector<std::string> words;
  for (const auto& [name, degree] : degrees) {
    if (degree > 1) {
      words.push_back(fmt::format("{} {}", name, count(degree)));
    }
    if (name == "cp" && degree > 1) {
      words.back() += fmt::format(" ({})", name_of(plan.context_parallel_algorithm));
    }
  }
  if (words.empty()) {
    words.emplace_back("one device");
  }
  return words;
}

std::string offload_parts(const Offload& offload, OffloadTarget target) {
  std::vector<std::string_view> parts;
  const bool states =
      offload.parameters == target && offload.gradients == target && offload.optimizer == target;
  if (states) {
    parts.emplace_back("states");
  } else {
    if (offload.parameters == target) parts.emplace_back("parameters");
    if (offload.gradients == target) parts.emplace_back("gradients");
    if (offload.optimizer == target) parts.emplace_back("optimizer");
  }
  if (offload.activations == target) parts.emplace_back("activations");
  return fmt::format("{}", fmt::join(parts, " and "));
}

// "optimizer in host memory, activations on NVMe".
std::string offload_words(const Offload& offload) {
  std::vector<std::string> words;
  for (const auto& [target, where] : {std::pair(OffloadTarget::host, "in host memory"),
                                      std::pair(OffloadTarget::nvme, "on NVMe")}) {
    const std::string parts = offload_parts(offload, target);
    if (!parts.empty()) words.push_back(fmt::format("{} {}", parts, where));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// The planner's name of an offload; other mixtures are spelled out.
std::string offload_name(const Offload& offload) {
  for (const OffloadChoice& choice : kOffloads) {
    if (choice.offload == offload) return std::string(choice.name);
  }
  return offload_words(offload);
}

std::string recompute_words(const Plan& plan) {
  const Recompute& recompute = plan.recompute;
  if (!plan.recompute_per_stage.empty()) return "recompute stage by stage";
  if (recompute.mode == RecomputeMode::full && recompute.full_layers > 0) {
    return fmt::format("recompute {} {}", recompute.full_layers,
                       recompute.full_layers == 1 ? "layer" : "layers");
  }
  return fmt::format("recompute {}", name_of(recompute.mode));
}

bool shards_over_all(const Plan& plan) {
  return plan.sharding_group == plan.data_parallel * plan.context_parallel;
}

// The ZeRO stage, with the size of a sharding group where that is not all ranks.
std::string zero_words(const Plan& plan) {
  if (plan.zero_stage == 0 || shards_over_all(plan)) return fmt::format("ZeRO-{}", plan.zero_stage);
  return fmt::format("ZeRO-{} over groups of {}", plan.zero_stage, count(plan.sharding_group));
}

// Keys beside the degrees; an empty value: the key makes no difference to this plan.
std::vector<std::pair<std::string, std::string>> finer_fields(const Plan& plan) {
  const bool sharded = plan.zero_stage > 0;
  const auto only_if = [](bool matters, std::string value) {
    return matters ? std::move(value) : std::string();
  };
  return {
      {"sequence_parallel",
       only_if(plan.tensor_parallel > 1, plan.sequence_parallel ? "true" : "false")},
      {"context_parallel_algorithm",
       only_if(plan.context_parallel > 1, std::string(name_of(plan.context_parallel_algorithm)))},
      {"sharding_group",
       only_if(sharded, shards_over_all(plan) ? std::string(kAllRanks)
                                              : fmt::format("{}", plan.sharding_group))},
      {"offload", offload_name(plan.offload)},
      {"rank_order", plan.rank_order},
      {"collective", plan.collective.empty() ? "fastest" : plan.collective},
  };
}

}  // namespace

std::vector<std::pair<std::string, std::string>> plan_fields(const Plan& plan) {
  const std::pair<std::string_view, int> numbers[] = {
      {"tensor_parallel", plan.tensor_parallel},
      {"context_parallel", plan.context_parallel},
      {"pipeline_parallel", plan.pipeline_parallel},
      {"virtual_stages", plan.virtual_stages},
      {"data_parallel", plan.data_parallel},
      {"expert_parallel", plan.expert_parallel},
      {"expert_tensor_parallel", plan.expert_tensor_parallel},
      {"micro_batch", plan.micro_batch},
      {"zero_stage", plan.zero_stage}};
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [key, number] : numbers) {
    fields.emplace_back(key, fmt::format("{}", number));
  }
  fields.emplace_back("recompute", recompute_value(plan));
  fields.emplace_back("schedule", plan.schedule->name);
  for (auto& field : finer_fields(plan)) fields.push_back(std::move(field));
  return fields;
}

std::string plan_differences(const Plan& plan, const Plan& from) {
  const auto fields = plan_fields(plan);
  const auto others = plan_fields(from);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& value = fields[i].second;
    if (value == others[i].second || value.empty()) continue;
    if (value == kAllRanks && others[i].second.empty()) continue;  // follows from the ZeRO stage
    const std::string instead =
        others[i].second.empty() ? "" : fmt::format(" instead of {}", others[i].second);
    words.push_back(fmt::format("{} {}{}", fields[i].first, value, instead));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string recompute_value(const Plan& plan) {
  const Recompute& recompute = plan.recompute;
  if (!plan.recompute_per_stage.empty()) return "stage by stage";
  if (recompute.mode == RecomputeMode::full && recompute.full_layers > 0) {
    return fmt::format("full {}", recompute.full_layers);
  }
  return std::string(name_of(recompute.mode));
}

std::string plan_line(const Plan& plan) {
  std::vector<std::string> words = degree_words(plan);
  words.push_back(fmt::format("micro-batch {} × {}", plan.micro_batch, count(plan.microbatches)));
  if (plan.virtual_stages > 1) {
    words.push_back(fmt::format("{} virtual stages", plan.virtual_stages));
  }
  if (plan.pipeline_parallel > 1) {
    words.emplace_back(plan.schedule->name);
  }
  if (plan.sequence_parallel) {
    words.emplace_back("sequence parallel");
  }
  words.push_back(zero_words(plan));
  if (plan.offload != Offload{}) words.push_back(offload_words(plan.offload));
  words.push_back(recompute_words(plan));
  if (plan.rank_order != Plan().rank_order) {
    words.push_back(fmt::format("rank order {}", plan.rank_order));
  }
  if (!plan.collective.empty()) {
    words.push_back(fmt::format("collectives by {}", plan.collective));
  }
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string paragraph(std::string_view label, std::string_view text, const Style& style) {
  constexpr std::size_t kLabelWidth = 15;
  return style.strong(pad_right(label, kLabelWidth)) + wrap(text, kLabelWidth);
}

}  // namespace trainyard
