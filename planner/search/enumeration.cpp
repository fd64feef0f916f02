#include "planner/search/enumeration.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/cost/memory/memory.h"
#include "model/plan/process_groups.h"
#include "model/plan/validity.h"
#include "planner/offered.h"
#include "planner/rank_orders.h"

namespace trainyard {
namespace {

// The divisors of `number` that the space allows and that divide `of` as well (heads, tokens, …).
std::vector<int> degrees_within(const Numbers& space, std::int64_t number, std::int64_t of) {
  std::vector<int> result;
  for (const int divisor : divisors(number)) {
    if (of % divisor == 0 && space.has(divisor)) {
      result.push_back(divisor);
    }
  }
  return result;
}

// The index of a list among those that are known; it is added where it is not.
template <typename T>
std::size_t index_of(std::vector<std::vector<T>>& lists, std::vector<T> list) {
  const auto known = std::ranges::find(lists, list);
  const auto index = static_cast<std::size_t>(known - lists.begin());
  if (known == lists.end()) lists.push_back(std::move(list));
  return index;
}

// The parts of a plan that decide where its process groups lie.
Plan plan_of(const Degrees& degrees) {
  const PlanRequest request{.tensor_parallel = degrees.tensor,
                            .context_parallel = degrees.context,
                            .pipeline_parallel = degrees.pipeline,
                            .expert_parallel = degrees.expert,
                            .expert_tensor_parallel = degrees.expert_tensor};
  return plan_of_degrees(request, degrees.data);
}

class Enumerator {
 public:
  Enumerator(const PreparedJob& job, const SearchSpace& space, const PlanRequest& base,
             const std::function<bool()>& is_over, NamedStages stages)
      : prepared_(job), job_(job.job), space_(space), base_(base), is_over_(is_over) {
    result_.any_stages = stages == NamedStages::any && !space.zero_stage.empty();
  }

  Enumeration run() {
    result_.job = job_;
    result_.has_experts = job_.model.experts > 0;
    result_.recomputes = recompute_choices(space_, job_.training.stack);
    add_zero_stages();
    Plan sharded;
    sharded.zero_stage = 3;
    result_.sharding_drops_weights = !keeps_weights(job_.training, sharded);
    result_.sharding_groups = space_.sharding_group;
    add_grouped_stages();
    result_.offloads = offloads_of(job_, space_, base_);
    result_.sequence_choices = sequence_choices(job_.model, job_.training.stack, space_, base_);
    add_placements();
    const int devices = job_.cluster.devices();
    for (const int tensor :
         degrees_within(space_.tensor_parallel, devices, job_.model.attention_heads)) {
      for (const int context : degrees_within(space_.context_parallel, devices / tensor,
                                              job_.training.sequence_length)) {
        add_pipelines(tensor, context, devices / (tensor * context));
      }
    }
    order();
    list_shardings();
    return std::move(result_);
  }

 private:
  // The stages of the space that the stack offers without and with a pipeline.
  void add_zero_stages() {
    const Stack& stack = job_.training.stack;
    const auto offers = [&](int stage, int pipeline) {
      return result_.any_stages || offers_zero_stage(stack, stage, pipeline);
    };
    for (const int stage : {0, 1, 2, 3}) {
      const bool runs = stage == 0 || stack.zero_stack.empty();
      if (!runs || !space_.zero_stage.has(stage)) continue;
      if (offers(stage, 1)) result_.zero_stages.push_back(stage);
      if (offers(stage, 2)) result_.pipeline_zero_stages.push_back(stage);
    }
  }

  bool may_recompute(int stages) const {
    return std::any_of(result_.recomputes.begin(), result_.recomputes.end(),
                       [stages](const RecomputeChoice& choice) { return choice.is_for(stages); });
  }

