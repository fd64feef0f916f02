// The software stack that runs the step: what it fuses, overlaps, keeps in which dtype, and what it
// costs the host. After the device it is the strongest input of a prediction. A plain value; the
// catalog (scenarios/catalog/stacks) holds one document a stack, each figure with its source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainyard {

// What `"recompute": "selective"` means to a stack.
enum class SelectiveRecompute {
  core_attention,  // the attention core (Korthikanti 2022); free of effect under flash attention
  every_second_matmul,  // every second GEMM and the memory-bound operators (torchtitan)
  half_of_layers,       // full recomputation of every second layer (fms-fsdp)
};

// Which numbers of its layers a stage of a pipeline may repeat in full, and the others not.
enum class PartialRecompute {
  by_stage,  // any, each stage its own, and each stage its own mode
  by_chunk,  // as many in every chunk of the pipeline (Megatron-Core's recompute_method "block")
  none,      // all of them or none, on every stage
};

// Whether tensor parallelism comes with sequence parallelism.
enum class SequenceParallelism { either, always, never };

// Which ranks the experts of a layer are spread over.
enum class ExpertSpread {
  any,
  none,         // none: every rank has all of them, whole
  over_shards,  // whole context groups of those that shard the states (torchtitan)
};

// What plans it does not run. The fastest plan would be one that is refused where it starts, so a
// search leaves these out unless they are asked for by name (planner/offered.h).
struct StackLimits {
  bool pipelines = true;
  bool empty_chunks = true;    // chunks of a pipeline without a layer
  int interleaved_stages = 2;  // fewest of a pipeline whose stages have several chunks
  bool pass_lists = true;      // orders of the passes of their own
  bool selective_recompute = true;
  // Under schedules without a barrier the norm of the gradients is looked at after the update, so
  // that a stage starts its next step before the others end theirs (Qi et al. 2023, section 4).
  bool post_validation = true;
  SequenceParallelism sequence_parallel = SequenceParallelism::either;
  // Algorithms of context parallelism; nothing: all. An empty list: no context parallelism.
  std::optional<std::vector<std::string>> context_algorithms;
  bool ulysses_cuts_kv_heads = false;  // and so needs one of them a rank
  ExpertSpread experts = ExpertSpread::any;
  // ZeRO stages beside tensor and beside context parallelism; empty: as without.
  std::vector<int> tensor_zero_stages, context_zero_stages;
  bool whole_context_groups = false;  // are what groups that shard the states are made of
  bool layers_stay = false;           // one layer's activations at least stay on the device
};

// What it can keep in the memory of the hosts: for each choice of the planner
// (planner/search_space.h) the ZeRO stages under which it can; none: it cannot.
struct StackOffload {
  std::vector<int> optimizer, activations, states, all;
};

struct StackOverlap {  // whether a communication runs beside compute by default
  bool tensor_parallel = false;
  bool context_parallel = false;
  bool expert_parallel = false;
  bool pipeline = false;
  bool data_parallel = false;
};

// What the published runs behind a stack's interval were like. A prediction beyond them is less
// certain (model/cost/interval.h).
struct StackEvidence {
  int runs = 0;                                            // 0: the interval is not of this stack
  int devices = 0;                                         // of the largest run
  std::int64_t sequence_length = 0;                        // the longest; 0: not known
  bool ampere = false, hopper = false, blackwell = false;  // device generations among them
  bool tensor_parallel = false;
  bool pipeline_parallel = false;
  bool context_parallel = false;
};

// What the stack's releases of a period do otherwise: structure that their notes and recipes
// document. What is absent stays.
struct StackRelease {
  std::string since, before;      // "25.11": year and month; empty: no bound
  std::string precision;          // the one recipe it holds for; empty: all
  std::string generation;         // of the devices that it holds for, "hopper"; empty: all
  bool latent_attention = false;  // only for networks with it
  std::string source;             // the release notes or the recipe
  // MoE layers are CUDA graphs: the host's time for them is nothing.
  std::optional<bool> moe_graphs;
  std::optional<bool> expert_overlap;
  std::optional<bool> deduplicated_dispatch;
  std::optional<bool> expert_padding;
  std::optional<bool> fused_expert_casts;
  std::optional<bool> expert_bias_apart;
  std::optional<bool> delayed_scaling;
  std::optional<bool> fused_activation_casts;
  std::optional<bool> quantised_activation_input;
  std::optional<bool> offloads_activations;
  std::optional<bool> flash_attention;
  std::optional<double> gradient_bytes, reduction_bytes;
  std::optional<double> cross_entropy_forward_bytes, cross_entropy_backward_bytes;
  std::optional<double> saved_logit_bytes, parallel_logit_bytes;
  std::optional<double> attention_generation;
};

