#include "model/program/program.h"

#include <algorithm>

#include "model/program/view.h"

namespace trainyard {
namespace {

int instances_of(const Program& program, const StageProgram& stage, Scope scope) {
  int layers = 0;
  int positions = 0;
  for (const ChunkLayout& chunk : stage.chunks) {
    layers += chunk.layers;
    positions += chunk.layers + 1;
  }
  switch (scope) {
    case Scope::stage:
      return 1;
    case Scope::layer:
      return layers;
    case Scope::microbatch:
      return program.microbatches;
    case Scope::activation:
      break;
  }
  return positions * stage.slots;
}

std::int64_t operations_in(const Program& program, const Body& body) {
  std::int64_t count = 0;
  for (const BlockCall& call : body.calls) {
    count += static_cast<std::int64_t>(
        program.blocks[static_cast<std::size_t>(call.block)].operations.size());
  }
  return count;
}

std::int64_t operations_in(const Program& program, const StageProgram& stage) {
  std::vector<std::int64_t> by_body;
  for (const Body& body : stage.bodies) by_body.push_back(operations_in(program, body));
  std::int64_t count = 0;
  for (const Step& step : stage.steps) count += by_body[static_cast<std::size_t>(step.body)];
  return count;
}

}  // namespace

std::size_t updated_gradients(const Operation& optimizer_step) {
  const auto updated =
      std::count_if(optimizer_step.operands.begin(), optimizer_step.operands.end(),
                    [](const Operand& operand) { return operand.access == Access::update; });
  return static_cast<std::size_t>(updated) / 2;  // as many weights, and the states
}

void number_instances(Program& program) {
  for (StageProgram& stage : program.stages) {
    stage.first_instance.clear();
    stage.instances = 0;
    for (const ProgramBuffer& buffer : program.buffers) {
      stage.first_instance.push_back(stage.instances);
      stage.instances += instances_of(program, stage, buffer.scope);
    }
    stage.operations = operations_in(program, stage);
  }
}

int instance_of(const Program& program, const IssuedOperation& issued, const Operand& operand) {
  const StageProgram& stage = program.stages[static_cast<std::size_t>(issued.stage)];
  const auto buffer = static_cast<std::size_t>(operand.buffer);
  const int first = stage.first_instance[buffer];
  switch (program.buffers[buffer].scope) {
    case Scope::stage:
      return first;
    case Scope::layer:
      return first + issued.call->local_layer + operand.ahead;
    case Scope::microbatch:
      return first + issued.step->microbatch;
    case Scope::activation:
      break;
  }
  const ChunkLayout& chunk = stage.chunks[static_cast<std::size_t>(issued.step->chunk)];
  const int position = chunk.first_position + issued.call->position + operand.ahead;
  return first + position * stage.slots + issued.step->slot;
}

int layer_of(const Program& program, const IssuedOperation& issued, const Operand& operand) {
  const bool of_layer = program.buffer(operand.buffer).scope == Scope::layer;
  return of_layer ? issued.call->layer + operand.ahead : -1;
}

}  // namespace trainyard