  // The orders of the stack, where neither the space nor the plan names any.
  void add_placements() {
    const std::vector<std::string>& of_stack = job_.training.stack.rank_orders;
    orders_of_stack_ = space_.rank_order.empty() && !of_stack.empty() &&
                       base_.rank_order == PlanRequest().rank_order;
    const auto or_base = [](const std::vector<std::string>& values, const std::string& base) {
      return values.empty() ? std::vector<std::string>{base} : values;
    };
    const std::vector<std::string>& orders = orders_of_stack_ ? of_stack : space_.rank_order;
    for (const std::string& order : or_base(orders, base_.rank_order)) {
      for (const std::string& collective : or_base(space_.collective, base_.collective)) {
        result_.placements.push_back({order, collective});
      }
    }
  }

  void add_grouped_stages() {
    if (job_.model.experts > 0 || !space_.sharding_group.empty()) return;
    const Stack& stack = job_.training.stack;
    std::ranges::copy_if(stack.grouped_sharding, std::back_inserter(result_.grouped_stages),
                         [this](int stage) { return holds(result_.zero_stages, stage); });
    result_.groups_only_add = stack.sharded_update_per_rank <= Seconds(0);
  }

  // Experts must lie in whole rows, even where the order was named.
  bool may_lie(Plan plan, const std::string& order) const {
    plan.rank_order = order;
    if (result_.has_experts && !expert_groups_are_alike(plan)) return false;
    return !orders_of_stack_ || leaves_replicas(job_.model, plan, order);
  }

  // These degrees once for each class of placements under which their layers cost the same, with
  // the other placements of that class and the sizes of sharding groups.
  std::vector<Degrees> placed(Degrees degrees) {
    if (is_over_ && !result_.degrees.empty() && is_over_()) result_.complete = false;
    if (!result_.complete) return {};
    const Plan plan = plan_of(degrees);
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < result_.placements.size(); ++i) {
      if (may_lie(plan, result_.placements[i].rank_order)) indices.push_back(i);
    }
    if (indices.empty()) return {};
    const int ranks = plan.sharding_group;
    const std::vector<int> sizes = group_sizes(ranks, degrees.context);
    const std::vector<int> parts =
        space_.sharding_group.empty() ? sizes : degrees_within(space_.sharding_group, ranks, ranks);
    degrees.groups = index_of(result_.group_sizes, sizes);
    std::vector<Degrees> all;
    for (const PlacementClass& one :
         placement_classes(prepared_, result_.placements, indices, plan, parts)) {
      degrees.placement = one.front();
      degrees.others = index_of(result_.other_placements, {one.begin() + 1, one.end()});
      all.push_back(degrees);
    }
    return all;
  }

  // Sizes of sharding groups other than all ranks, and other than 1, which shards nothing.
  std::vector<int> group_sizes(int ranks, int context) const {
    if (result_.grouped_stages.empty()) return {};
    std::vector<int> sizes = divisors(ranks);
    std::erase_if(sizes, [&](int size) {
      return size == 1 || size == ranks || !offers_group(job_.training.stack, size, context);
    });
    return sizes;
  }

  // Over one rank all algorithms are the same: the first that the space allows.
  std::vector<ContextAlgorithm> context_choices(int context, int tensor) const {
    if (context > 1) return known_context_algorithms(space_, job_, context, tensor);
    const std::vector<std::string>& named = space_.context_parallel_algorithm;
    for (std::size_t i = 0; i < kContextAlgorithms.size(); ++i) {
      if (allows(named, kContextAlgorithms[i])) return {static_cast<ContextAlgorithm>(i)};
    }
    return {};
  }

  // These degrees in every variant of how they communicate.
  void add_variants(const Degrees& bare) {
    const std::vector<ContextAlgorithm> algorithms = context_choices(bare.context, bare.tensor);
    const std::vector<bool> none = {false};  // nothing to choose on one tensor rank
    const std::vector<bool>& sequences = bare.tensor == 1 ? none : result_.sequence_choices;
    for (Degrees& degrees : placed(bare)) {
      for (const bool sequence : sequences) {
        for (const ContextAlgorithm algorithm : algorithms) {
          degrees.sequence_parallel = sequence;
          degrees.algorithm = algorithm;
          result_.degrees.push_back(degrees);
        }
      }
    }
  }

