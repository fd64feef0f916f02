#include "simulator/step/loads.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/plan/layer_shard.h"

namespace trainyard {
namespace {

bool is_of_a_pass(StepPass pass) { return pass != StepPass::start && pass != StepPass::finish; }

bool handles_routed_tokens(const Program& program, const Operation& operation) {
  return std::any_of(operation.operands.begin(), operation.operands.end(),
                     [&](const Operand& operand) { return program.buffer(operand.buffer).routed; });
}

bool goes_with_the_batch(const IssuedOperation& issued) {
  const ProgramStream stream = issued.operation->stream;
  return is_of_a_pass(issued.step->pass) && issued.operation->phase != Phase::update &&
         stream != ProgramStream::data_parallel && stream != ProgramStream::copy &&
         stream != ProgramStream::fetch;
}

class LoadMaker {
 public:
  LoadMaker(const PreparedJob& job, const Plan& plan, const RankLayout& layout,
            const StepConditions& conditions)
      : plan_(plan),
        layout_(layout),
        planned_load_(possible_load(job.job.model, layer_shard(plan))) {
    out_.microbatches = plan.microbatches;
    out_.layers = layers_with_mtp(job.job.model);
    const auto seed = static_cast<std::uint64_t>(conditions.seed);
    if (conditions.sequences) {
      out_.has_sequences = true;
      dealt_ = deal(*conditions.sequences, job.job.model, job.job.training, plan, seed);
      out_.tokens = dealt_.tokens;
      out_.flop = dealt_.flop;
      out_.microbatches = static_cast<int>(dealt_.work.front().size());
    }
    if (!conditions.routing) return;
    out_.has_routing = true;
    const Transformer& model = job.job.model;
    for (int layer = 0; layer < out_.layers; ++layer) {
      const std::vector<double> shares =
          expert_shares(*conditions.routing, model.experts, model.experts_per_token, seed, layer);
      expert_loads_.push_back(expert_loads(shares, plan.expert_parallel));
    }
  }

  StepLoads make() {
    std::map<std::array<int, 3>, std::int32_t> of_place;  // ranks of a place have one row
    std::map<std::vector<double>, std::int32_t> known;
    out_.of_rank.reserve(static_cast<std::size_t>(layout_.ranks()));
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const RankCoordinates at = layout_.coordinates(rank);
      const int first_of_group =
          plan_.expert_parallel > 1
              ? layout_.coordinates(layout_.members(Group::expert, rank)[0]).data
              : at.data;
      const auto [place, is_new] = of_place.try_emplace({at.data, at.expert, first_of_group}, -1);
      if (is_new) place->second = number_of(row_of(rank), known);
      out_.of_rank.push_back(place->second);
    }
    if (out_.rows.size() > 1) {
      out_.unlike_because = out_.has_sequences && plan_.data_parallel > 1
                                ? "replicas have unlike sequences"
                                : "ranks have experts of unlike popularity";
    }
    return std::move(out_);
  }

 private:
  std::int32_t number_of(std::vector<double> row,
                         std::map<std::vector<double>, std::int32_t>& known) {
    const auto next = static_cast<std::int32_t>(out_.rows.size());
    const auto [found, is_new] = known.try_emplace(std::move(row), next);
    if (is_new) out_.rows.push_back(found->first);
    return found->second;
  }

  // A row: the tokens of each micro-batch, then the attention of each, then the routed tokens of
  // each micro-batch and layer.
  std::vector<double> row_of(int rank) const {
    const bool routes = out_.has_routing || (out_.has_sequences && plan_.expert_parallel > 1);
    const auto microbatches = static_cast<std::size_t>(out_.microbatches);
    const std::size_t routed = routes ? static_cast<std::size_t>(out_.layers) : 0;
    std::vector<double> row;
    row.reserve(microbatches * (2 + routed));
    const RankCoordinates at = layout_.coordinates(rank);
    if (out_.has_sequences) {
      const auto& work = dealt_.work[static_cast<std::size_t>(at.data)];
      for (const SequenceWork& of : work) row.push_back(of.tokens);
      for (const SequenceWork& of : work) row.push_back(of.attention);
    } else {
      row.assign(2 * microbatches, 1);
    }
    if (!routes) return row;
    for (int microbatch = 0; microbatch < out_.microbatches; ++microbatch) {
      const double tokens = tokens_around(rank, microbatch);
      for (int layer = 0; layer < out_.layers; ++layer) {
        row.push_back(tokens * popularity(at.expert, layer));
      }
    }
    return row;
  }

  // The load of an expert rank over the one that the plan's load_imbalance assumes.
  double popularity(int expert_rank, int layer) const {
    if (!out_.has_routing) return 1;
    return expert_loads_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(expert_rank)] /
           planned_load_;
  }

  // The mean tokens of the replicas whose tokens come to the rank's experts.
  double tokens_around(int rank, int microbatch) const {
    if (!out_.has_sequences) return 1;
    const GroupMembers members = layout_.members(Group::expert, rank);
    double sum = 0;
    for (int i = 0; i < members.size(); ++i) {
      const auto replica = static_cast<std::size_t>(layout_.coordinates(members[i]).data);
      sum += dealt_.work[replica][static_cast<std::size_t>(microbatch)].tokens;
    }
    return sum / members.size();
  }

  const Plan& plan_;
  const RankLayout& layout_;
  double planned_load_;  // the load that the program's operations already have
  DealtSequences dealt_;
  std::vector<std::vector<double>> expert_loads_;  // by layer and rank of an expert group
  StepLoads out_;
};

}  // namespace

std::int32_t StepLoads::of(const Program& program, const IssuedOperation& issued) const {
  if (rows.empty() || !goes_with_the_batch(issued)) return -1;
  const int microbatch = issued.step->microbatch;
  const bool has_experts = rows.front().size() > 2 * static_cast<std::size_t>(microbatches);
  if (has_experts && issued.call->layer >= 0 && handles_routed_tokens(program, *issued.operation)) {
    return 2 * microbatches + microbatch * layers + issued.call->layer;
  }
  if (!has_sequences) return -1;
  return issued.operation->attention.keys > 0 ? microbatches + microbatch : microbatch;
}

Expected<StepLoads> step_loads(const PreparedJob& job, const Plan& plan, const RankLayout& layout,
                               const StepConditions& conditions) {
  if (!conditions.sequences && !conditions.routing) {
    return StepLoads{.microbatches = plan.microbatches};
  }
  if (conditions.routing && plan.capacity_factor > 0) {
    return failure("/simulation/routing",
                   "found it with a capacity factor, where every expert computes its capacity "
                   "whatever comes; allowed: without /plan/capacity_factor");
  }
  return LoadMaker(job, plan, layout, conditions).make();
}

}  // namespace trainyard