struct Stack {
  std::string name;
  std::string source;

  bool flash_attention = true;  // false: score matrix in memory (batched GEMM, softmax, GEMM)
  double attention_speed = 1;  // forward rate of its attention kernel over the device's fitted rate
  // The same on Hopper and Blackwell, where a kernel written for older instructions
  // reaches about half of what the device's own does; negative: as attention_speed.
  double attention_speed_hopper = -1;
  double attention_generation = 1;  // of its kernel over the one that the speeds above are of
  double attention_backward = 2.6;  // time of backward over forward (flash only)
  // Rate of its library's GEMMs on Hopper and Blackwell over the device's fitted rate: the first
  // libraries for Hopper were slower than those of the tables.
  double gemm_speed_hopper = -1;  // negative: 1
  double expert_speed = 1;        // rate of its experts' GEMMs over the device's fitted rate
  bool dropout = false;           // masks of one byte an element are saved
  double memory_traffic = 1;      // traffic of memory-bound operators over the fused minimum
  // PyTorch's autograd runs one operation after another: the gradients of biases, of norms' weights
  // and of queries, keys and values put together are kernels of their own.
  bool eager_gradients = false;
  // Layers are compiled as a whole (torch.compile): what is kept between their passes is what the
  // partitioner finds that backward reads, and not whatever an eager operation was told to keep.
  bool compiled = false;
  bool fused_cross_entropy = true;  // two all-reduces instead of three
  // Traffic a logit, counted kernel by kernel: `memory_traffic` is not of it.
  double cross_entropy_forward_bytes = 10;
  double cross_entropy_backward_bytes = 8;
  double saved_logit_bytes = 6;  // memory held for a logit at its peak, its gradient included
  // The same where the vocabulary is sharded over tensor-parallel ranks; 0: no more.
  double parallel_logit_bytes = 0;

  // A token goes once to each rank, however many of its experts are there.
  bool deduplicated_dispatch = false;
  // In low precision each expert's rows are padded to the GEMM's alignment by copies of their own,
  // and the padding is cut off the output by another.
  bool expert_padding = false;
  bool fused_expert_casts = false;  // experts' inputs are cast by the kernels that write them
  // The bias behind experts is weighted and added in fp32 by operations of their own.
  bool expert_bias_apart = false;
  bool delayed_scaling = false;  // scales come from earlier steps: casts do not look for them
  // In low precision the kernel of an MLP's activation casts its product for the GEMM behind it,
  // and in backward the gradients for the GEMMs before it; and it keeps its input cast.
  bool fused_activation_casts = false;
  bool quantised_activation_input = false;

  double gradient_bytes = 4;      // element of the gradient that is kept for the optimizer
  double reduction_bytes = 4;     // element of the gradient as it is reduced over data parallelism
  bool keeps_weight_copy = true;  // a 16-bit copy beside the master weights (FSDP casts on the fly)
  bool gradient_accumulation_fused = true;  // the GEMM adds to the main gradient itself
  SelectiveRecompute selective = SelectiveRecompute::core_attention;
  // Recomputing a layer ends once its last saved input is there: the final GEMM and residual are
  // not repeated (torch.utils.checkpoint since PyTorch 2.1: early stop).
  bool recompute_stops_early = false;
  // What does not fit goes to the host's memory, where that is faster than recomputing it
  // (`"recompute": "auto"`, fully sharded parameters, no pipeline).
  bool offloads_activations = false;
  StackOffload offload;
  // Orders of the ranks that it can run, the usual one first; empty: that alone. Where pp is not
  // the last of an order, experts leave as many replicas as the rest of the network
  // (Megatron-Core).
  std::vector<std::string> rank_orders;
  // ZeRO stages whose states it can shard over a part of the ranks that hold the same parameters,
  // and repeat on the others: dense networks, since experts would be sharded over a part as well.
  std::vector<int> grouped_sharding;
  bool sequence_parallel = true;  // default of plan.sequence_parallel when t > 1
  int zero_stage = 0;             // default of plan.zero_stage
  // The stack of the catalog that runs plans with ZeRO instead; empty: this one does.
  std::string zero_stack;
  // ZeRO stages that it runs, and those under a pipeline; empty: any, and those without one.
  std::vector<int> zero_stages, pipeline_zero_stages;
  // Under a pipeline ZeRO 2 and 3 add up whole gradients (no_sync) and reduce those of a chunk
  // behind its last backward pass, and weights that were gathered for the first forward pass stay
  // until then (FSDP2 under torch.distributed.pipelining).
  bool pipeline_no_sync = false;
  PartialRecompute partial_recompute = PartialRecompute::by_stage;
  StackLimits limits;

