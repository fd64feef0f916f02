// The fields of a software stack: what it fuses, overlaps and keeps, and what it costs the host.
#include <algorithm>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr NumberShape kFactor{.least = 1e-4, .most = 100};
constexpr NumberShape kFactorOrZero{.least = 0, .most = 100};
constexpr NumberShape kBytesAnElement{.least = 0, .most = 1000};

const Section<StackOverlap>& stack_overlap_section() {
  using O = StackOverlap;
  static const Section<O> section(
      "overlaps", "Which communication runs beside compute.",
      {
          flag("tensor_parallel", &O::tensor_parallel, "of tensor parallelism"),
          flag("context_parallel", &O::context_parallel, "of context parallelism"),
          flag("expert_parallel", &O::expert_parallel, "of expert parallelism"),
          flag("pipeline", &O::pipeline, "sends between stages"),
          flag("data_parallel", &O::data_parallel, "of gradients and parameters"),
      });
  return section;
}

const Section<StackEvidence>& evidence_section() {
  using E = StackEvidence;
  static const Section<E> section(
      "evidence", "What the runs behind the interval were like; beyond them it widens.",
      {
          count("runs", &E::runs, "published runs of this stack", {0, 1000000}),
          count("devices", &E::devices, "of the largest of them", {0, 1000000}),
          count("sequence_length", &E::sequence_length, "tokens, the longest of theirs",
                {0, std::int64_t{1} << 40})
              .absent("intervals do not widen with it"),
          flag("ampere", &E::ampere, "some ran on devices without fp8"),
          flag("hopper", &E::hopper, "some on devices with fp8 and without fp4"),
          flag("blackwell", &E::blackwell, "some on devices with fp4"),
          flag("tensor_parallel", &E::tensor_parallel, "some had tensor parallelism"),
          flag("pipeline_parallel", &E::pipeline_parallel, "some had pipeline parallelism"),
          flag("context_parallel", &E::context_parallel, "some had context parallelism"),
      });
  return section;
}

template <typename T>
Field<T> zero_stages(std::string key, std::vector<int> T::*member, std::string doc) {
  return Field<T>{{.key = std::move(key),
                   .shape = {ListShape{{Shape{CountShape{.least = 0, .most = 3}}}}},
                   .doc = std::move(doc)},
                  [member](const Json& value, T& object, const Place&) -> Expected<void> {
                    object.*member = value.get<std::vector<int>>();
                    return {};
                  },
                  [member](const T& object) -> std::optional<Json> {
                    const std::vector<int>& stages = object.*member;
                    return stages.empty() ? std::nullopt : std::optional<Json>(stages);
                  }}
      .absent("it cannot");
}

const Section<StackOffload>& stack_offload_section() {
  using O = StackOffload;
  static const Section<O> section(
      "offloads",
      "ZeRO stages under which a stack can keep a part of the training state in the memory of the "
      "hosts: `trainyard plan` searches it there, unless the scenario names `offload`.",
      {
          zero_stages("optimizer", &O::optimizer, "master weights and moments"),
          zero_stages("activations", &O::activations, "activations, in any pipeline"),
          zero_stages("states", &O::states, "parameters, gradients and the optimizer's"),
          zero_stages("all", &O::all, "states and activations"),
      });
  return section;
}

Field<StackLimits> context_algorithms_field() {
  ChoiceShape names;
  for (const std::string_view name : kContextAlgorithms) names.names.emplace_back(name);
  return Field<StackLimits>{
      {.key = "context_algorithms",
       .shape = {ListShape{{Shape{std::move(names)}}}},
       .doc = "algorithms of context parallelism that it has"},
      [](const Json& value, StackLimits& limits, const Place&) -> Expected<void> {
        limits.context_algorithms = value.get<std::vector<std::string>>();
        return {};
      },
      [](const StackLimits& limits) -> std::optional<Json> {
        const auto& known = limits.context_algorithms;
        return known && !known->empty() ? std::optional<Json>(*known) : std::nullopt;
      }}
      .absent("all");
}

// A separate key says that the stack has no algorithm at all.
Field<StackLimits> context_parallel_field() {
  return Field<StackLimits>{
      {.key = "context_parallel", .shape = {FlagShape{}}, .doc = "it has context parallelism"},
      [](const Json& value, StackLimits& limits, const Place&) -> Expected<void> {
        if (!value.get<bool>()) limits.context_algorithms = std::vector<std::string>();
        return {};
      },
      [](const StackLimits& limits) -> std::optional<Json> {
        const auto& known = limits.context_algorithms;
        return known && known->empty() ? std::optional<Json>(false) : std::nullopt;
      }}
      .absent("true");
}

