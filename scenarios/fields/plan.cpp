// The fields of `plan`, design §3. make_plan checks that the values make a legal plan.
#include "model/cost/collective.h"
#include "model/schedule/schedule.h"
#include "planner/passes/auto_schedule.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

constexpr CountShape kDegree{.most = 1e6};

std::vector<std::string> sorted_without_repeats(std::vector<std::string> names) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ChoiceShape schedule_names() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) names.emplace_back(schedule->name);
  return {.names = sorted_without_repeats(std::move(names)),
          .family = "schedule",
          .document = "passes"};
}

ChoiceShape collective_names() {
  std::vector<std::string> names;
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    names.emplace_back(algorithm->name);
  }
  return {.names = sorted_without_repeats(std::move(names)), .family = "collective algorithm"};
}

const Section<OverlapRequest>& overlap_section() {
  static const Section<OverlapRequest> section(
      "overlap", "Which communication overlaps compute; an absent key: as the stack has it.",
      overlap_fields<OverlapRequest>());
  return section;
}

Field<Offload> offload_of(std::string_view key, OffloadTarget Offload::*member,
                          std::string_view doc) {
  using Target = Named<OffloadTarget>;
  return choice(key, member,
                std::array{Target{"none", OffloadTarget::none}, Target{"host", OffloadTarget::host},
                           Target{"nvme", OffloadTarget::nvme}},
                doc);
}

const Section<Offload>& offload_section() {
  static const Section<Offload> section(
      "offload", "What is kept outside the device's memory.",
      {
          offload_of("parameters", &Offload::parameters,
                     "where the weights that forward reads are kept"),
          offload_of("gradients", &Offload::gradients, "where the gradients are kept"),
          offload_of("optimizer", &Offload::optimizer,
                     "where master weights and optimizer moments are kept"),
          offload_of("activations", &Offload::activations,
                     "where the activations that backward needs are kept"),
          count("activation_layers", &Offload::activation_layers,
                "number of layers of each stage whose activations are offloaded", {.most = 1e5})
              .absent("all of them"),
      });
  return section;
}

const Section<Recompute>& full_recompute_section() {
  static const Section<Recompute> section(
      "recompute", "Full recomputation of some layers.",
      {count("full", &Recompute::full_layers,
             "number of layers of each stage that are recomputed in full", {.most = 1e5})
           .required()});
  return section;
}

Expected<void> read_policy(const Json& value, Recompute& recompute, const Place& place) {
  if (value.is_object()) {
    recompute.mode = RecomputeMode::full;
    return full_recompute_section().read(value, recompute, place);
  }
  const auto& name = value.get_ref<const std::string&>();
  recompute.mode = static_cast<RecomputeMode>(std::ranges::find(kRecomputeModes, name) -
                                              kRecomputeModes.begin());
  return {};
}

Json policy_value(const Recompute& recompute) {
  if (recompute.full_layers > 0) return full_recompute_section().write(recompute);
  return std::string(name_of(recompute.mode));
}

Shape policy_shape(bool with_auto) {
  ChoiceShape modes;
  modes.names.assign(kRecomputeModes.begin(), kRecomputeModes.end());
  if (!with_auto) std::erase(modes.names, name_of(RecomputeMode::automatic));
  return {AnyShape{{Shape{modes}, Shape{ObjectShape{&spec_of<full_recompute_section>, "full"}}}}};
}

Field<PlanRequest> recompute_field() {
  AnyShape any = std::get<AnyShape>(policy_shape(true).form);
  any.alternatives.push_back(Shape{ListShape{{policy_shape(false)}}});
  return {
      {.key = "recompute",
       .shape = {any},
       .doc = "what the backward pass recomputes: `selective` as the stack means it, `full` whole "
              "layers, `auto` the least that fits the memory; or a list, one entry a stage"},
      read_recompute,
      [](const PlanRequest& plan) { return std::optional(recompute_value(plan)); }};
}

Field<PlanRequest> layers_per_stage_field() {
  return {
      {.key = "layers_per_stage",
       .shape = {ListShape{{Shape{CountShape{.least = 0, .most = 1e5}}}}},
       .doc = "number of layers of each stage, p entries, or of each chunk in the order of the "
              "network, p·v entries; 0 is legal",
       .absent =
           "evenly; where p·v divides L + 2 but not L, embedding and head count as a layer each"},
      [](const Json& value, PlanRequest& plan, const Place&) -> Expected<void> {
        for (const Json& layers : value) {
          plan.layers_per_stage.push_back(static_cast<int>(layers.get<double>()));
        }
        return {};
      },
      [](const PlanRequest& plan) -> std::optional<Json> {
        if (plan.layers_per_stage.empty()) return std::nullopt;
        return Json(plan.layers_per_stage);
      }};
}

// A schedule's name, or a pass list: a document of its own or inline.
Expected<void> read_schedule(const Json& value, PlanRequest& plan, const Place& place) {
  if (value.is_string() && !looks_like_a_path(value.get_ref<const std::string&>())) {
    plan.schedule = value.get<std::string>();
    return {};
  }
  PassTable table;
  if (auto done = read_reference(passes_section(), value, table, place); !done) return done;
  auto schedule = schedule_of(table, place);
  if (!schedule) return tl::unexpected(schedule.error());
  plan.passes = *std::move(schedule);
  return {};
}