  std::vector<std::string> schedules;  // pipeline schedules it runs, by name; empty: any

  StackOverlap overlap;
  // Sequences are sharded in the second dimension of the tensors. Collectives work on the first
  // one, so that beside each gather and each reduce-scatter of activations the whole tensor is
  // copied.
  bool copies_sharded_sequences = false;
  // What sequence parallelism gathered for a column-parallel GEMM is kept for its weight gradient,
  // not this rank's part alone, to be gathered again (Korthikanti et al. 2022, §4.2.2).
  bool keeps_gathered_inputs = false;
  // Gathers of sequence parallelism carry the GEMM's cast input (fp8 recipes), not 16-bit
  // activations (Transformer Engine, torchao float8).
  bool quantised_gathers = false;
  double tensor_parallel_hidden = 0;  // part of TP traffic hidden when it overlaps
  // Seconds of compute lost a second of overlapped communication, as far as that runs at the pace
  // of the links inside a node. A device that was measured has its own (Device::overlap_slowdown).
  double overlap_slowdown = 0;
  // ZeRO-1's parameters come back after the update with nothing beside them, even where gradients
  // are reduced beside the backward pass.
  bool exposed_gathers = false;
  // Without sequence parallelism a stage sends 1/t of the activations and gathers them on the other
  // side (scatter/gather optimisation, Narayanan et al. 2021, §4.1).
  bool scattered_sends = false;
  bool optimizer_barrier = true;    // blocking gradient-norm clipping before the optimizer step
  Seconds sharded_update_per_rank;  // serial part of a ZeRO-1 update, a rank of the sharding group

  Seconds host_layer_forward;      // launching one dense layer's forward pass
  Seconds host_moe_layer_forward;  // and a MoE layer's
  double host_backward = 1.25;     // backward over forward
  Seconds host_microbatch;         // head, loss and bookkeeping of a micro-batch, last stage
  Seconds step_overhead;           // data loading, logging, a step
  // Standard deviation of a rank's speed over its mean. All wait for the slowest of N, which is
  // slower than the mean by this times the expected maximum of N normal variables.
  double rank_spread = 0;

  double interval_low = 0.9;   // 10 % and 90 % quantiles of measured over predicted step time
  double interval_high = 1.1;  // of runs that were not fitted to, dense networks (docs/accuracy.md)
  double interval_moe = 2;  // how many times wider, in logarithm, for mixture-of-experts networks
  StackEvidence evidence;

  // 10 % and 90 % quantiles of measured over predicted peaks of memory; nothing of it was fitted.
  double memory_interval_low = 0.95;
  double memory_interval_high = 1.1;
  Bytes runtime_memory;         // context, communicator buffers
  double fragmentation = 0.03;  // reserved over allocated memory, minus one

  std::vector<StackRelease> releases;
};

// What decides which entries of `releases` hold.
struct ReleasedJob {
  std::string_view release;     // "26.04.01 NeMo Container"
  std::string_view precision;   // the recipe's name
  std::string_view generation;  // of its devices
  bool latent_attention = false;
};

// The stack as the job's release has it: what every matching entry of `releases` says, later ones
// over earlier ones. The stack itself where the release does not begin with year and month.
Stack at_release(Stack stack, const ReleasedJob& job);

// Whether a text begins with year and month, so that it can choose a release.
bool names_release(std::string_view text);

}  // namespace trainyard