const Section<StackLimits>& stack_limits_section() {
  using L = StackLimits;
  static const Section<L> section(
      "limits",
      "Plans that a stack does not run: `trainyard plan` leaves them out, unless the `planner` "
      "section names them.",
      {
          flag("pipelines", &L::pipelines, "it has pipelines"),
          flag("empty_chunks", &L::empty_chunks, "a chunk of a pipeline may have no layer"),
          count("interleaved_stages", &L::interleaved_stages,
                "the fewest stages of a pipeline with several chunks a stage", {1, 1000000}),
          flag("pass_lists", &L::pass_lists, "it runs orders of passes that are listed"),
          flag("selective_recompute", &L::selective_recompute,
               "it can repeat what `selective` says, and nothing else"),
          flag("post_validation", &L::post_validation,
               "under schedules without a barrier stages start the next step before all have ended "
               "this one; else they wait as `optimizer_barrier` says"),
          choice("sequence_parallel", &L::sequence_parallel,
                 std::array{Named<SequenceParallelism>{"either", SequenceParallelism::either},
                            Named<SequenceParallelism>{"always", SequenceParallelism::always},
                            Named<SequenceParallelism>{"never", SequenceParallelism::never}},
                 "whether tensor parallelism comes with sequence parallelism"),
          context_algorithms_field(),
          context_parallel_field(),
          flag("ulysses_cuts_kv_heads", &L::ulysses_cuts_kv_heads,
               "Ulysses shares out the key-value heads of a rank, which its degree must divide"),
          choice("experts", &L::experts,
                 std::array{Named<ExpertSpread>{"any", ExpertSpread::any},
                            Named<ExpertSpread>{"none", ExpertSpread::none},
                            Named<ExpertSpread>{"over-shards", ExpertSpread::over_shards}},
                 "ranks over which experts are spread: any; none, every rank has all of them; or "
                 "whole context groups of those that shard the states, with their tensor "
                 "parallelism or without any"),
          zero_stages("tensor_zero_stages", &L::tensor_zero_stages,
                      "ZeRO stages beside tensor parallelism")
              .absent("as without it"),
          zero_stages("context_zero_stages", &L::context_zero_stages,
                      "ZeRO stages beside context parallelism")
              .absent("as without it"),
          flag("whole_context_groups", &L::whole_context_groups,
               "groups that share the states have whole groups of context parallelism"),
          flag("layers_stay", &L::layers_stay,
               "where activations lie on the hosts those of one layer stay on the device"),
      });
  return section;
}

// A pattern, because a month that cannot be read would bound nothing.
const TextShape kMonth{"[0-9]{2}[.](0[1-9]|1[0-2])", "year and month, such as \"25.11\""};

ChoiceShape precision_names() {
  ChoiceShape shape;
  for (const PrecisionRecipe& recipe : precision_recipes()) shape.names.emplace_back(recipe.name);
  return shape;
}

ChoiceShape generation_names() {
  ChoiceShape shape;
  for (const std::string_view name : kDeviceGenerations) shape.names.emplace_back(name);
  return shape;
}

