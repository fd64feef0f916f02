// The fields of a software stack: what it fuses, overlaps and keeps, and what it costs the host.
#include <algorithm>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr NumberShape kFactor{.least = 1e-4, .most = 100};
constexpr NumberShape kFactorOrZero{.least = 0, .most = 100};
constexpr NumberShape kParameters{.least = 0, .most = 1e13};
constexpr NumberShape kBytesAnElement{.least = 0, .most = 1000};

const Section<StackOverlap>& stack_overlap_section() {
  static const Section<StackOverlap> section("overlaps", "Which communication overlaps compute.",
                                             overlap_fields<StackOverlap>());
  return section;
}

const Section<StackEvidence>& evidence_section() {
  using E = StackEvidence;
  static const Section<E> section(
      "evidence",
      "The published runs that the stack's intervals come from; for jobs beyond them the step-time "
      "interval widens.",
      {
          count("runs", &E::runs,
                "number of published runs of this stack; 0: the interval comes from other runs",
                {0, 1000000}),
          count(
              "devices", &E::devices,
              "number of devices of the largest of these runs; on more devices the interval widens",
              {0, 1000000}),
          count("sequence_length", &E::sequence_length,
                "longest sequence of these runs, in tokens; for longer ones the interval widens",
                {0, std::int64_t{1} << 40})
              .absent("the interval does not depend on it"),
          flag("ampere", &E::ampere,
               "whether any of these runs was on devices of the Ampere generation (A100)"),
          flag("hopper", &E::hopper,
               "whether any was on devices of the Hopper generation (H100, H200)"),
          flag("blackwell", &E::blackwell,
               "whether any was on devices of the Blackwell generation (B200, GB200)"),
          flag("tensor_parallel", &E::tensor_parallel,
               "whether any of these runs used tensor parallelism"),
          flag("pipeline_parallel", &E::pipeline_parallel,
               "whether any of these runs used pipeline parallelism"),
          flag("context_parallel", &E::context_parallel,
               "whether any of these runs used context parallelism"),
      });
  return section;
}

template <typename T>
Field<T> zero_stages(std::string_view key, std::vector<int> T::*member, std::string_view doc) {
  return Field<T>{{.key = std::string(key),
                   .shape = {ListShape{{Shape{CountShape{.least = 0, .most = 3}}}}},
                   .doc = std::string(doc)},
                  [member](const Json& value, T& object, const Place&) -> Expected<void> {
                    object.*member = value.get<std::vector<int>>();
                    return {};
                  },
                  [member](const T& object) -> std::optional<Json> {
                    const std::vector<int>& stages = object.*member;
                    return stages.empty() ? std::nullopt : std::optional<Json>(stages);
                  }}
      .absent("not supported");
}

const Section<StackOffload>& stack_offload_section() {
  using O = StackOffload;
  static const Section<O> section(
      "offloads",
      "ZeRO stages with which the stack can offload each part of the training state to host "
      "memory: `trainyard plan` searches it there, unless the scenario names `offload`.",
      {
          zero_stages(
              "optimizer", &O::optimizer,
              "ZeRO stages with which master weights and optimizer moments can be offloaded"),
          zero_stages(
              "activations", &O::activations,
              "ZeRO stages with which activations can be offloaded, with a pipeline or without"),
          zero_stages("states", &O::states,
                      "ZeRO stages with which parameters, gradients and optimizer state can be "
                      "offloaded together"),
          zero_stages("all", &O::all,
                      "ZeRO stages with which states and activations can be offloaded together"),
      });
  return section;
}