  bool may_have_stages(int pipeline) const {
    const Numbers& named = space_.pipeline_parallel;
    const bool offered =
        pipeline == 1 || job_.training.stack.limits.pipelines || names_several(named);
    return offered && named.has(pipeline);
  }

  void add_pipelines(int tensor, int context, int replicas) {
    for (const int pipeline : divisors(replicas)) {
      const int data = replicas / pipeline;
      if (pipeline > job_.model.layers + 2 || job_.training.global_batch % data != 0 ||
          !may_have_stages(pipeline) || !space_.data_parallel.has(data) ||
          !may_recompute(pipeline)) {
        continue;
      }
      const std::size_t shapes = shapes_of(pipeline, data);
      if (!result_.shapes[shapes].empty()) {
        add_experts({.tensor = tensor,
                     .context = context,
                     .pipeline = pipeline,
                     .data = data,
                     .shapes = shapes});
      }
    }
  }

  void add_experts(Degrees degrees) {
    if (job_.model.experts == 0) {
      if (space_.expert_parallel.has(1) && space_.expert_tensor_parallel.has(1)) {
        add_variants(degrees);
      }
      return;
    }
    const int ranks = degrees.tensor * degrees.context * degrees.data;  // of one stage
    for (const int expert : degrees_within(space_.expert_parallel, ranks, job_.model.experts)) {
      for (const int expert_tensor : degrees_within(space_.expert_tensor_parallel, ranks / expert,
                                                    job_.model.expert_ffn_size)) {
        degrees.expert = expert;
        degrees.expert_tensor = expert_tensor;
        if (may_spread_experts(space_, job_, plan_of(degrees))) add_variants(degrees);
      }
    }
  }

  std::size_t shapes_of(int pipeline, int data) {
    const auto [entry, added] = shape_index_.try_emplace({pipeline, data}, result_.shapes.size());
    if (added) {
      result_.shapes.push_back(make_shapes(pipeline, data));
      result_.ranges.push_back(ranges_of(result_.shapes.back()));
    }
    return entry->second;
  }

  static std::vector<ShapeRange> ranges_of(const std::vector<StepShape>& shapes) {
    std::vector<ShapeRange> ranges;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (ranges.empty() || ranges.back().micro_batch != shapes[i].micro_batch) {
        ranges.push_back({shapes[i].micro_batch, i, i});
      }
      ranges.back().last = i + 1;
    }
    return ranges;
  }

  std::vector<StepShape> make_shapes(int pipeline, int data) const {
    std::vector<StepShape> shapes;
    const std::int64_t share = job_.training.global_batch / data;
    for (const int micro_batch : degrees_within(space_.micro_batch, share, share)) {
      PipelineShape shape{.stages = pipeline,
                          .microbatches = static_cast<int>(share / micro_batch)};
      if (pipeline == 1) {
        add_single_stage(shape, micro_batch, shapes);
      } else {
        add_schedules(shape, micro_batch, shapes);
      }
    }
    return shapes;
  }

  // Without a pipeline every schedule runs the micro-batches one after the other; 1F1B holds the
  // activations of only one of them. Where the space excludes it, the other schedules are listed:
  // they differ in the activations that they hold.
  void add_single_stage(PipelineShape shape, int micro_batch,
                        std::vector<StepShape>& shapes) const {
    const bool may_have_best = allows(space_.schedule, "1f1b") && space_.virtual_stages.has(1);
    if (may_have_best && may_have_layers(1, 1)) {
      shapes.push_back({.micro_batch = micro_batch, .schedule = find_schedule("1f1b")});
    }
    if (!may_have_best && !space_.schedule.empty()) add_schedules(shape, micro_batch, shapes);
  }

  void add_schedules(const PipelineShape& shape, int micro_batch,
                     std::vector<StepShape>& shapes) const {
    for (const Schedule* schedule : schedules()) {
      if (allows(space_.schedule, schedule->name)) {
        add_chunks(*schedule, shape, micro_batch, shapes);
      }
    }
  }

