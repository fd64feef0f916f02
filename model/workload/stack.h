// The software stack that runs the step: what it fuses, overlaps and keeps in which dtype, and what
// host time it costs. After the device it is the strongest input of a prediction. A plain value;
// the catalog (scenarios/catalog/stacks) holds one document for each stack, with a source for each
// figure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainyard {

// What `"recompute": "selective"` repeats under a stack.
enum class SelectiveRecompute {
  core_attention,       // the attention core (Korthikanti 2022); nothing under flash attention
  every_second_matmul,  // every second GEMM and the memory-bound operators (torchtitan)
  half_of_layers,       // full recomputation of every second layer (fms-fsdp)
};

// How many layers a pipeline stage may recompute in full while it keeps the others.
enum class PartialRecompute {
  by_stage,  // any number; number and recompute mode may differ between stages
  by_chunk,  // the same number in every chunk (Megatron-Core's recompute_method "block")
  none,      // all layers or none, alike on every stage
};

// Whether a stack runs tensor parallelism with and without sequence parallelism.
enum class SequenceParallelism { either, always, never };

// Which ranks the experts of a layer may be spread over.
enum class ExpertSpread {
  any,
  none,         // no ranks: every rank holds all experts, whole
  over_shards,  // whole context-parallel groups of the ranks that share sharded states (torchtitan)
};

// Plans that the stack does not run. A search would otherwise return a plan that the stack refuses
// at start, so it leaves these out unless they are asked for by name (planner/offered.h).
struct StackLimits {
  bool pipelines = true;
  bool empty_chunks = true;    // a chunk of a pipeline may have no layer
  int interleaved_stages = 2;  // fewest stages of a pipeline with several chunks a stage
  bool pass_lists = true;      // it runs a pass list of one's own
  bool selective_recompute = true;
  // Under schedules without a barrier the gradient norm is checked after the update, so that a
  // stage starts its next step before the others end theirs (Qi et al. 2023, section 4). False:
  // stages wait as `optimizer_barrier` says.
  bool post_validation = true;
  SequenceParallelism sequence_parallel = SequenceParallelism::either;
  // Algorithms of context parallelism. Nothing: all; an empty list: no context parallelism.
  std::optional<std::vector<std::string>> context_algorithms;
  bool ulysses_cuts_kv_heads = false;  // Ulysses: c must divide a rank's KV heads
  ExpertSpread experts = ExpertSpread::any;
  // ZeRO stages that it runs with tensor and with context parallelism; empty: the same as without.
  std::vector<int> tensor_zero_stages, context_zero_stages;
  bool whole_context_groups = false;  // sharding groups consist of whole context-parallel groups
  bool layers_stay = false;  // if activations are offloaded, one layer's stay on the device
};

// What the stack can keep in host memory: for each choice of the planner (planner/search_space.h)
// the ZeRO stages under which it can; empty: it cannot.
struct StackOffload {
  std::vector<int> optimizer, activations, states, all;
};

struct StackOverlap {  // whether a communication overlaps compute by default
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
  std::int64_t sequence_length = 0;                        // the longest; 0: unknown
  bool ampere = false, hopper = false, blackwell = false;  // device generations among them
  bool tensor_parallel = false;
  bool pipeline_parallel = false;
  bool context_parallel = false;
};

// What the releases of a period do differently: structure that their notes and recipes document.
// Absent fields keep the value of the Stack field of the same name (expert_overlap: that of
// overlap.expert_parallel).
struct StackRelease {
  std::string since, before;      // "25.11": year and month; empty: no bound
  std::string precision;          // the one recipe that the entry holds for; empty: all
  std::string generation;         // the one device generation ("hopper"); empty: all
  bool latent_attention = false;  // holds only for networks with latent attention
  std::string source;             // the release notes or the recipe
  // MoE layers run as CUDA graphs: host_moe_layer_forward is 0.
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
  std::optional<bool> pipeline_keeps_outputs, pipeline_keeps_gradients, pipeline_keeps_logits;
};

struct Stack {
  std::string name;
  std::string source;