Field<StackLimits> context_algorithms_field() {
  ChoiceShape names;
  for (const std::string_view name : kContextAlgorithms) names.names.emplace_back(name);
  return Field<StackLimits>{
      {.key = "context_algorithms",
       .shape = {ListShape{{Shape{std::move(names)}}}},
       .doc = "context-parallel algorithms that the stack has"},
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
      {.key = "context_parallel",
       .shape = {FlagShape{}},
       .doc = "whether the stack has context parallelism"},
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
          flag("pipelines", &L::pipelines, "whether the stack has pipeline parallelism"),
          flag("empty_chunks", &L::empty_chunks,
               "whether a chunk of a pipeline may have no layers"),
          count("interleaved_stages", &L::interleaved_stages,
                "fewest pipeline stages with which a stage can hold several chunks", {1, 1000000}),
          flag("pass_lists", &L::pass_lists,
               "whether the stack can run a schedule that is written out as a list of passes"),
          flag("selective_recompute", &L::selective_recompute,
               "whether the stack has `\"recompute\": \"selective\"`"),
          flag("post_validation", &L::post_validation,
               "whether, under schedules without a barrier, stages start the next step before all "
               "have ended this one; else they wait as `optimizer_barrier` says"),
          choice("sequence_parallel", &L::sequence_parallel,
                 std::array{Named<SequenceParallelism>{"either", SequenceParallelism::either},
                            Named<SequenceParallelism>{"always", SequenceParallelism::always},
                            Named<SequenceParallelism>{"never", SequenceParallelism::never}},
                 "whether tensor parallelism runs always with sequence parallelism, never, or "
                 "either way"),
          context_algorithms_field(),
          context_parallel_field(),
          flag("ulysses_cuts_kv_heads", &L::ulysses_cuts_kv_heads,
               "whether Ulysses needs a context-parallel degree that divides the key-value heads "
               "of a rank"),
          choice("experts", &L::experts,
                 std::array{Named<ExpertSpread>{"any", ExpertSpread::any},
                            Named<ExpertSpread>{"none", ExpertSpread::none},
                            Named<ExpertSpread>{"over-shards", ExpertSpread::over_shards}},
                 "ranks over which experts can be spread: any; none (every rank holds all "
                 "experts); over-shards (whole context groups of those that shard the states, with "
                 "their tensor parallelism or without any)"),
          zero_stages("tensor_zero_stages", &L::tensor_zero_stages,
                      "ZeRO stages that the stack runs together with tensor parallelism")
              .absent("the same as without it"),
          zero_stages("context_zero_stages", &L::context_zero_stages,
                      "ZeRO stages that the stack runs together with context parallelism")
              .absent("the same as without it"),
          flag("whole_context_groups", &L::whole_context_groups,
               "whether a group that shards states must consist of whole context-parallel groups"),
          flag("layers_stay", &L::layers_stay,
               "whether one layer's activations stay on the device while the others are offloaded"),
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

// What a period's releases do otherwise than the stack's key of the same name says.
constexpr const char* kOverrides = "overrides the stack's";
Field<StackRelease> overriding(const char* key, std::optional<bool> StackRelease::*member) {
  return flag(key, member, kOverrides).absent("unchanged");
}
Field<StackRelease> overriding(const char* key, std::optional<double> StackRelease::*member,
                               NumberShape range) {
  return number(key, member, kOverrides, range).absent("unchanged");
}

const Section<StackRelease>& release_section() {
  using R = StackRelease;
  static const Section<R> section(
      "releases", "How the releases of a period differ from the stack's other keys.",
      {
          text("since", &R::since, "first release that differs so", {kMonth}).absent("no bound"),
          text("before", &R::before, "first release that no longer differs so", {kMonth})
              .absent("no bound"),
          text("precision", &R::precision, "only precision recipe for which the entry holds",
               {precision_names()})
              .absent("all"),
          text("generation", &R::generation, "only device generation for which the entry holds",
               {generation_names()})
              .absent("all"),
          flag("latent_attention", &R::latent_attention,
               "whether the entry holds only for networks with latent attention (MLA)"),
          text("source", &R::source, "release notes or recipe that say so"),
          flag("moe_graphs", &R::moe_graphs,
               "whether MoE layers run as CUDA graphs, which need no host time to launch")
              .absent("unchanged"),
          flag("expert_overlap", &R::expert_overlap,
               "overrides the stack's `overlap.expert_parallel`")
              .absent("unchanged"),
          overriding("deduplicated_dispatch", &R::deduplicated_dispatch),
          overriding("expert_padding", &R::expert_padding),
          overriding("fused_expert_casts", &R::fused_expert_casts),
          overriding("expert_bias_apart", &R::expert_bias_apart),
          overriding("delayed_scaling", &R::delayed_scaling),
          overriding("fused_activation_casts", &R::fused_activation_casts),
          overriding("quantised_activation_input", &R::quantised_activation_input),
          overriding("offloads_activations", &R::offloads_activations),
          overriding("flash_attention", &R::flash_attention),
          overriding("gradient_bytes", &R::gradient_bytes, kBytesAnElement),
          overriding("reduction_bytes", &R::reduction_bytes, kBytesAnElement),
          overriding("cross_entropy_forward_bytes", &R::cross_entropy_forward_bytes,
                     kBytesAnElement),
          overriding("cross_entropy_backward_bytes", &R::cross_entropy_backward_bytes,
                     kBytesAnElement),
          overriding("saved_logit_bytes", &R::saved_logit_bytes, kBytesAnElement),
          overriding("parallel_logit_bytes", &R::parallel_logit_bytes, kBytesAnElement),
          overriding("attention_generation", &R::attention_generation, kFactor),
          overriding("pipeline_keeps_outputs", &R::pipeline_keeps_outputs),
          overriding("pipeline_keeps_gradients", &R::pipeline_keeps_gradients),
          overriding("pipeline_keeps_logits", &R::pipeline_keeps_logits),
      });
  return section;
}

std::vector<Field<Stack>> kernel_fields() {
  using S = Stack;
  return {
      flag("flash_attention", &S::flash_attention,
           "whether attention is one fused kernel; false: the score matrix lies in memory"),
      number("attention_speed", &S::attention_speed,
             "forward rate of the stack's attention kernel over the device's fitted rate", kFactor),
      number("attention_speed_hopper", &S::attention_speed_hopper,
             "`attention_speed` on devices of the generations hopper and blackwell", kFactor)
          .absent("as `attention_speed`"),
      number("attention_generation", &S::attention_generation,
             "factor on both attention speeds: rate of the kernel in use over the one that they "
             "are of",
             kFactor),
      number("attention_backward", &S::attention_backward,
             "time of the attention kernel's backward pass over its forward pass (flash only)",
             kFactor),
      number("gemm_speed_hopper", &S::gemm_speed_hopper,
             "rate of the stack's GEMMs on hopper and blackwell over the device's fitted rate",
             kFactor)
          .absent("1"),
      number("expert_speed", &S::expert_speed,
             "rate of the experts' grouped GEMMs over the device's fitted rate", kFactor),
      flag("dropout", &S::dropout,
           "whether dropout is used, whose masks are saved with one byte an element"),
      number("memory_traffic", &S::memory_traffic,
             "bytes that memory-bound operators move over the least that full fusion allows",
             kFactor),
      flag("eager_gradients", &S::eager_gradients,
           "whether separate kernels compute the gradients of biases and norm weights and join "
           "those of queries, keys and values"),
      flag("compiled", &S::compiled,
           "whether layers are compiled as a whole (torch.compile), so that only what backward "
           "reads is saved"),
  };
}

std::vector<Field<Stack>> loss_and_expert_fields() {
  using S = Stack;
  return {
      flag("fused_cross_entropy", &S::fused_cross_entropy,
           "whether the loss over a sharded vocabulary takes two all-reduces instead of three"),
      number("cross_entropy_forward_bytes", &S::cross_entropy_forward_bytes,
             "memory traffic of the loss's forward pass, bytes a logit; not scaled by "
             "`memory_traffic`",
             kBytesAnElement),
      number("cross_entropy_backward_bytes", &S::cross_entropy_backward_bytes,
             "memory traffic of the loss's backward pass, bytes a logit; not scaled by "
             "`memory_traffic`",
             kBytesAnElement),
      number("saved_logit_bytes", &S::saved_logit_bytes,
             "peak memory of the logits and their gradients, bytes a logit", kBytesAnElement),
      number("parallel_logit_bytes", &S::parallel_logit_bytes,
             "`saved_logit_bytes` where the vocabulary is sharded over tensor-parallel ranks; 0: "
             "the same",
             kBytesAnElement),
      flag("deduplicated_dispatch", &S::deduplicated_dispatch,
           "whether a token is sent once to each rank, however many of its experts are there"),
      flag(
          "expert_padding", &S::expert_padding,
          "whether copy kernels pad experts' rows for low-precision GEMMs and cut the padding off"),
      flag("fused_expert_casts", &S::fused_expert_casts,
           "whether the kernels that write the experts' inputs also cast them to low precision"),
      flag("expert_bias_apart", &S::expert_bias_apart,
           "whether separate kernels add the experts' biases, in fp32"),
      flag(
          "delayed_scaling", &S::delayed_scaling,
          "whether low-precision scales come from earlier steps, so that casts need not find them"),
      flag("fused_activation_casts", &S::fused_activation_casts,
           "whether the MLP's activation kernel casts its product and its gradients to low "
           "precision"),
      flag("quantised_activation_input", &S::quantised_activation_input,
           "whether the MLP's activation saves its input in low precision"),
  };
}

Field<Stack> rank_orders_field() {
  const std::vector<FieldSpec>& of_plan = plan_section().spec().fields;
  return Field<Stack>{
      {.key = "rank_orders",
       .shape = {ListShape{{std::ranges::find(of_plan, "rank_order", &FieldSpec::key)->shape}}},
       .doc = "rank orders that the stack can run, the usual one first; those with pp before dp "
              "only where experts have as many replicas as the rest of the network: `trainyard "
              "plan` searches them, unless the scenario names `rank_order`"},
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
             "bytes per element of the gradient that is kept for the optimizer", kBytesAnElement),
      number("reduction_bytes", &S::reduction_bytes,
             "bytes per element of the gradient when it is reduced over data-parallel ranks",
             kBytesAnElement),
      flag("keeps_weight_copy", &S::keeps_weight_copy,
           "whether a 16-bit copy of the weights is kept beside the master weights"),
      flag("gradient_accumulation_fused", &S::gradient_accumulation_fused,
           "whether the GEMM itself adds the weight gradient to the accumulated gradient"),
      choice("selective", &S::selective,
             std::array{
                 Named<SelectiveRecompute>{"core-attention", SelectiveRecompute::core_attention},
                 Named<SelectiveRecompute>{"every-second-matmul",
                                           SelectiveRecompute::every_second_matmul},
                 Named<SelectiveRecompute>{"half-of-layers", SelectiveRecompute::half_of_layers}},
             "what `\"recompute\": \"selective\"` recomputes"),
      choice("partial_recompute", &S::partial_recompute,
             std::array{Named<PartialRecompute>{"by-stage", PartialRecompute::by_stage},
                        Named<PartialRecompute>{"by-chunk", PartialRecompute::by_chunk},
                        Named<PartialRecompute>{"none", PartialRecompute::none}},
             "numbers of layers that can be recomputed in full: by-stage: any, each stage its own; "
             "by-chunk: as many in every chunk of a pipeline; none: all layers or none. `trainyard "
             "plan` searches these, unless the scenario names `recompute`"),
      flag("recompute_stops_early", &S::recompute_stops_early,
           "whether recomputing a layer stops before its last GEMM, of which backward needs only "
           "the input"),
      flag("offloads_activations", &S::offloads_activations,
           "whether `\"recompute\": \"auto\"` moves activations that do not fit to the host where "
           "recomputing is slower (ZeRO 3, no pipeline)"),
      object<stack_offload_section>("offload", &S::offload,
                                    "what the stack can offload to host memory")
          .absent("nothing"),
      zero_stages("grouped_sharding", &S::grouped_sharding,
                  "ZeRO stages whose states can be sharded over a part of the ranks that hold the "
                  "same parameters and replicated across the parts (HSDP): `trainyard plan` "
                  "searches every size of group, unless the scenario names `sharding_group`"),
      rank_orders_field(),
  };
}

Field<Stack> schedules_field() {
  ChoiceShape names{.names = {}, .family = "schedule", .document = {}};
  for (const Schedule* schedule : schedules()) names.names.emplace_back(schedule->name);
  return Field<Stack>{{.key = "schedules",
                       .shape = {ListShape{{Shape{std::move(names)}}}},
                       .doc = "pipeline schedules that the stack runs; others are refused"},
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
      flag("sequence_parallel", &S::sequence_parallel,
           "default of the plan's `sequence_parallel` where t > 1"),
      count("zero_stage", &S::zero_stage, "default of the plan's `zero_stage`", {0, 3}),
      zero_stages("zero_stages", &S::zero_stages,
                  "ZeRO stages that the stack runs: `trainyard plan` searches these, unless the "
                  "scenario names `zero_stage`")
          .absent("any"),
      zero_stages("pipeline_zero_stages", &S::pipeline_zero_stages,
                  "ZeRO stages that the stack runs together with pipeline parallelism")
          .absent("the same as without it"),
      flag("pipeline_no_sync", &S::pipeline_no_sync,
           "whether in a pipeline ZeRO 2 and 3 accumulate unsharded gradients, reduced after the "
           "last backward pass of each chunk, and keep gathered weights until then"),
      flag("pipeline_receive_buffers", &S::pipeline_receive_buffers,
           "whether each pipeline chunk holds a receive buffer for every micro-batch in each "
           "direction, and its outputs until the micro-batch's backward pass has ended"),
      flag("pipeline_keeps_outputs", &S::pipeline_keeps_outputs,
           "whether pipeline chunks keep the outputs that they sent to the end of the step"),
      flag(
          "pipeline_keeps_gradients", &S::pipeline_keeps_gradients,
          "whether pipeline chunks keep the input gradients that they sent to the end of the step"),
      flag("pipeline_keeps_logits", &S::pipeline_keeps_logits,
           "whether the last pipeline chunk keeps the logits to the end of the step, 16 bits each, "
           "beside `saved_logit_bytes`"),
      text("zero_stack", &S::zero_stack,
           "catalog stack that runs plans with ZeRO in this one's place, which cannot")
          .absent("this stack runs them itself"),
      schedules_field(),
      object<stack_limits_section>("limits", &S::limits, "plans that the stack does not run")
          .absent("none"),
      object<stack_overlap_section>("overlap", &S::overlap, "defaults of the plan's `overlap`"),
  };
}

std::vector<Field<Stack>> runtime_fields() {
  using S = Stack;
  return {
      flag("copies_sharded_sequences", &S::copies_sharded_sequences,
           "whether sequences are sharded in the tensors' second dimension, so that each "
           "all-gather and reduce-scatter of sequence parallelism also copies the whole tensor"),
      flag("keeps_gathered_inputs", &S::keeps_gathered_inputs,
           "whether a GEMM's input, gathered under sequence parallelism, is kept for the weight "
           "gradient instead of gathered again"),
      flag(
          "quantised_gathers", &S::quantised_gathers,
          "whether all-gathers of sequence parallelism carry inputs already cast to low precision"),
      number("tensor_parallel_hidden", &S::tensor_parallel_hidden,
             "share of tensor-parallel communication that is hidden where it overlaps compute",
             kPart),
      number("overlap_slowdown", &S::overlap_slowdown,
             "seconds of compute lost per second of overlapped communication, on a device whose "
             "document has no `overlap_slowdown`",
             kPart),
      flag("exposed_gathers", &S::exposed_gathers,
           "whether ZeRO-1's parameter gathering overlaps nothing, whatever `overlap` says"),
      number("bucket_parameters", &S::bucket_parameters,
             "parameters of a bucket, which overlapped reductions and gathers once a step move in "
             "one message; the chunks behind the first are one bucket each; 0: each layer is one",
             kParameters),
      number("bucket_parameters_per_rank", &S::bucket_parameters_per_rank,
             "the same per data-parallel rank; the larger of the two holds", kParameters),
      flag("scattered_sends", &S::scattered_sends,
           "whether, without sequence parallelism, each of t ranks sends 1/t of the activations to "
           "the next stage, which gathers them"),
      flag("optimizer_barrier", &S::optimizer_barrier, "default of the plan's `optimizer_barrier`"),
      quantity("sharded_update_per_rank", &S::sharded_update_per_rank,
               "serial time of a ZeRO-1 optimizer update per rank of the sharding group",
               Zero::allowed),
      quantity("host_layer_forward", &S::host_layer_forward,
               "host time to launch the forward pass of a dense layer", Zero::allowed),
      quantity("host_moe_layer_forward", &S::host_moe_layer_forward,
               "host time to launch the forward pass of a MoE layer", Zero::allowed),
      number("host_backward", &S::host_backward,
             "host time to launch a backward pass over that of a forward pass", kFactorOrZero),
      quantity("host_microbatch", &S::host_microbatch,
               "host time per micro-batch for head, loss and bookkeeping", Zero::allowed),
      quantity("step_overhead", &S::step_overhead, "time per step for data loading and logging",
               Zero::allowed),
      number("rank_spread", &S::rank_spread,
             "standard deviation of the ranks' speed over its mean: the slowest sets the pace",
             kPart),
  };
}

std::vector<Field<Stack>> interval_and_reserve_fields() {
  using S = Stack;
  return {
      number(
          "interval_low", &S::interval_low,
          "10 % quantile of measured over predicted step time, among runs like those of this stack",
          kFactor),
      number("interval_high", &S::interval_high,
             "90 % quantile of measured over predicted step time, among the same runs", kFactor),
      number("interval_moe", &S::interval_moe,
             "factor on the logarithm of the step-time interval for mixture-of-experts networks",
             kFactor),
      object<evidence_section>(
          "evidence", &S::evidence,
          "published runs that the interval comes from; it widens beyond them"),
      number("memory_interval_low", &S::memory_interval_low,
             "10 % quantile of measured over predicted peak memory", kFactor),
      number("memory_interval_high", &S::memory_interval_high,
             "90 % quantile of measured over predicted peak memory", kFactor),
      quantity("runtime_memory", &S::runtime_memory,
               "device memory taken by the device context and communicator buffers", Zero::allowed),
      number("fragmentation", &S::fragmentation,
             "memory that the allocator reserves beyond the allocated, as a share of the allocated",
             kPart),
  };
}

std::vector<Field<Stack>> stack_fields() {
  std::vector<Field<Stack>> all = {
      text("name", &Stack::name, "name that tables show").absent("the name of the catalog entry"),
      text("source", &Stack::source, "where the figures come from"),
  };
  for (Field<Stack>& field : kernel_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : loss_and_expert_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : memory_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : plan_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : runtime_fields()) all.push_back(std::move(field));
  for (Field<Stack>& field : interval_and_reserve_fields()) all.push_back(std::move(field));
  all.push_back(objects<release_section>("releases", &Stack::releases,
                                         "how single releases differ; `training.release` or "
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
