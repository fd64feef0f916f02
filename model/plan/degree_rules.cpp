#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/plan/rules.h"

namespace trainyard {
namespace {

// ---- Numbers that must be positive ----------------------------------------------------

struct PositiveKey {
  std::string_view name;
  int (*value)(const PlanRequest& request);
};

constexpr std::array<PositiveKey, 9> kPositiveKeys = {{
    {"tensor_parallel", [](const PlanRequest& r) { return r.tensor_parallel; }},
    {"context_parallel", [](const PlanRequest& r) { return r.context_parallel; }},
    {"pipeline_parallel", [](const PlanRequest& r) { return r.pipeline_parallel; }},
    {"virtual_stages", [](const PlanRequest& r) { return r.virtual_stages.value_or(1); }},
    {"data_parallel", [](const PlanRequest& r) { return r.data_parallel.value_or(1); }},
    {"expert_parallel", [](const PlanRequest& r) { return r.expert_parallel; }},
    {"expert_tensor_parallel", [](const PlanRequest& r) { return r.expert_tensor_parallel; }},
    {"micro_batch", [](const PlanRequest& r) { return r.micro_batch; }},
    {"sharding_group", [](const PlanRequest& r) { return r.sharding_group.value_or(1); }},
}};

const PositiveKey* not_positive(const PlanRequest& request) {
  const auto* key = std::find_if(kPositiveKeys.begin(), kPositiveKeys.end(),
                                 [&](const PositiveKey& k) { return k.value(request) < 1; });
  return key == kPositiveKeys.end() ? nullptr : key;
}

constexpr PlanRule kPositive = {
    [](const Proposal& p) { return not_positive(p.request) == nullptr; },
    [](const Proposal& p) {
      const PositiveKey* key = not_positive(p.request);
      return refusal(key->name, fmt::format("found {}, allowed 1 or more", key->value(p.request)));
    }};

constexpr PlanRule kClusterCountable = {
    [](const Proposal& p) { return p.devices <= kMostRanks; },
    [](const Proposal& p) {
      return Error{"/cluster/nodes",
                   fmt::format("found {} devices, allowed {} at most", p.devices, kMostRanks)};
    }};

// ---- Tensor parallelism and the network's shapes --------------------------------------

bool heads_split(const Proposal& p, Count t) { return divides(t, p.model.attention_heads); }

// A rank holds whole KV heads, or one KV head is replicated over a whole number of ranks.
bool kv_heads_split(const Proposal& p, Count t) {
  const Count kv_heads = p.model.kv_heads;
  return p.model.latent_attention || divides(t, kv_heads) || divides(kv_heads, t);
}

bool has_dense_mlp(const Transformer& model) {
  return model.experts == 0 || model.dense_layers > 0 || model.moe_every > 1;
}

Count shared_ffn_size(const Transformer& model) {
  return static_cast<Count>(shared_expert_width(model));
}

bool mlp_splits(const Proposal& p, Count t) {
  return (!has_dense_mlp(p.model) || divides(t, p.model.ffn_size)) &&
         divides(t, shared_ffn_size(p.model));
}

// With sequence parallelism a rank keeps 1/t of its s/c tokens between the tensor-parallel blocks.
bool tokens_split(const Proposal& p, Count t) {
  return !p.sequence_parallel ||
         divides(t, p.training.sequence_length / std::max(1, p.request.context_parallel));
}

bool tensor_parallel_fits(const Proposal& p, Count t) {
  return heads_split(p, t) && kv_heads_split(p, t) && mlp_splits(p, t) && tokens_split(p, t);
}

// If data_parallel is named, the one value of t that fills the cluster, if the network allows it.
Count nearest_tensor_parallel(const Proposal& p) {
  const PlanRequest& r = p.request;
  const Count stages = saturating_product({r.context_parallel, r.pipeline_parallel});
  const Count others = saturating_product({stages, r.data_parallel.value_or(1)});
  const bool fills = r.data_parallel && divides(others, p.devices);
  if (fills && tensor_parallel_fits(p, p.devices / others)) return p.devices / others;
  const Count ranks = divides(stages, p.devices) ? p.devices / stages : p.devices;
  return nearest_divisor(ranks, r.tensor_parallel,
                         [&p](Count t) { return tensor_parallel_fits(p, t); });
}

Error refuse_tensor_parallel(const Proposal& p, std::string_view allowed) {
  return refusal("tensor_parallel",
                 fmt::format("found {}, allowed {}; nearest {}", p.request.tensor_parallel, allowed,
                             nearest_tensor_parallel(p)));
}

constexpr PlanRule kHeadsSplit = {
    [](const Proposal& p) { return heads_split(p, p.request.tensor_parallel); },
    [](const Proposal& p) {
      return refuse_tensor_parallel(
          p, fmt::format("a divisor of the {} attention heads", p.model.attention_heads));
    }};

constexpr PlanRule kKvHeadsSplit = {
    [](const Proposal& p) { return kv_heads_split(p, p.request.tensor_parallel); },
    [](const Proposal& p) {
      return refuse_tensor_parallel(
          p, fmt::format("a divisor or a multiple of the {} KV heads", p.model.kv_heads));
    }};

constexpr PlanRule kMlpSplits = {
    [](const Proposal& p) { return mlp_splits(p, p.request.tensor_parallel); },
    [](const Proposal& p) {
      const bool dense =
          has_dense_mlp(p.model) && !divides(p.request.tensor_parallel, p.model.ffn_size);
      return refuse_tensor_parallel(
          p, dense ? fmt::format("a divisor of ffn_size {}", p.model.ffn_size)
                   : fmt::format("a divisor of the shared experts' width {}",
                                 shared_ffn_size(p.model)));
    }};

// ---- The degrees fill the cluster -----------------------------------------------------

bool context_fits(const Proposal& p, Count c) {
  const bool heads = p.request.context_parallel_algorithm != ContextAlgorithm::ulysses ||
                     divides(c, p.model.attention_heads / p.request.tensor_parallel);
  return heads && divides(c, p.training.sequence_length);
}

Count nearest_context_parallel(const Proposal& p) {
  return nearest_divisor(p.devices / p.request.tensor_parallel, p.request.context_parallel,
                         [&p](Count c) { return context_fits(p, c); });
}

// The first of t, c, p that does not divide the devices left to it.
Error refuse_replica(const Proposal& p) {
  const PlanRequest& r = p.request;
  if (!divides(r.tensor_parallel, p.devices)) {
    return refuse_tensor_parallel(p, fmt::format("a divisor of the {} devices", p.devices));
  }
  const Count after_tensor = p.devices / r.tensor_parallel;
  const auto message = [&p](Count found, Count left, std::string_view degrees, Count nearest) {
    return fmt::format("found {}, allowed a divisor of {} = {} devices / {}; nearest {}", found,
                       left, p.devices, degrees, nearest);
  };
  if (!divides(r.context_parallel, after_tensor)) {
    return refusal("context_parallel", message(r.context_parallel, after_tensor, "tensor_parallel",
                                               nearest_context_parallel(p)));
  }
  const Count after_context = after_tensor / r.context_parallel;
  const Count nearest = nearest_divisor(after_context, r.pipeline_parallel, [&p](Count stages) {
    return saturating_product({stages, p.virtual_stages}) <= Count{p.model.layers} + 2;
  });
  return refusal("pipeline_parallel",
                 message(r.pipeline_parallel, after_context, "(tensor_parallel · context_parallel)",
                         std::max<Count>(1, nearest)));
}

constexpr PlanRule kReplicaFits = {[](const Proposal& p) { return divides(p.replica, p.devices); },
                                   refuse_replica};

constexpr PlanRule kDegreesFillCluster = {
    [](const Proposal& p) {
      return saturating_product({p.replica, p.data_parallel}) == p.devices;
    },
    [](const Proposal& p) {
      return refusal("data_parallel",
                     fmt::format("found {}, allowed {} = {} devices / (tensor_parallel · "
                                 "context_parallel · pipeline_parallel)",
                                 p.data_parallel, p.devices / p.replica, p.devices));
    }};

// ---- Sequence -------------------------------------------------------------------------

constexpr PlanRule kSequenceSplits = {
    [](const Proposal& p) { return context_fits(p, p.request.context_parallel); },
    [](const Proposal& p) {
      const PlanRequest& r = p.request;
      const bool sequence = !divides(r.context_parallel, p.training.sequence_length);
      const std::string allowed =
          sequence ? fmt::format("a divisor of sequence_length {}", p.training.sequence_length)
                   : fmt::format(
                         "a divisor of the {} attention heads of a tensor-parallel rank "
                         "(ulysses)",
                         p.model.attention_heads / r.tensor_parallel);
      return refusal("context_parallel",
                     fmt::format("found {}, allowed {}; nearest {}", r.context_parallel, allowed,
                                 nearest_context_parallel(p)));
    }};

constexpr PlanRule kTokensSplit = {
    [](const Proposal& p) { return tokens_split(p, p.request.tensor_parallel); },
    [](const Proposal& p) {
      const bool is_choice = p.model.experts == 0;
      return refuse_tensor_parallel(
          p, fmt::format("a divisor of the {} tokens of a context-parallel rank "
                         "(sequence_parallel{})",
                         p.training.sequence_length / p.request.context_parallel,
                         is_choice ? "; false does without" : ""));
    }};

constexpr PlanRule kExpertsNeedSequenceParallel = {
    [](const Proposal& p) {
      return p.sequence_parallel || p.model.experts == 0 || p.request.tensor_parallel == 1;
    },
    [](const Proposal& p) {
      return refusal(
          "sequence_parallel",
          fmt::format("found false, allowed true: experts with tensor_parallel {} need it",
                      p.request.tensor_parallel));
    }};

// ---- Experts --------------------------------------------------------------------------

constexpr PlanRule kExpertsExist = {
    [](const Proposal& p) {
      return p.model.experts > 0 ||
             (p.request.expert_parallel == 1 && p.request.expert_tensor_parallel == 1);
    },
    [](const Proposal& p) {
      const bool parallel = p.request.expert_parallel > 1;
      return refusal(
          parallel ? "expert_parallel" : "expert_tensor_parallel",
          fmt::format("found {}, allowed 1: the network has no experts",
                      parallel ? p.request.expert_parallel : p.request.expert_tensor_parallel));
    }};

Count stage_ranks(const Proposal& p) { return p.devices / p.request.pipeline_parallel; }

bool expert_tensor_fits(const Proposal& p, Count e_t) {
  return e_t == 1 || (divides(e_t, stage_ranks(p)) && divides(e_t, p.model.expert_ffn_size));
}

constexpr PlanRule kExpertTensorFits = {
    [](const Proposal& p) { return expert_tensor_fits(p, p.request.expert_tensor_parallel); },
    [](const Proposal& p) {
      const Count found = p.request.expert_tensor_parallel;
      return refusal(
          "expert_tensor_parallel",
          fmt::format("found {}, allowed a divisor of expert_ffn_size {} and of the {} ranks of a "
                      "stage; nearest {}",
                      found, p.model.expert_ffn_size, stage_ranks(p),
                      nearest_divisor(stage_ranks(p), found,
                                      [&p](Count e_t) { return expert_tensor_fits(p, e_t); })));
    }};

bool experts_split(const Proposal& p, Count e) {
  return e == 1 || (divides(e, p.model.experts) &&
                    divides(e, stage_ranks(p) / p.request.expert_tensor_parallel));
}

constexpr PlanRule kExpertsSplit = {
    [](const Proposal& p) { return experts_split(p, p.request.expert_parallel); },
    [](const Proposal& p) {
      const Count found = p.request.expert_parallel;
      return refusal(
          "expert_parallel",
          fmt::format("found {}, allowed a divisor of the {} experts and of {} = "
                      "tensor_parallel · context_parallel · data_parallel / "
                      "expert_tensor_parallel; nearest {}",
                      found, p.model.experts, stage_ranks(p) / p.request.expert_tensor_parallel,
                      nearest_divisor(p.model.experts, found,
                                      [&p](Count e) { return experts_split(p, e); })));
    }};

constexpr std::array kDegreeRules = {kPositive,           kClusterCountable,
                                     kHeadsSplit,         kKvHeadsSplit,
                                     kMlpSplits,          kReplicaFits,
                                     kDegreesFillCluster, kSequenceSplits,
                                     kTokensSplit,        kExpertsNeedSequenceParallel,
                                     kExpertsExist,       kExpertTensorFits,
                                     kExpertsSplit};

}  // namespace

std::span<const PlanRule> degree_rules() { return kDegreeRules; }

}  // namespace trainyard