  bool flash_attention = true;  // false: score matrix in memory (batched GEMM, softmax, GEMM)
  double attention_speed = 1;  // forward rate of its attention kernel over the device's fitted rate
  // The same on Hopper and Blackwell. A kernel written for older instructions reaches about half of
  // the rate of the device's own there. Negative: as attention_speed.
  double attention_speed_hopper = -1;
  double attention_generation = 1;  // rate of its kernel over that of the one the speeds are of
  double attention_backward = 2.6;  // time of backward over forward (flash only)
  // Rate of its GEMM library on Hopper and Blackwell over the device's fitted rate: the first
  // libraries for Hopper were slower than those in the measured tables.
  double gemm_speed_hopper = -1;  // negative: 1
  double expert_speed = 1;        // rate of its experts' GEMMs over the device's fitted rate
  bool dropout = false;           // masks of one byte an element are saved
  double memory_traffic = 1;      // traffic of memory-bound operators over the fused minimum
  // As in PyTorch's autograd, separate kernels compute the gradients of biases and of norms'
  // weights and concatenate the gradients of queries, keys and values.
  bool eager_gradients = false;
  // Layers are compiled as a whole (torch.compile): between the passes they keep what the
  // partitioner finds that backward reads, not what each eager operation would keep.
  bool compiled = false;
  bool fused_cross_entropy = true;  // two all-reduces instead of three
  // Traffic of each logit in bytes, counted kernel by kernel; `memory_traffic` does not scale it.
  double cross_entropy_forward_bytes = 10;
  double cross_entropy_backward_bytes = 8;
  double saved_logit_bytes = 6;  // memory held for each logit at its peak, its gradient included
  // The same if the vocabulary is sharded over tensor-parallel ranks; 0: as saved_logit_bytes.
  double parallel_logit_bytes = 0;

  // The dispatch sends a token once to each rank, however many of its experts are there.
  bool deduplicated_dispatch = false;
  // In low precision one copy pads each expert's rows to the GEMM's alignment, and another cuts the
  // padding off the output.
  bool expert_padding = false;
  bool fused_expert_casts = false;  // the kernels that write experts' inputs also cast them
  // Operations of their own weight the experts' bias and add it, in fp32.
  bool expert_bias_apart = false;
  bool delayed_scaling = false;  // scales come from earlier steps: casts need not find them
  // In low precision the kernel of an MLP's activation casts its product for the GEMM behind it
  // and, in backward, the gradients for the GEMMs before it (fused_activation_casts); and it keeps
  // its input in low precision (quantised_activation_input).
  bool fused_activation_casts = false;
  bool quantised_activation_input = false;

  double gradient_bytes = 4;      // a gradient element as it is kept for the optimizer
  double reduction_bytes = 4;     // a gradient element as it is reduced over data parallelism
  bool keeps_weight_copy = true;  // a 16-bit copy beside the master weights (FSDP casts on the fly)
  bool gradient_accumulation_fused = true;  // the GEMM itself adds to the main gradient
  SelectiveRecompute selective = SelectiveRecompute::core_attention;
  // Recomputing a layer ends when its last saved input is there, so its final GEMM and residual are
  // not repeated (torch.utils.checkpoint since PyTorch 2.1: early stop).
  bool recompute_stops_early = false;
  // Activations that do not fit go to host memory where that is faster than to recompute them
  // (`"recompute": "auto"`, fully sharded parameters, no pipeline).
  bool offloads_activations = false;
  StackOffload offload;
  // Rank orders that it can run, the usual one first; empty: only the usual one. If pp is not the
  // last in the order, experts must leave as many replicas as the rest of the network
  // (Megatron-Core).
  std::vector<std::string> rank_orders;
  // ZeRO stages whose states it can shard over a part of the ranks that hold the same parameters
  // and replicate across the parts. Dense networks only: experts would be sharded so as well.
  std::vector<int> grouped_sharding;
  bool sequence_parallel = true;  // default of plan.sequence_parallel when t > 1
  int zero_stage = 0;             // default of plan.zero_stage
  // The catalog stack that runs plans with ZeRO, if this one cannot; empty: this one can.
  std::string zero_stack;
  // ZeRO stages that it runs (empty: any), and under a pipeline (empty: the same as without).
  std::vector<int> zero_stages, pipeline_zero_stages;
  // Under a pipeline ZeRO 2 and 3 accumulate unsharded gradients (no_sync) and reduce those of a
  // chunk after its last backward pass; weights gathered for the first forward pass stay until then
  // (FSDP2 under torch.distributed.pipelining).
  bool pipeline_no_sync = false;
  // Under a pipeline each chunk has a buffer for every micro-batch and each direction, throughout,
  // in which activations and gradients come; what it sends is there until the backward pass of the
  // micro-batch has ended (torch.distributed.pipelining).
  bool pipeline_receive_buffers = false;
  // To the end of the step stay: what chunks sent forward, the gradients that they sent back, the
  // logits of the last one as they left the head.
  bool pipeline_keeps_outputs = false, pipeline_keeps_gradients = false;
  bool pipeline_keeps_logits = false;
  PartialRecompute partial_recompute = PartialRecompute::by_stage;
  StackLimits limits;