const Section<StackRelease>& release_section() {
  using R = StackRelease;
  static const Section<R> section(
      "releases", "What releases of a period do otherwise.",
      {
          text("since", &R::since, "the first", {kMonth}).absent("no bound"),
          text("before", &R::before, "the first that does not", {kMonth}).absent("no bound"),
          text("precision", &R::precision, "the one precision recipe it holds for",
               {precision_names()})
              .absent("all"),
          text("generation", &R::generation, "the one generation of devices it holds for",
               {generation_names()})
              .absent("all"),
          flag("latent_attention", &R::latent_attention,
               "it holds for networks with latent attention only"),
          text("source", &R::source, "the release notes or the recipe that say so"),
          flag("moe_graphs", &R::moe_graphs,
               "MoE layers are CUDA graphs: the host needs no time for them")
              .absent("as the stack"),
          flag("expert_overlap", &R::expert_overlap, "`overlap.expert_parallel`")
              .absent("as the stack"),
          flag("deduplicated_dispatch", &R::deduplicated_dispatch, "as the stack's key")
              .absent("as the stack"),
          flag("expert_padding", &R::expert_padding, "as the stack's key").absent("as the stack"),
          flag("fused_expert_casts", &R::fused_expert_casts, "as the stack's key")
              .absent("as the stack"),
          flag("expert_bias_apart", &R::expert_bias_apart, "as the stack's key")
              .absent("as the stack"),
          flag("delayed_scaling", &R::delayed_scaling, "as the stack's key").absent("as the stack"),
          flag("fused_activation_casts", &R::fused_activation_casts, "as the stack's key")
              .absent("as the stack"),
          flag("quantised_activation_input", &R::quantised_activation_input, "as the stack's key")
              .absent("as the stack"),
          flag("offloads_activations", &R::offloads_activations, "as the stack's key")
              .absent("as the stack"),
          flag("flash_attention", &R::flash_attention, "as the stack's key").absent("as the stack"),
          number("gradient_bytes", &R::gradient_bytes, "as the stack's key", kBytesAnElement)
              .absent("as the stack"),
          number("reduction_bytes", &R::reduction_bytes, "as the stack's key", kBytesAnElement)
              .absent("as the stack"),
          number("cross_entropy_forward_bytes", &R::cross_entropy_forward_bytes,
                 "as the stack's key", kBytesAnElement)
              .absent("as the stack"),
          number("cross_entropy_backward_bytes", &R::cross_entropy_backward_bytes,
                 "as the stack's key", kBytesAnElement)
              .absent("as the stack"),
          number("saved_logit_bytes", &R::saved_logit_bytes, "as the stack's key", kBytesAnElement)
              .absent("as the stack"),
          number("parallel_logit_bytes", &R::parallel_logit_bytes, "as the stack's key",
                 kBytesAnElement)
              .absent("as the stack"),
          number("attention_generation", &R::attention_generation, "as the stack's key", kFactor)
              .absent("as the stack"),
      });
  return section;
}

std::vector<Field<Stack>> kernel_fields() {
  using S = Stack;
  return {
      flag("flash_attention", &S::flash_attention, "else the score matrix lies in memory"),
      number("attention_speed", &S::attention_speed,
             "forward rate of its attention kernel over the device's fitted rate", kFactor),
      number("attention_speed_hopper", &S::attention_speed_hopper,
             "the same on devices of the generations hopper and blackwell", kFactor)
          .absent("as `attention_speed`"),
      number("attention_generation", &S::attention_generation,
             "rate of its attention kernel over the one that the speeds are of", kFactor),
      number("attention_backward", &S::attention_backward,
             "time of attention's backward over forward (flash only)", kFactor),
      number("gemm_speed_hopper", &S::gemm_speed_hopper,
             "rate of its GEMMs on hopper and blackwell over the device's fitted rate", kFactor)
          .absent("1"),
      number("expert_speed", &S::expert_speed,
             "rate of its experts' GEMMs over the device's fitted rate", kFactor),
      flag("dropout", &S::dropout, "masks of one byte an element are saved"),
      number("memory_traffic", &S::memory_traffic,
             "traffic of memory-bound operators over the fused minimum", kFactor),
      flag("eager_gradients", &S::eager_gradients,
           "gradients of biases, of norms' weights and of queries, keys and values put together "
           "are kernels of their own"),
      flag("compiled", &S::compiled,
           "layers are compiled as a whole (torch.compile): kept is what backward reads, and not "
           "all that an eager operation keeps"),
      flag("fused_cross_entropy", &S::fused_cross_entropy, "two all-reduces instead of three"),
      number("cross_entropy_forward_bytes", &S::cross_entropy_forward_bytes,
             "traffic a logit, all of it: `memory_traffic` is not of it", kBytesAnElement),
      number("cross_entropy_backward_bytes", &S::cross_entropy_backward_bytes,
             "traffic a logit, as forward's", kBytesAnElement),
      number("saved_logit_bytes", &S::saved_logit_bytes, "memory of a logit at its peak",
             kBytesAnElement),
      number("parallel_logit_bytes", &S::parallel_logit_bytes,
             "the same where the vocabulary is sharded over tensor-parallel ranks; 0: no more",
             kBytesAnElement),
      flag("deduplicated_dispatch", &S::deduplicated_dispatch,
           "a token goes once to each rank, however many of its experts are there"),
      flag("expert_padding", &S::expert_padding,
           "in low precision experts' rows are padded and cut by copies of their own"),
      flag("fused_expert_casts", &S::fused_expert_casts,
           "experts' inputs are cast by the kernels that write them"),
      flag("expert_bias_apart", &S::expert_bias_apart, "experts' bias is added apart, in fp32"),
      flag("delayed_scaling", &S::delayed_scaling,
           "scales of low precision come from earlier steps: casts do not look for them"),
      flag("fused_activation_casts", &S::fused_activation_casts,
           "in low precision the MLP's activation casts its product and its gradients itself"),
      flag("quantised_activation_input", &S::quantised_activation_input,
           "in low precision the MLP's activation keeps its input cast"),
  };
}

