#include "cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

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
  }
  if (words.empty()) {
    words.emplace_back("one device");
  }
  return words;
}

std::string recompute_words(const Plan& plan) {
  const Recompute& recompute = plan.recompute;
  if (!plan.recompute_per_stage.empty()) return "recompute stage by stage";
  if (recompute.mode == RecomputeMode::full && recompute.full_layers > 0) {
    return fmt::format("recompute {} layers", recompute.full_layers);
  }
  return fmt::format("recompute {}", recompute_name(recompute));
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
  fields.emplace_back("recompute", plan.recompute_per_stage.empty() ? recompute_name(plan.recompute)
                                                                    : "stage by stage");
  fields.emplace_back("schedule", plan.schedule->name);
  return fields;
}

std::string plan_differences(const Plan& plan, const Plan& from) {
  const auto fields = plan_fields(plan);
  const auto others = plan_fields(from);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].second != others[i].second) {
      words.push_back(
          fmt::format("{} {} instead of {}", fields[i].first, fields[i].second, others[i].second));
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string_view recompute_name(const Recompute& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none:
      return "none";
    case RecomputeMode::selective:
      return "selective";
    case RecomputeMode::full:
      return "full";
    case RecomputeMode::automatic:
      return "auto";
  }
  return "";
}

std::string degrees_line(const Plan& plan) {
  return fmt::format("{}", fmt::join(degree_words(plan), " · "));
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
  words.push_back(fmt::format("ZeRO-{}", plan.zero_stage));
  words.push_back(recompute_words(plan));
  return fmt::format("{}", fmt::join(words, " · "));
}

}  // namespace trainyard