  void add_chunks(const Schedule& schedule, PipelineShape shape, int micro_batch,
                  std::vector<StepShape>& shapes) const {
    const int first = schedule.needs_chunks ? 2 : 1;
    const int most = schedule.needs_chunks ? (job_.model.layers + 2) / shape.stages : 1;
    for (shape.chunks = first; shape.chunks <= most; ++shape.chunks) {
      const PipelineShape cut = schedule.shape(shape.stages, shape.chunks, shape.microbatches);
      if (space_.virtual_stages.has(shape.chunks) && schedule.accepts(shape).has_value() &&
          may_be_cut_into(cut) && may_have_layers(shape.stages, layer_chunks(cut))) {
        shapes.push_back(
            {.micro_batch = micro_batch, .virtual_stages = shape.chunks, .schedule = &schedule});
      }
    }
  }

  // Even layers leave no chunk empty where there are no more chunks than layers.
  bool may_be_cut_into(const PipelineShape& shape) const {
    const StackLimits& limits = job_.training.stack.limits;
    const bool enough = limits.empty_chunks || layer_chunks(shape) <= job_.model.layers ||
                        !base_.layers_per_stage.empty();
    const bool interleaved = shape.chunks == 1 || shape.route != Route::loop ||
                             shape.stages >= limits.interleaved_stages ||
                             names_several(space_.virtual_stages);
    return enough && interleaved;
  }

  // Whether the layers that the caller named, if any, are of so many stages or chunks.
  bool may_have_layers(int stages, int chunks) const {
    const std::size_t named = base_.layers_per_stage.size();
    return named == 0 || named == static_cast<std::size_t>(stages) ||
           named == static_cast<std::size_t>(chunks);
  }

  // Promising degrees first, so that a search stopped early has seen them: tensor and context
  // groups inside an NVLink domain, little context parallelism.
  void order() {
    const int domain = std::max(job_.cluster.nvlink_domain, job_.cluster.devices_per_node);
    const auto key = [domain](const Degrees& d) {
      return std::tuple(d.tensor * d.context > domain, d.context, d.tensor, d.sequence_parallel,
                        d.algorithm, d.placement, d.expert, d.expert_tensor);
    };
    std::stable_sort(result_.degrees.begin(), result_.degrees.end(),
                     [&](const Degrees& a, const Degrees& b) { return key(a) < key(b); });
  }

  // Lists the shardings of all degrees. Degrees share a list where they agree in all that
  // Enumeration::shardings_of depends on.
  void list_shardings() {
    using Asked = std::tuple<Enumeration::ZeroStages, bool, std::size_t, std::int64_t>;
    std::map<Asked, std::size_t> known;
    for (Degrees& d : result_.degrees) {
      const bool named = !result_.sharding_groups.empty();
      const std::int64_t divided = named ? std::int64_t{d.data} * d.context : 0;
      const Asked asked{result_.offered_stages(d), result_.has_states_to_shard(d), d.groups,
                        divided};
      const auto [entry, added] = known.try_emplace(asked, result_.shardings.size());
      if (added) result_.shardings.push_back(result_.shardings_of(d));
      d.shardings = entry->second;
    }
  }

  const PreparedJob& prepared_;
  const Job& job_;
  const SearchSpace& space_;
  const PlanRequest& base_;
  const std::function<bool()>& is_over_;
  bool orders_of_stack_ = false;
  Enumeration result_;
  std::map<std::pair<int, int>, std::size_t> shape_index_;
};

}  // namespace

std::vector<bool> sequence_choices(const Transformer& model, const Stack& stack,
                                   const SearchSpace& space, const PlanRequest& base) {
  const bool needed = model.experts > 0;
  const bool usual = stack.sequence_parallel || needed;
  const SequenceParallelism limit = stack.limits.sequence_parallel;
  std::vector<bool> choices;
  for (const bool choice : {true, false}) {
    const bool offered = limit == SequenceParallelism::either || base.sequence_parallel ||
                         choice == (limit == SequenceParallelism::always);
    const bool by_default =
        offered && (choice ? usual : !needed) && choice == base.sequence_parallel.value_or(choice);
    const bool wanted =
        space.sequence_parallel.empty() ? by_default : allows(space.sequence_parallel, choice);
    if (wanted) choices.push_back(choice);
  }
  return choices;
}