Field<Stack> rank_orders_field() {
  const std::vector<FieldSpec>& of_plan = plan_section().spec().fields;
  return Field<Stack>{
      {.key = "rank_orders",
       .shape = {ListShape{{std::ranges::find(of_plan, "rank_order", &FieldSpec::key)->shape}}},
       .doc = "orders of the ranks that it can run, the usual one first; with pp before dp where "
              "experts leave as many replicas as the rest of the network: `trainyard plan` "
              "searches them, unless the scenario names `rank_order`"},
      [](const Json& value, Stack& stack, const Place&) -> Expected<void> {
        stack.rank_orders = value.get<std::vector<std::string>>();
        return {};
      },
      [](const Stack& stack) -> std::optional<Json> {
        return stack.rank_orders.empty() ? std::nullopt : std::optional<Json>(stack.rank_orders);
      }}
      .absent("the usual one");
}

std::vector<Field<Stack>> memory_fields() {
  using S = Stack;
  return {
      number("gradient_bytes", &S::gradient_bytes,
             "an element of the gradient that is kept for the optimizer", kBytesAnElement),
      number("reduction_bytes", &S::reduction_bytes,
             "an element of the gradient as it is reduced over data parallelism", kBytesAnElement),
      flag("keeps_weight_copy", &S::keeps_weight_copy, "a 16-bit copy beside the master weights"),
      flag("gradient_accumulation_fused", &S::gradient_accumulation_fused,
           "the GEMM adds the weight gradient to the main gradient"),
      choice("selective", &S::selective,
             std::array{
                 Named<SelectiveRecompute>{"core-attention", SelectiveRecompute::core_attention},
                 Named<SelectiveRecompute>{"every-second-matmul",
                                           SelectiveRecompute::every_second_matmul},
                 Named<SelectiveRecompute>{"half-of-layers", SelectiveRecompute::half_of_layers}},
             "what `\"recompute\": \"selective\"` repeats"),
      choice("partial_recompute", &S::partial_recompute,
             std::array{Named<PartialRecompute>{"by-stage", PartialRecompute::by_stage},
                        Named<PartialRecompute>{"by-chunk", PartialRecompute::by_chunk},
                        Named<PartialRecompute>{"none", PartialRecompute::none}},
             "which numbers of layers full recomputation repeats: any, on each stage its own; as "
             "many in every chunk of a pipeline; all layers or none. `trainyard plan` searches "
             "these, unless the scenario names `recompute`"),
      flag("recompute_stops_early", &S::recompute_stops_early,
           "recomputing a layer ends before its last GEMM, whose input is all that is needed"),
      flag("offloads_activations", &S::offloads_activations,
           "what does not fit goes to the host where that is faster than recomputing it"),
      object<stack_offload_section>("offload", &S::offload,
                                    "what it can keep in the memory of the hosts")
          .absent("nothing"),
      zero_stages("grouped_sharding", &S::grouped_sharding,
                  "ZeRO stages whose states it can shard over a part of the ranks that hold the "
                  "same parameters: `trainyard plan` searches every size of group, unless the "
                  "scenario names `sharding_group`"),
      rank_orders_field(),
  };
}

Field<Stack> schedules_field() {
  ChoiceShape names{.names = {}, .family = "schedule", .document = {}};
  for (const Schedule* schedule : schedules()) names.names.emplace_back(schedule->name);
  return Field<Stack>{{.key = "schedules",
                       .shape = {ListShape{{Shape{std::move(names)}}}},
                       .doc = "pipeline schedules that it runs; others are refused"},
                      [](const Json& value, Stack& stack, const Place&) -> Expected<void> {
                        stack.schedules = value.get<std::vector<std::string>>();
                        return {};
                      },
                      [](const Stack& stack) -> std::optional<Json> {
                        return stack.schedules.empty() ? std::nullopt
                                                       : std::optional<Json>(stack.schedules);
                      }}
      .absent("any");
}

// The plans that the stack runs, and its defaults for them.
std::vector<Field<Stack>> plan_fields() {
  using S = Stack;
  return {
      flag("sequence_parallel", &S::sequence_parallel, "default of the plan's key when t > 1"),
      count("zero_stage", &S::zero_stage, "default of the plan's key", {0, 3}),
      zero_stages("zero_stages", &S::zero_stages,
                  "ZeRO stages that it runs: `trainyard plan` searches these, unless the scenario "
                  "names `zero_stage`")
          .absent("any"),
      zero_stages("pipeline_zero_stages", &S::pipeline_zero_stages, "the same under a pipeline")
          .absent("as without one"),
      flag("pipeline_no_sync", &S::pipeline_no_sync,
           "under a pipeline ZeRO 2 and 3 add up whole gradients, reduced behind the last backward "
           "pass of each chunk, and keep gathered weights until then"),
      text("zero_stack", &S::zero_stack,
           "stack of the catalog that runs plans with ZeRO instead, since this one cannot")
          .absent("it runs them itself"),
      schedules_field(),
      object<stack_limits_section>("limits", &S::limits, "plans that it does not run")
          .absent("none"),
      object<stack_overlap_section>("overlap", &S::overlap, "defaults of the plan's `overlap`"),
  };
}

