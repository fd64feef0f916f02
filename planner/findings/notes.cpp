#include "planner/findings/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/schedule/schedule.h"
#include "planner/offered.h"
#include "planner/rank_orders.h"

namespace trainyard {
namespace {

struct Noted {
  const Job& job;
  const SearchOptions& options;
  const Plan& plan;
};

// ---- Fixed without effect -------------------------------------------------------------

template <typename T>
const T* fixed(const std::vector<T>& values) {
  return values.size() == 1 ? &values.front() : nullptr;
}

std::string unused_sequence_parallelism(const Noted& noted) {
  const std::vector<bool>& named = noted.options.space.sequence_parallel;
  const bool wanted = (named.size() == 1 && named[0]) ||
                      (named.empty() && noted.options.base.sequence_parallel.value_or(false));
  if (!wanted || noted.plan.sequence_parallel) return "";
  return "sequence_parallel true has no effect without tensor parallelism";
}

std::string unused_context_algorithm(const Noted& noted) {
  const std::string* named = fixed(noted.options.space.context_parallel_algorithm);
  if (named == nullptr || noted.plan.context_parallel > 1) return "";
  return fmt::format("context_parallel_algorithm {} has no effect without context parallelism",
                     *named);
}

std::string unused_schedule(const Noted& noted) {
  const std::string* named = fixed(noted.options.space.schedule);
  if (named == nullptr || noted.plan.pipeline_parallel > 1) return "";
  const Stack& stack = noted.job.training.stack;
  const bool known = stack.schedules.empty() ||
                     std::ranges::find(stack.schedules, *named) != stack.schedules.end();
  return fmt::format("schedule {} has no effect without a pipeline{}", *named,
                     known ? "" : fmt::format(", with which {} does not run it", stack.name));
}

std::string unused_sharding_group(const Noted& noted) {
  const int* named = fixed(noted.options.space.sharding_group.values);
  if (named == nullptr || noted.plan.zero_stage > 0) return "";
  const std::string size = *named == kShardOverAll ? "all" : fmt::format("{}", *named);
  return fmt::format("sharding_group {} has no effect under ZeRO-0, which shards nothing", size);
}

// ---- What the stack is not known to have ----------------------------------------------

std::vector<std::string> known_offloads(const Stack& stack) {
  std::vector<std::string> known;
  for (const OffloadChoice& choice : kOffloads) {
    if (choice.zero_stages == nullptr || (stack.offload.*choice.zero_stages).empty()) continue;
    known.push_back(fmt::format("{} under ZeRO-{}", choice.name,
                                fmt::join(stack.offload.*choice.zero_stages, " and ")));
  }
  if (stack.offloads_activations) {
    known.emplace_back("activations under ZeRO-3 without a pipeline and recomputation");
  }
  return known;
}

bool offloads_instead_of_recomputing(const Stack& stack, const Plan& plan) {
  return stack.offloads_activations && plan.zero_stage == 3 && plan.pipeline_parallel == 1 &&
         plan.recompute.mode == RecomputeMode::none;
}

std::string offload_of_no_stack(const Noted& noted) {
  const Stack& stack = noted.job.training.stack;
  const Plan& plan = noted.plan;
  if (plan.offload == Offload{} || !is_software(stack)) return "";
  Offload kind = plan.offload;
  kind.activation_layers = 0;  // whatever their number
  const auto* choice = std::ranges::find(kOffloads, kind, &OffloadChoice::offload);
  const bool named = choice != kOffloads.end();
  if (named) {
    const std::vector<int>& stages = stack.offload.*choice->zero_stages;
    if (std::ranges::find(stages, plan.zero_stage) != stages.end()) return "";
    const bool activations = choice->offload == Offload{.activations = OffloadTarget::host};
    if (activations && offloads_instead_of_recomputing(stack, plan)) return "";
  }
  const std::vector<std::string> known = known_offloads(stack);
  return fmt::format(
      "offload {} under ZeRO-{} was asked for, and {} is not known to have it; it has {}",
      named ? choice->name : "of this kind", plan.zero_stage, stack.name,
      known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::string order_of_no_stack(const Noted& noted) {
  const Stack& stack = noted.job.training.stack;
  if (runs_order(noted.job, noted.plan)) return "";
  const std::string known = stack.rank_orders.empty()
                                ? PlanRequest().rank_order
                                : fmt::format("{}", fmt::join(stack.rank_orders, " and "));
  return fmt::format("rank order {} is not known of {}, which has {}", noted.plan.rank_order,
                     stack.name, known);
}

std::string group_of_no_stack(const Noted& noted) {
  const Stack& stack = noted.job.training.stack;
  const Plan& plan = noted.plan;
  const bool over_all = plan.sharding_group == plan.data_parallel * plan.context_parallel;
  const bool known =
      noted.job.model.experts == 0 &&
      std::ranges::find(stack.grouped_sharding, plan.zero_stage) != stack.grouped_sharding.end();
  if (plan.zero_stage == 0 || over_all || known || !is_software(stack)) return "";
  return fmt::format("states of ZeRO-{} sharded over groups of {}{} are not known of {}",
                     plan.zero_stage, plan.sharding_group,
                     noted.job.model.experts > 0 ? " beside experts" : "", stack.name);
}

// Words for the degree of the plan with which the stack does not run this ZeRO stage.
std::string_view beside(const Noted& noted) {
  const Plan& plan = noted.plan;
  Plan without = plan;
  const auto helps = [&](int Plan::*degree, int value) {
    without = plan;
    without.*degree = value;
    return plan.*degree != value && offers_sharding(noted.job, without);
  };
  if (helps(&Plan::pipeline_parallel, 1)) return " under a pipeline";
  if (helps(&Plan::tensor_parallel, 1)) return " beside tensor parallelism";
  if (helps(&Plan::context_parallel, 1)) return " beside context parallelism";
  if (helps(&Plan::expert_parallel, 1)) return " beside expert parallelism";
  return "";
}

std::string zero_of_no_stack(const Noted& noted) {
  if (offers_sharding(noted.job, noted.plan)) return "";
  return fmt::format("ZeRO-{}{} is not known of {}", noted.plan.zero_stage, beside(noted),
                     noted.job.training.stack.name);
}

std::string pipeline_of_no_stack(const Noted& noted) {
  const Stack& stack = noted.job.training.stack;
  if (!offers_pipeline(stack, noted.plan)) {
    return fmt::format(
        "{} not known of {}",
        stack.limits.pipelines ? "an order of passes of its own is" : "pipelines are", stack.name);
  }
  if (offers_chunks(noted.job, noted.plan)) return "";
  const Plan& plan = noted.plan;
  const bool several = plan.virtual_stages > 1 && plan.schedule->route == Route::loop;
  if (several && plan.pipeline_parallel < stack.limits.interleaved_stages) {
    return fmt::format("{} stages of several chunks are not known of {}", plan.pipeline_parallel,
                       stack.name);
  }
  return fmt::format("a chunk of the pipeline without layers is not known of {}", stack.name);
}

std::string sequence_of_no_stack(const Noted& noted) {
  const Stack& stack = noted.job.training.stack;
  if (offers_sequence_parallel(stack, noted.plan)) return "";
  return fmt::format("tensor parallelism with{} sequence parallelism is not known of {}",
                     noted.plan.sequence_parallel ? "" : "out", stack.name);
}

std::string context_of_no_stack(const Noted& noted) {
  const Plan& plan = noted.plan;
  const Stack& stack = noted.job.training.stack;
  if (offers_context(noted.job, plan)) return "";
  if (stack.limits.context_algorithms && stack.limits.context_algorithms->empty()) {
    return fmt::format("context parallelism is not known of {}", stack.name);
  }
  return fmt::format("context parallelism {} over {} ranks is not known of {}",
                     name_of(plan.context_parallel_algorithm), plan.context_parallel, stack.name);
}

std::string experts_of_no_stack(const Noted& noted) {
  const Plan& plan = noted.plan;
  if (offers_experts(noted.job, plan)) return "";
  return fmt::format("experts over {} ranks and cut over {} are not known of {}",
                     plan.expert_parallel, plan.expert_tensor_parallel,
                     noted.job.training.stack.name);
}

std::string recompute_of_no_stack(const Noted& noted) {
  const Plan& plan = noted.plan;
  const Stack& stack = noted.job.training.stack;
  if (offers_recompute(stack, plan)) return "";
  if (!stack.limits.selective_recompute && recomputes(plan, RecomputeMode::selective)) {
    return fmt::format("recompute selective is not known of {}", stack.name);
  }
  const int layers = plan.recompute.full_layers;
  return fmt::format(
      "recompute {} is not known of {}, which repeats {}",
      plan.recompute_per_stage.empty() ? fmt::format("{} layer{}", layers, layers == 1 ? "" : "s")
                                       : "stage by stage",
      stack.name,
      stack.partial_recompute == PartialRecompute::none ? "all layers or none"
                                                        : "as many in every chunk of a pipeline");
}

constexpr std::array kNotes = {
    unused_sequence_parallelism, unused_context_algorithm, unused_schedule,
    unused_sharding_group,       offload_of_no_stack,      order_of_no_stack,
    group_of_no_stack,           zero_of_no_stack,         recompute_of_no_stack,
    pipeline_of_no_stack,        sequence_of_no_stack,     context_of_no_stack,
    experts_of_no_stack};

// The note with this text; it is added where there is none.
PlanNote& note_of(std::vector<PlanNote>& notes, std::string text) {
  const auto known = std::ranges::find(notes, text, &PlanNote::text);
  if (known != notes.end()) return *known;
  notes.push_back({.text = std::move(text), .plans = {}});
  return notes.back();
}

// A note where the first plan does not fit at the high end of its memory's interval; it names the
// first plan of the list that does.
std::optional<PlanNote> note_on_room(const Job& job, const std::vector<Candidate>& plans) {
  const auto has_room = [&job](const Candidate& candidate) {
    const Estimate& found = candidate.estimate;
    return found.feasible && found.peak_memory_high <= job.cluster.device.memory;
  };
  if (plans.empty() || !plans.front().estimate.feasible || has_room(plans.front())) {
    return std::nullopt;
  }
  const Estimate& best = plans.front().estimate;
  std::string text = fmt::format(
      "at the high end of the interval of its memory, {:.2f} times the peak, it does "
      "not fit",
      best.peak_memory_high / best.peak_memory);
  const auto roomy = std::ranges::find_if(plans, has_room);
  text += roomy == plans.end()
              ? std::string("; a robust plan (--robust) leaves that room")
              : fmt::format("; plan {} does, and takes {:.2f} % longer", roomy - plans.begin() + 1,
                            100 * (roomy->estimate.step_time / best.step_time - 1));
  return PlanNote{.text = std::move(text), .plans = {0}};
}

}  // namespace

std::vector<PlanNote> notes_on(const Job& job, const SearchOptions& options,
                               const std::vector<Candidate>& plans,
                               const std::optional<Improvement>& improvement) {
  std::vector<PlanNote> notes;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const auto& find : kNotes) {
      std::string text = find({job, options, plans[i].plan});
      if (!text.empty()) note_of(notes, std::move(text)).plans.push_back(i);
    }
  }
  if (auto room = note_on_room(job, plans)) notes.push_back(*std::move(room));
  if (!improvement) return notes;
  for (const auto& find : kNotes) {
    std::string text = find({job, options, improvement->candidate.plan});
    if (!text.empty()) note_of(notes, std::move(text)).improvement = true;
  }
  return notes;
}

}  // namespace trainyard
