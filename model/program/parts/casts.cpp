#include "model/program/parts/casts.h"

#include <utility>

namespace trainyard {
namespace {

struct CastNames {
  std::string_view input, gradient;
};

CastNames cast_names(OperatorKind part) {
  switch (part) {
    case OperatorKind::qkv_projection:
      return {"qkv input cast", "qkv gradient cast"};
    case OperatorKind::query_down:
      return {"latent input cast", "query latent gradient cast"};
    case OperatorKind::query_up:
      return {"query input cast", "query gradient cast"};
    case OperatorKind::kv_down:
      return {"latent input cast", "kv latent gradient cast"};
    case OperatorKind::kv_up:
      return {"kv latent cast", "kv gradient cast"};
    case OperatorKind::output_projection:
      return {"attention context cast", "attention output gradient cast"};
    case OperatorKind::expert_up:
      return {"expert input cast", "expert up gradient cast"};
    case OperatorKind::expert_activation:
      return {"expert up cast", ""};
    case OperatorKind::expert_down:
      return {"expert product cast", "expert output gradient cast"};
    case OperatorKind::mlp_up:
      return {"mlp input cast", "mlp up gradient cast"};
    case OperatorKind::mlp_activation:
      return {"mlp up cast", ""};
    case OperatorKind::mlp_down:
      return {"mlp product cast", "mlp output gradient cast"};
    case OperatorKind::shared_up:
      return {"shared input cast", "shared up gradient cast"};
    case OperatorKind::shared_activation:
      return {"shared up cast", ""};
    case OperatorKind::shared_down:
      return {"shared product cast", "shared output gradient cast"};
    case OperatorKind::mtp_projection:
      return {"mtp input cast", "mtp output gradient cast"};
    default:
      return {"cast", "gradient cast"};
  }
}

bool has_casts(const NetworkUnit& unit) {
  return unit.lowering().training.precision.casts_gemm_inputs();
}

// Whether gathers carry casts; without sequence parallelism there are none.
bool casts_first(const NetworkUnit& unit) {
  const Lowering& lowering = unit.lowering();
  return !lowering.plan.sequence_parallel || lowering.training.stack.quantised_gathers;
}

int cast_buffer(NetworkUnit& unit, std::string_view name, std::int64_t rows,
                const std::vector<Operand>& sources) {
  Lowering& lowering = unit.lowering();
  ProgramBuffer buffer{.name = name, .rows = rows};
  for (const Operand& source : sources) {
    const auto& of = lowering.program.buffer(source.buffer);
    buffer.columns += of.columns;
    buffer.routed = of.routed;
  }
  buffer.dtype = lowering.training.precision.layer_gemm;
  buffer.element_bytes = lowering.training.precision.saved_gemm_input_bytes;
  return lowering.add(buffer);
}

std::int64_t rows_of(const NetworkUnit& unit, Operand operand) {
  return unit.lowering().program.buffer(operand.buffer).rows;
}

Operation cast_operation(const NetworkUnit& unit, OperatorKind part, Phase phase,
                         const std::vector<Operand>& sources) {
  const PrecisionRecipe& precision = unit.lowering().training.precision;
  Operation cast{.kind = OperationKind::cast, .part = part, .dtype = precision.layer_gemm};
  cast.cast = phase == Phase::forward ? precision.input_cast : precision.gradient_cast;
  for (const Operand& source : sources) cast.operands.push_back(with_access(source, Access::read));
  return cast;
}

Operand append_cast(NetworkUnit& unit, OperatorKind part, Phase phase,
                    const std::vector<Operand>& sources) {
  const CastNames names = cast_names(part);
  const int made = cast_buffer(unit, phase == Phase::forward ? names.input : names.gradient,
                               rows_of(unit, sources.front()), sources);
  Operation cast = cast_operation(unit, part, phase, sources);
  cast.operands.push_back(creates(made));
  unit.add(phase, std::move(cast));
  return reads(made);
}

}  // namespace

CastFormat weight_cast(const NetworkUnit& unit, Dtype gemm) {
  const PrecisionRecipe& precision = unit.lowering().training.precision;
  return gemm == precision.layer_gemm ? precision.input_cast : CastFormat{};
}

int cast_input(NetworkUnit& unit, OperatorKind part, int input) {
  return has_casts(unit) ? append_cast(unit, part, Phase::forward, {reads(input)}).buffer : input;
}

std::vector<Operand> cast_gradients(NetworkUnit& unit, OperatorKind part,
                                    const std::vector<Operand>& gradients) {
  if (!has_casts(unit)) return gradients;
  return {append_cast(unit, part, Phase::input_gradient, gradients)};
}

GemmInput gathered_input(NetworkUnit& unit, OperatorKind part, int local, std::string_view name) {
  if (casts_first(unit) || !has_casts(unit)) {
    const int saved = cast_input(unit, part, local);
    return {unit.gathered(Phase::forward, reads(saved), name), saved};
  }
  const Operand whole = unit.gathered(Phase::forward, reads(local), name);
  const int cast = cast_buffer(unit, name, rows_of(unit, whole), {whole});
  const int saved = cast_buffer(unit, cast_names(part).input, rows_of(unit, reads(local)), {whole});
  Operation operation = cast_operation(unit, part, Phase::forward, {whole});
  operation.operands.push_back(creates(cast));
  operation.operands.push_back(creates(saved));
  unit.add(Phase::forward, std::move(operation));
  return {reads(cast), saved};
}

Operand gathered_gradient(NetworkUnit& unit, OperatorKind part, Operand local,
                          std::string_view name) {
  const Phase phase = Phase::input_gradient;
  if (!has_casts(unit)) return unit.gathered(phase, local, name);
  if (!casts_first(unit))
    return append_cast(unit, part, phase, {unit.gathered(phase, local, name)});
  return unit.gathered(phase, append_cast(unit, part, phase, {local}), name);
}

}  // namespace trainyard
