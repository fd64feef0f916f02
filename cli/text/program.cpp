#include "cli/text/program.h"

#include <fmt/format.h>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "model/program/flop.h"
#include "model/program/view.h"

namespace trainyard {
namespace {

std::string_view short_name(StepPass pass) {
  switch (pass) {
    case StepPass::forward:
      return "F";
    case StepPass::backward:
      return "BW";
    case StepPass::input_gradient:
      return "B";
    case StepPass::weight_gradient:
      return "W";
    case StepPass::start:
      return "start";
    case StepPass::finish:
      break;
  }
  return "end";
}

bool has_own_name(OperationKind kind) {
  return kind >= OperationKind::embedding && kind < OperationKind::move;
}

// "qkv projection, weight gradient", "cast, mlp up", "all-gather, tensor", "send to 12".
std::string operation_text(const RankProgram& of, const IssuedOperation& issued) {
  const Operation& operation = *issued.operation;
  const std::string_view kind = name_of(operation.kind);
  if (issued.call->peer >= 0 && operation.group == Group::none) {
    const std::string_view way = operation.kind == OperationKind::send ? "to" : "from";
    return fmt::format("{} {} {}", kind, way, of.layout.in_stage(of.rank, issued.call->peer));
  }
  if (operation.group != Group::none) {
    return fmt::format("{}, {}", kind, name_of(operation.group));
  }
  if (!operation.part || has_own_name(operation.kind)) return std::string(kind);
  const bool casts = operation.kind == OperationKind::cast;
  std::string part = fmt::format("{}{}", casts ? "cast, " : "", name_of(*operation.part));
  switch (operation.phase) {
    case Phase::input_gradient:
      return fmt::format("{}, input gradient", part);
    case Phase::weight_gradient:
      return fmt::format("{}, weight gradient", part);
    default:
      return part;
  }
}

// Size of an operation: m×n×k of a GEMM, else bytes of its message or largest buffer.
std::string size_text(const Program& program, const Operation& operation) {
  if (operation.gemm.m > 0) {
    return fmt::format("{}×{}×{}", operation.gemm.m, operation.gemm.n, operation.gemm.k);
  }
  if (moves_bytes(operation.kind)) return with_unit(operation.message);
  Bytes largest;
  for (const Operand& operand : operation.operands) {
    largest = std::max(largest, program.buffer(operand.buffer).bytes());
  }
  return with_unit(largest);
}

std::string number_or_blank(int number) { return number < 0 ? "" : std::to_string(number); }

// "3"; "3–7" of an operation over the parameters of several layers; blank outside layers.
std::string layers_text(const Program& program, const IssuedOperation& issued) {
  const int first = issued.call->layer;
  int last = first;
  for (const Operand& operand : issued.operation->operands) {
    last = std::max(last, layer_of(program, issued, operand));
  }
  if (last == first) return number_or_blank(first);
  return fmt::format("{}–{}", first, last);
}

std::string buffer_names(const Program& program, const IssuedOperation& issued, Access access) {
  std::string names;
  for (const Operand& operand : issued.operation->operands) {
    if (operand.access != access) continue;
    if (!names.empty()) names += "; ";
    names += operand_name(program, issued, operand);
  }
  return names;
}

std::string heading(const RankProgram& of) {
  const RankCoordinates at = of.layout.coordinates(of.rank);
  const StageProgram& stage = of.program.stages[static_cast<std::size_t>(at.stage)];
  return fmt::format(
      "rank {} of {}: stage {}, tensor rank {}, context rank {}, data rank {}; {} operations\n"
      "F forward, B input gradient, W weight gradient, BW both; sizes: a GEMM's m×n×k, else "
      "bytes\n",
      of.rank, count(of.layout.ranks()), at.stage, at.tensor, at.context, at.data,
      count(stage.operations));
}

}  // namespace

std::string program_text(const RankProgram& of, const Style& style) {
  Table table({{"#", ""},
               {"pass", "", Align::left},
               {"micro-batch", ""},
               {"chunk", ""},
               {"layer", ""},
               {"operation", "", Align::left},
               {"stream", "", Align::left},
               {"dtype", "", Align::left},
               {"size", ""}});
  std::int64_t index = 0;
  for (const IssuedOperation issued :
       operations_of(of.program, of.layout.coordinates(of.rank).stage)) {
    const Operation& operation = *issued.operation;
    const Tag tag = issued.tag();
    const bool in_pass = tag.pass != StepPass::finish && tag.pass != StepPass::start;
    table.add_row({std::to_string(index++), std::string(short_name(tag.pass)),
                   number_or_blank(in_pass ? tag.microbatch : -1),
                   number_or_blank(in_pass ? tag.chunk : -1), layers_text(of.program, issued),
                   operation_text(of, issued), std::string(name_of(operation.stream)),
                   std::string(name_of(operation.dtype)), size_text(of.program, operation)});
  }
  return style.strong(heading(of)) + "\n" + table.render(style);
}

std::vector<CsvRow> program_rows(const RankProgram& of) {
  std::vector<CsvRow> rows;
  for (const IssuedOperation issued :
       operations_of(of.program, of.layout.coordinates(of.rank).stage)) {
    const Operation& operation = *issued.operation;
    const Tag tag = issued.tag();
    const bool moves = moves_bytes(operation.kind);
    rows.push_back(
        {{"pass", std::string(name_of(tag.pass))},
         {"microbatch", std::to_string(tag.microbatch)},
         {"chunk", std::to_string(tag.chunk)},
         {"layer", number_or_blank(tag.layer)},
         {"operation", std::string(name_of(operation.kind))},
         {"operator", operation.part ? std::string(name_of(*operation.part)) : ""},
         {"stream", std::string(name_of(operation.stream))},
         {"dtype", std::string(name_of(operation.dtype))},
         {"flop", csv_number(flop_of(operation).value())},
         {"group", operation.group == Group::none ? "" : std::string(name_of(operation.group))},
         {"message_bytes", moves ? csv_number(operation.message.value()) : ""},
         {"reads", buffer_names(of.program, issued, Access::read)},
         {"creates", buffer_names(of.program, issued, Access::create)},
         {"updates", buffer_names(of.program, issued, Access::update)}});
  }
  return rows;
}

}  // namespace trainyard