std::size_t Enumeration::recomputes_of(const Degrees& d) const {
  const auto fit =
      std::count_if(recomputes.begin(), recomputes.end(),
                    [&d](const RecomputeChoice& choice) { return choice.is_for(d.pipeline); });
  return static_cast<std::size_t>(fit);
}

std::int64_t Enumeration::size() const {
  std::size_t size = 0;
  for (const Degrees& d : degrees) {
    size += number_of_placements(d) * shardings[d.shardings].size() * shapes[d.shapes].size() *
            recomputes_of(d);
  }
  return static_cast<std::int64_t>(size);
}

bool same_attention(const Degrees& a, const Degrees& b) {
  const auto key = [](const Degrees& d) {
    return std::tuple(d.tensor, d.context, d.sequence_parallel, d.algorithm, d.placement);
  };
  return key(a) == key(b);
}

bool same_layers(const Degrees& a, const Degrees& b) {
  return same_attention(a, b) && a.expert == b.expert && a.expert_tensor == b.expert_tensor;
}

std::vector<RecomputeChoice> recompute_choices(const SearchSpace& space, const Stack& stack) {
  const RecomputeChoice none, selective{{RecomputeMode::selective, 0}, {}};
  const RecomputeChoice full{{RecomputeMode::full, 0}, {}};
  std::vector<RecomputeChoice> named = space.recompute;
  if (named.empty()) named = {none, selective, full};
  const bool may_select = stack.limits.selective_recompute || !space.recompute.empty();
  if (!may_select) std::erase(named, selective);
  const bool selective_is_none = stack.flash_attention &&
                                 stack.selective == SelectiveRecompute::core_attention &&
                                 allows(named, none);
  std::vector<RecomputeChoice> choices;
  for (const RecomputeChoice& choice : named) {
    const bool known = holds(choices, choice);
    if (!known && !(choice == selective && selective_is_none)) choices.push_back(choice);
  }
  return choices;
}

Enumeration enumerate(const PreparedJob& job, const SearchSpace& space, const PlanRequest& base,
                      const std::function<bool()>& is_over, NamedStages stages) {
  return Enumerator(job, space, base, is_over, stages).run();
}

std::vector<std::string> searched_dimensions(const SearchSpace& space, const Enumeration& all) {
  std::vector<std::string> dimensions = {"tensor_parallel",
                                         "sequence_parallel",
                                         "context_parallel",
                                         "context_parallel_algorithm",
                                         "pipeline_parallel",
                                         "virtual_stages",
                                         "data_parallel",
                                         "expert_parallel",
                                         "expert_tensor_parallel",
                                         "micro_batch",
                                         "recompute",
                                         "schedule"};
  const bool both = all.sequence_choices.size() == (all.has_experts ? 1U : 2U);
  if (space.sequence_parallel.empty() && !both) std::erase(dimensions, "sequence_parallel");
  const auto searched = [&](int stage) {
    return !space.zero_stage.has(stage) || allows(all.zero_stages, stage);
  };
  if (std::ranges::all_of(std::array{0, 1, 2, 3}, searched)) {
    dimensions.insert(dimensions.end() - 2, "zero_stage");
  }
  const bool grouped = !space.sharding_group.empty() || !all.grouped_stages.empty();
  if (grouped) dimensions.emplace_back("sharding_group");
  if (!space.collective.empty()) dimensions.emplace_back("collective");
  if (!space.offload.empty() || all.offloads.size() > 1) dimensions.emplace_back("offload");
  const bool ordered = std::ranges::any_of(all.placements, [&all](const Placement& placement) {
    return placement.rank_order != all.placements.front().rank_order;
  });
  if (ordered || !space.rank_order.empty()) dimensions.emplace_back("rank_order");
  return dimensions;
}

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> low, high;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i == 0) {
      low.push_back(static_cast<int>(i));
      if (i * i != number) {
        high.push_back(static_cast<int>(number / i));
      }
    }
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace trainyard