Field<PlanRequest> schedule_field() {
  ChoiceShape names = schedule_names();
  names.names.emplace_back(kAutoSchedule);
  return {
      {.key = "schedule",
       .shape = {AnyShape{{Shape{names}, Shape{ObjectShape{&spec_of<passes_section>, {}}}}}},
       .doc = "pipeline schedule, the order of the passes; `auto` searches one for these stages",
       .absent = "`1f1b`, or `interleaved-1f1b` when v > 1"},
      read_schedule,
      [](const PlanRequest& plan) -> std::optional<Json> {
        if (plan.passes) return passes_section().write(pass_table_of(*plan.passes));
        return plan.schedule.empty() ? std::nullopt : std::optional<Json>(plan.schedule);
      }};
}

std::vector<Field<PlanRequest>> degree_fields() {
  using P = PlanRequest;
  return {
      count("tensor_parallel", &P::tensor_parallel,
            "t: ranks over which each layer's matrices are split", kDegree),
      flag("sequence_parallel", &P::sequence_parallel,
           "whether norms and residuals are split along the sequence over the t tensor-parallel "
           "ranks")
          .absent("as the stack has it when t > 1, else false"),
      count("context_parallel", &P::context_parallel, "c: ranks over which each sequence is split",
            kDegree),
      choice("context_parallel_algorithm", &P::context_parallel_algorithm,
             named<ContextAlgorithm>(kContextAlgorithms),
             "how attention gets the keys and values of other context-parallel ranks"),
      count("pipeline_parallel", &P::pipeline_parallel, "p: number of pipeline stages", kDegree),
      count("virtual_stages", &P::virtual_stages,
            "v: number of chunks of layers that a stage holds", kDegree)
          .absent("1; 2 with zb-v; with `auto` the number that is fastest"),
      schedule_field(),
      layers_per_stage_field(),
      count("data_parallel", &P::data_parallel, "D: number of replicas of the pipeline", kDegree)
          .absent("as many as fill the cluster"),
      count("expert_parallel", &P::expert_parallel,
            "e: ranks over which the routed experts are spread", kDegree),
      count("expert_tensor_parallel", &P::expert_tensor_parallel,
            "e_t: ranks over which each expert's matrices are split", kDegree),
      count("micro_batch", &P::micro_batch, "b: sequences per micro-batch and replica", kDegree),
  };
}

std::vector<Field<PlanRequest>> memory_and_order_fields() {
  using P = PlanRequest;
  return {
      count("zero_stage", &P::zero_stage,
            "ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 parameters too; 0 nothing",
            {0, 3})
          .absent("as the stack has it; 3 when `sharding_group` is named"),
      count(
          "sharding_group", &P::sharding_group,
          "number of ranks among which ZeRO shards states; across these groups they are replicated",
          kDegree)
          .absent("all D·c ranks"),
      recompute_field(),
      object<overlap_section>("overlap", &P::overlap, "which communication overlaps compute")
          .absent("as the stack has it"),
      object<offload_section>("offload", &P::offload,
                              "states and activations kept outside the device's memory"),
      number("capacity_factor", &P::capacity_factor,
             "most tokens that an expert takes, over the even share; tokens beyond are dropped",
             {0, 1000, false})
          .absent("no limit (dropless)"),
      number("load_imbalance", &P::load_imbalance,
             "tokens of the busiest expert rank over the even share; at most expert_parallel and "
             "experts / experts_per_token count, which no routing exceeds",
             {1, 1000}),
      text("rank_order", &P::rank_order,
           "dimensions along which ranks are numbered, fastest first: neighbours share the first "
           "one's group",
           {TextShape{"(?!.*(tp|cp|ep|dp|pp).*\\1)(tp|cp|ep|dp|pp)(-(tp|cp|ep|dp|pp)){4}",
                      "tp, cp, ep, dp and pp once each, joined by -"}}),
      text("collective", &P::collective, "algorithm that every collective uses",
           {collective_names()})
          .absent("the fastest that libraries run. Used by name only: `sharp`, which switches must "
                  "have, `recursive-halving-doubling`, and, with several ranks a domain, the "
                  "recursive gathers and reductions"),
      flag("optimizer_barrier", &P::optimizer_barrier,
           "whether all stages wait for each other before the optimizer step")
          .absent("as the stack has it; false for zb-h2 and zb-v"),
  };
}

}  // namespace

Expected<void> read_recompute(const Json& value, PlanRequest& plan, const Place& place) {
  if (!value.is_array()) return read_policy(value, plan.recompute, place);
  for (std::size_t stage = 0; stage < value.size(); ++stage) {
    Recompute& policy = plan.recompute_per_stage.emplace_back();
    if (auto done = read_policy(value[stage], policy, place / stage); !done) return done;
  }
  return {};
}

Json recompute_value(const PlanRequest& plan) {
  if (plan.recompute_per_stage.empty()) return policy_value(plan.recompute);
  Json stages = Json::array();
  for (const Recompute& policy : plan.recompute_per_stage) stages.push_back(policy_value(policy));
  return stages;
}

Shape stage_recompute_shape() { return policy_shape(false); }

const Section<PlanRequest>& plan_section() {
  static const Section<PlanRequest> section = [] {
    std::vector<Field<PlanRequest>> fields = degree_fields();
    for (Field<PlanRequest>& field : memory_and_order_fields()) fields.push_back(std::move(field));
    return Section<PlanRequest>("plan", "How the training step is divided among the devices.",
                                std::move(fields));
  }();
  return section;
}

}  // namespace trainyard
