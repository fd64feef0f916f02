#include <fmt/format.h>

#include <array>

#include "model/program/view.h"

namespace trainyard {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 58> kKinds = {
    "norm",
    "norm gradient",
    "head norm",
    "head norm gradient",
    "linear",
    "linear input gradient",
    "linear weight gradient",
    "cast",
    "rotary",
    "rotary gradient",
    "latent rotary",
    "latent rotary gradient",
    "attention",
    "attention gradient",
    "attention step",
    "attention gradient step",
    "residual",
    "residual gradient",
    "dropout",
    "dropout gradient",
    "activation",
    "activation gradient",
    "route",
    "route gradient",
    "permute",
    "unpermute",
    "sort rows",
    "unsort rows",
    "grouped linear",
    "grouped linear input gradient",
    "grouped linear weight gradient",
    "expert bias",
    "expert bias gradient",
    "embedding",
    "embedding gradient",
    "positions",
    "positions gradient",
    "cross-entropy max",
    "cross-entropy sum",
    "cross-entropy loss",
    "cross-entropy gradient",
    "sum of squares",
    "optimizer step",
    "clear",
    "accumulate",
    "move",
    "copy",
    "await",
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "dispatch",
    "combine",
    "pass on",
    "pass back",
    "send",
    "receive",
};
constexpr std::array<std::string_view, 37> kOperators = {
    "attention norm",
    "qkv projection",
    "query down",
    "query up",
    "kv down",
    "kv up",
    "qk norm",
    "rotary",
    "attention core",
    "ring merge",
    "output projection",
    "attention residual",
    "mlp norm",
    "router",
    "permutation",
    "expert up",
    "expert activation",
    "expert down",
    "mlp up",
    "mlp activation",
    "mlp down",
    "shared up",
    "shared activation",
    "shared down",
    "mlp residual",
    "gather copy",
    "scatter copy",
    "mtp state norm",
    "mtp embedding norm",
    "mtp concatenation",
    "mtp projection",
    "embedding",
    "embedding copy",
    "final norm",
    "head copy",
    "output head",
    "cross-entropy",
};
constexpr std::array<std::string_view, kProgramStreams> kStreamNames = {
    "compute", "tensor", "context", "expert", "pipeline", "data", "embedding", "copy", "fetch"};
constexpr std::array<std::string_view, 14> kGroups = {
    "none",   "tensor",        "kv-head",     "context",        "data",   "shard", "replica",
    "expert", "expert-tensor", "expert-data", "tied-embedding", "mirror", "model", "all"};
constexpr std::array<std::string_view, 6> kPasses = {
    "start", "forward", "backward", "input gradient", "weight gradient", "finish"};

// Does not compile unless every enumerator has a name.
template <typename Names, typename Kind>
constexpr bool names_up_to(const Names& names, Kind last) {
  return names.size() == static_cast<std::size_t>(last) + 1 && !names.back().empty();
}
static_assert(names_up_to(kKinds, OperationKind::receive));
static_assert(names_up_to(kOperators, OperatorKind::cross_entropy));
static_assert(names_up_to(kStreamNames, ProgramStream::fetch));
static_assert(names_up_to(kGroups, Group::all));
static_assert(names_up_to(kPasses, StepPass::finish));

}  // namespace

bool is_communication(OperationKind kind) { return kind >= OperationKind::all_reduce; }

bool moves_bytes(OperationKind kind) {
  return is_communication(kind) || kind == OperationKind::copy;
}

std::optional<CollectiveOperation> collective_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_reduce:
      return CollectiveOperation::all_reduce;
    case OperationKind::reduce_scatter:
      return CollectiveOperation::reduce_scatter;
    case OperationKind::all_gather:
      return CollectiveOperation::all_gather;
    case OperationKind::all_to_all:
    case OperationKind::dispatch:
    case OperationKind::combine:
      return CollectiveOperation::all_to_all;
    case OperationKind::pass_on:
    case OperationKind::pass_back:
    case OperationKind::send:
    case OperationKind::receive:
      return CollectiveOperation::send;
    default:
      return std::nullopt;
  }
}

std::int64_t whole_index(const Cut& cut, int tensor, std::int64_t local) {
  if (cut.axis == CutAxis::none) return local;
  std::int64_t before = 0;
  for (const Segment& segment : cut.segments) {
    const std::int64_t part = segment.whole / segment.shards;
    if (local < part) return before + tensor / segment.replicas * part + local;
    local -= part;
    before += segment.whole;
  }
  return before + local;
}

std::string_view name_of(OperationKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
std::string_view name_of(OperatorKind kind) { return kOperators[static_cast<std::size_t>(kind)]; }
std::string_view name_of(ProgramStream stream) {
  return kStreamNames[static_cast<std::size_t>(stream)];
}
std::string_view name_of(Group group) { return kGroups[static_cast<std::size_t>(group)]; }
std::string_view name_of(StepPass pass) { return kPasses[static_cast<std::size_t>(pass)]; }

std::string operand_name(const Program& program, const IssuedOperation& issued,
                         const Operand& operand) {
  const std::string_view name = program.buffer(operand.buffer).name;
  const int layer = layer_of(program, issued, operand);
  if (layer < 0 || layer == issued.call->layer) return std::string(name);
  return fmt::format("{} of layer {}", name, layer);
}

std::string kind_and_part(const Operation& operation) {
  std::string text(name_of(operation.kind));
  if (operation.part) text += fmt::format(" ({})", name_of(*operation.part));
  return text;
}

std::string described(const IssuedOperation& issued) {
  const Operation& operation = *issued.operation;
  std::string text = kind_and_part(operation);
  if (!operation.part && operation.group != Group::none) {
    text += fmt::format(" over the {} group", name_of(operation.group));
  }
  if (issued.call->layer >= 0) text += fmt::format(" of layer {}", issued.call->layer);
  const Step& step = *issued.step;
  if (step.pass == StepPass::start) return text + ", start of the step";
  if (step.pass == StepPass::finish) return text + ", end of the step";
  return fmt::format("{}, micro-batch {}, chunk {}, {}", text, step.microbatch, step.chunk,
                     name_of(step.pass));
}

}  // namespace trainyard