  std::vector<std::string> schedules;  // pipeline schedules it runs, by name; empty: any

  StackOverlap overlap;
  // Sequences are sharded in the second dimension of the tensors, but collectives work on the first
  // one. So each all-gather and each reduce-scatter of activations also copies the whole tensor.
  bool copies_sharded_sequences = false;
  // The gathered input of a column-parallel GEMM is kept for its weight gradient; otherwise only
  // this rank's part is kept and gathered again (Korthikanti et al. 2022, §4.2.2).
  bool keeps_gathered_inputs = false;
  // All-gathers of sequence parallelism carry the GEMM's cast input (fp8 recipes) instead of 16-bit
  // activations (Transformer Engine, torchao float8).
  bool quantised_gathers = false;
  double tensor_parallel_hidden = 0;  // share of TP traffic that is hidden when it overlaps
  // Seconds of compute lost per second of overlapped communication, as far as that runs at the pace
  // of the links inside a node. A measured device has its own figure (Device::overlap_slowdown).
  double overlap_slowdown = 0;
  // ZeRO-1's all-gather of the updated parameters overlaps nothing, even if the reduction of
  // gradients overlaps the backward pass.
  bool exposed_gathers = false;
  // Gradients reduced once a step, and weights gathered after a sharded update, move in buckets
  // where they overlap passes: from a chunk's last layer on, until a bucket has so many parameters
  // of a rank, or so many times D, the larger of the two. Only the first chunk of the first stage
  // has several buckets; every other chunk is one (Megatron-Core, distributed_data_parallel.py).
  // 0: each layer is a message.
  double bucket_parameters = 0, bucket_parameters_per_rank = 0;
  // Without sequence parallelism each tensor-parallel rank sends 1/t of the activations to the next
  // stage, which gathers them (scatter/gather optimisation, Narayanan et al. 2021, §4.1).
  bool scattered_sends = false;
  bool optimizer_barrier = true;    // blocking gradient-norm clipping before the optimizer step
  Seconds sharded_update_per_rank;  // serial part of a ZeRO-1 update per rank of the sharding group

  Seconds host_layer_forward;      // host time to launch one dense layer's forward pass
  Seconds host_moe_layer_forward;  // and a MoE layer's
  double host_backward = 1.25;     // host time of backward over forward
  Seconds host_microbatch;         // head, loss and bookkeeping of a micro-batch, last stage
  Seconds step_overhead;           // data loading and logging of a step
  // Standard deviation of a rank's speed over its mean. A step waits for the slowest of N ranks,
  // which is slower than the mean by this times the expected maximum of N normal variables.
  double rank_spread = 0;

  double interval_low = 0.9;   // 10 % and 90 % quantiles of measured over predicted step time, of
  double interval_high = 1.1;  // dense runs that were held out of the fit (docs/accuracy.md)
  double interval_moe = 2;     // factor on the width, in logarithm, for mixture-of-experts networks
  StackEvidence evidence;

  // 10 % and 90 % quantiles of measured over predicted peak memory; no memory figure was fitted.
  double memory_interval_low = 0.95;
  double memory_interval_high = 1.1;
  Bytes runtime_memory;         // device context and communicator buffers
  double fragmentation = 0.03;  // reserved over allocated memory, minus one

  std::vector<StackRelease> releases;
};

// The properties of a job that decide which entries of `releases` hold.
struct ReleasedJob {
  std::string_view release;     // "26.04.01 NeMo Container"
  std::string_view precision;   // the recipe's name
  std::string_view generation;  // of its devices
  bool latent_attention = false;
};

// The stack as the job's release runs it: every matching entry of `releases` is applied, later ones
// over earlier ones. If `release` does not begin with year and month, the stack stays as it is.
Stack at_release(Stack stack, const ReleasedJob& job);

// Whether a text begins with year and month ("25.11"), so that it can choose a release.
bool names_release(std::string_view text);

}  // namespace trainyard
