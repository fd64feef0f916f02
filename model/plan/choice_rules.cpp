#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/collective.h"
#include "model/plan/process_groups.h"
#include "model/plan/rules.h"

namespace trainyard {
namespace {

// ---- Memory and the rest --------------------------------------------------------------

constexpr PlanRule kZeroStage = {
    [](const Proposal& p) {
      const int stage = p.request.zero_stage.value_or(0);
      return stage >= 0 && stage <= 3;
    },
    [](const Proposal& p) {
      const int stage = *p.request.zero_stage;
      return refusal("zero_stage", fmt::format("found {}, allowed 0 to 3; nearest {}", stage,
                                               std::clamp(stage, 0, 3)));
    }};

constexpr PlanRule kStackHasZero = {
    [](const Proposal& p) {
      return p.training.stack.zero_stack.empty() ||
             (p.request.zero_stage.value_or(0) == 0 && !p.request.sharding_group);
    },
    [](const Proposal& p) {
      const Stack& stack = p.training.stack;
      const bool staged = p.request.zero_stage.value_or(0) > 0;
      return refusal(staged ? "zero_stage" : "sharding_group",
                     fmt::format("found {}, allowed none with {}, which has no ZeRO; {} has it",
                                 staged ? *p.request.zero_stage : *p.request.sharding_group,
                                 stack.name, stack.zero_stack));
    }};

// The degree of CP or DP, whichever is laid out first: ranks of both hold the same dense states.
Count inner_data_dimension(const Proposal& p) {
  const std::string& order = p.request.rank_order;
  const bool context = order.find("cp") < order.find("dp");
  return context ? Count{p.request.context_parallel} : p.data_parallel;
}

// Whether a sharding group is a part of one row of the inner dimension, or consists of whole rows.
bool shards_lie_in_rows(const Proposal& p, Count group) {
  const Count row = inner_data_dimension(p);
  return divides(group, row) || divides(row, group);
}

constexpr PlanRule kShardingGroup = {
    [](const Proposal& p) {
      const Count group = p.request.sharding_group.value_or(1);
      return divides(group, p.data_parallel * p.request.context_parallel) &&
             shards_lie_in_rows(p, group);
    },
    [](const Proposal& p) {
      const Count ranks = p.data_parallel * p.request.context_parallel;
      const Count found = *p.request.sharding_group;
      const auto in_rows = [&p](Count group) { return shards_lie_in_rows(p, group); };
      const Count row = inner_data_dimension(p);
      const std::string rows =
          row == 1 || row == ranks ? "" : fmt::format(" that divides {} or is its multiple", row);
      return refusal("sharding_group",
                     fmt::format("found {}, allowed a divisor of {} = data_parallel · "
                                 "context_parallel{}; nearest {}",
                                 found, ranks, rows, nearest_divisor(ranks, found, in_rows)));
    }};

constexpr PlanRule kRecomputedLayers = {
    [](const Proposal& p) {
      return p.request.recompute.full_layers >= 0 &&
             p.request.recompute.full_layers <= p.model.layers;
    },
    [](const Proposal& p) {
      return refusal("recompute/full",
                     fmt::format("found {}, allowed 1 to {} layers",
                                 p.request.recompute.full_layers, p.model.layers));
    }};

constexpr PlanRule kRecomputeEntries = {
    [](const Proposal& p) {
      const auto entries = static_cast<int>(p.request.recompute_per_stage.size());
      return entries == 0 || entries == p.request.pipeline_parallel;
    },
    [](const Proposal& p) {
      return refusal("recompute", fmt::format("found {} entries, allowed {}, one a stage",
                                              p.request.recompute_per_stage.size(),
                                              p.request.pipeline_parallel));
    }};

// The first stage whose entry is not legal; the number of entries if all are.
std::size_t bad_recompute(const Proposal& p) {
  const std::vector<Recompute>& stages = p.request.recompute_per_stage;
  const auto bad = std::find_if(stages.begin(), stages.end(), [&p](const Recompute& r) {
    return r.mode == RecomputeMode::automatic || r.full_layers < 0 ||
           r.full_layers > p.model.layers;
  });
  return static_cast<std::size_t>(bad - stages.begin());
}

constexpr PlanRule kRecomputeEntry = {
    [](const Proposal& p) { return bad_recompute(p) == p.request.recompute_per_stage.size(); },
    [](const Proposal& p) {
      const std::size_t stage = bad_recompute(p);
      const Recompute& found = p.request.recompute_per_stage[stage];
      if (found.mode == RecomputeMode::automatic) {
        return refusal(fmt::format("recompute/{}", stage),
                       "found \"auto\", allowed none, selective, full or a number of layers");
      }
      return refusal(
          fmt::format("recompute/{}/full", stage),
          fmt::format("found {}, allowed 1 to {} layers", found.full_layers, p.model.layers));
    }};

constexpr PlanRule kCapacityFactor = {
    [](const Proposal& p) {
      const double factor = p.request.capacity_factor.value_or(1);
      return factor > 0 && factor <= std::numeric_limits<double>::max();
    },
    [](const Proposal& p) {
      return refusal("capacity_factor",
                     fmt::format("found {}, allowed more than 0", *p.request.capacity_factor));
    }};

constexpr PlanRule kLoadImbalance = {
    [](const Proposal& p) {
      return p.request.load_imbalance >= 1 &&
             p.request.load_imbalance <= std::numeric_limits<double>::max();
    },
    [](const Proposal& p) {
      return refusal("load_imbalance",
                     fmt::format("found {}, allowed 1 or more", p.request.load_imbalance));
    }};

// "tp-cp-ep-dp-pp" in any order.
bool is_rank_order(std::string_view order) {
  constexpr std::array<std::string_view, 5> kGroups = {"tp", "cp", "ep", "dp", "pp"};
  if (order.size() != 14) return false;
  for (std::size_t dash = 2; dash < order.size(); dash += 3) {
    if (order[dash] != '-') return false;
  }
  return std::all_of(kGroups.begin(), kGroups.end(), [order](std::string_view group) {
    for (std::size_t i = 0; i < order.size(); i += 3) {
      if (order[i] == group[0] && order[i + 1] == group[1]) return true;
    }
    return false;
  });
}

constexpr PlanRule kRankOrder = {
    [](const Proposal& p) { return is_rank_order(p.request.rank_order); },
    [](const Proposal& p) {
      return refusal("rank_order",
                     fmt::format("found {}, allowed tp, cp, ep, dp and pp in any order, as in "
                                 "\"tp-cp-ep-dp-pp\"",
                                 quoted(p.request.rank_order)));
    }};

Plan placed_plan(const Proposal& p) {
  return plan_of_degrees(p.request, static_cast<int>(p.data_parallel));
}

constexpr PlanRule kExpertsLieInRows = {
    [](const Proposal& p) {
      return p.model.experts == 0 || p.request.pipeline_parallel == 1 ||
             p.request.rank_order.ends_with("pp") || expert_groups_are_alike(placed_plan(p));
    },
    [](const Proposal& p) {
      return refusal("rank_order",
                     fmt::format("found {}, allowed one that ends with pp: the experts' groups are "
                                 "no parts or multiples of the {} ranks that a stage has in a row",
                                 quoted(p.request.rank_order),
                                 process_groups(placed_plan(p)).pipeline.stride));
    }};

bool is_collective(std::string_view name) {
  const auto algorithms = collective_algorithms();
  return std::any_of(algorithms.begin(), algorithms.end(),
                     [name](const CollectiveAlgorithm* a) { return a->name == name; });
}

constexpr PlanRule kCollective = {
    [](const Proposal& p) {
      return p.request.collective.empty() || is_collective(p.request.collective);
    },
    [](const Proposal& p) {
      std::vector<std::string_view> names;
      for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
        names.push_back(algorithm->name);
      }
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      return refusal("collective", fmt::format("found {}, allowed {}", quoted(p.request.collective),
                                               fmt::join(names, ", ")));
    }};

constexpr PlanRule kPrecision = {
    [](const Proposal& p) { return p.device.supports(p.training.precision); },
    [](const Proposal& p) {
      std::vector<std::string_view> names;
      for (const PrecisionRecipe& recipe : precision_recipes()) {
        if (p.device.supports(recipe)) names.push_back(recipe.name);
      }
      return Error{"/training/precision",
                   fmt::format("found {}, which {} does not support; allowed {}",
                               p.training.precision.name, p.device.name, fmt::join(names, ", "))};
    }};

// Offload to NVMe also crosses the link to the host.
constexpr PlanRule kOffload = {
    [](const Proposal& p) {
      return p.request.offload == Offload{} || p.device.host_bandwidth > BytesPerSecond(0);
    },
    [](const Proposal& p) {
      return refusal("offload", fmt::format("found some, allowed none: the host_bandwidth of {} is "
                                            "not known",
                                            p.device.name));
    }};

// MTP layers fetch the matrix that they share once more; those copies are not priced.
constexpr PlanRule kOffloadBesideMtp = {
    [](const Proposal& p) {
      return can_offload(p.model, p.training, p.request.offload,
                         zero_stage_of(p.request, p.training.stack));
    },
    [](const Proposal& p) {
      const bool below = can_offload(p.model, p.training, p.request.offload, 0);
      return refusal("offload", below ? "found optimizer, which has the only weights under ZeRO-3, "
                                        "allowed activations beside the model's mtp_layers"
                                      : "found parameters or gradients, allowed optimizer and "
                                        "activations beside the model's mtp_layers");
    }};

constexpr std::array kChoiceRules = {
    kPrecision,        kZeroStage,      kStackHasZero,   kShardingGroup,   kRecomputedLayers,
    kRecomputeEntries, kRecomputeEntry, kCapacityFactor, kLoadImbalance,   kRankOrder,
    kExpertsLieInRows, kCollective,     kOffload,        kOffloadBesideMtp};

}  // namespace

int zero_stage_of(const PlanRequest& request, const Stack& stack) {
  if (request.zero_stage) return *request.zero_stage;
  return request.sharding_group ? 3 : stack.zero_stage;
}

bool can_offload(const Transformer& model, const Training& training, const Offload& offload,
                 int zero_stage) {
  const bool only_master_weights = zero_stage >= 3 && !training.stack.keeps_weight_copy &&
                                   training.precision.master_weight_bytes > 0;
  const OffloadTarget weights = only_master_weights ? offload.optimizer : offload.parameters;
  return model.mtp_layers == 0 ||
         (weights == OffloadTarget::none && offload.parameters == OffloadTarget::none &&
          offload.gradients == OffloadTarget::none);
}

std::span<const PlanRule> choice_rules() { return kChoiceRules; }

}  // namespace trainyard