std::vector<Field<Stack>> runtime_fields() {
  using S = Stack;
  return {
      flag("copies_sharded_sequences", &S::copies_sharded_sequences,
           "sequences are sharded in the second dimension of the tensors: the whole tensor is "
           "copied beside each all-gather and reduce-scatter of sequence parallelism"),
      flag("keeps_gathered_inputs", &S::keeps_gathered_inputs,
           "what sequence parallelism gathered for a GEMM is kept for its weight gradient, and not "
           "gathered again"),
      flag("quantised_gathers", &S::quantised_gathers,
           "gathers of sequence parallelism carry the cast input of low-precision GEMMs"),
      number("tensor_parallel_hidden", &S::tensor_parallel_hidden,
             "part of the TP traffic that is hidden when it overlaps", kPart),
      number("overlap_slowdown", &S::overlap_slowdown,
             "seconds of compute lost a second of overlapped communication, on a device whose "
             "document has no `overlap_slowdown`",
             kPart),
      flag("exposed_gathers", &S::exposed_gathers,
           "ZeRO-1 gathers parameters with nothing beside, whatever `overlap` says"),
      flag("scattered_sends", &S::scattered_sends,
           "without sequence parallelism a stage sends 1/t and gathers on the other side"),
      flag("optimizer_barrier", &S::optimizer_barrier, "default of the plan's key"),
      quantity("sharded_update_per_rank", &S::sharded_update_per_rank,
               "serial part of a ZeRO-1 update, a rank of the sharding group", Zero::allowed),
      quantity("host_layer_forward", &S::host_layer_forward,
               "host time to launch a dense layer's forward pass", Zero::allowed),
      quantity("host_moe_layer_forward", &S::host_moe_layer_forward, "and a MoE layer's",
               Zero::allowed),
      number("host_backward", &S::host_backward, "host time of backward over forward",
             kFactorOrZero),
      quantity("host_microbatch", &S::host_microbatch,
               "host time of head, loss and bookkeeping, a micro-batch", Zero::allowed),
      quantity("step_overhead", &S::step_overhead, "data loading and logging, a step",
               Zero::allowed),
      number("rank_spread", &S::rank_spread,
             "standard deviation of a rank's speed over its mean: the slowest sets the pace",
             kPart),
      number(
          "interval_low", &S::interval_low,
          "10 % quantile of measured over predicted step time among runs like those of this stack",
          kFactor),
      number("interval_high", &S::interval_high, "and the 90 % quantile", kFactor),
      number("interval_moe", &S::interval_moe,
             "how many times wider, in logarithm, for mixture-of-experts networks", kFactor),
      object<evidence_section>("evidence", &S::evidence,
                               "what the runs behind the interval were like"),
      number("memory_interval_low", &S::memory_interval_low,
             "10 % quantile of measured over predicted peaks of memory", kFactor),
      number("memory_interval_high", &S::memory_interval_high, "and the 90 % quantile", kFactor),
      quantity("runtime_memory", &S::runtime_memory, "context and communicator buffers",
               Zero::allowed),
      number("fragmentation", &S::fragmentation, "reserved over allocated memory, minus one",
             kPart),
  };
}

std::vector<Field<Stack>> stack_fields() {
  std::vector<Field<Stack>> all = {
      text("name", &Stack::name, "as tables show it").absent("the name of the catalog entry"),
      text("source", &Stack::source, "where the figures come from"),
  };
  for (Field<Stack>& field : kernel_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : memory_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : plan_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : runtime_fields()) all.push_back(std::move(field));
  all.push_back(objects<release_section>("releases", &Stack::releases,
                                         "what its releases do otherwise; `training.release` or "
                                         "`measured.release` says which one runs")
                    .absent("none differs"));
  all.push_back(sources<stack_section, Stack>());
  return all;
}

}  // namespace

const Section<Stack>& stack_section() {
  static const Section<Stack> section("stack", "The software that runs the step.", stack_fields());
  return section;
}

}  // namespace trainyard
