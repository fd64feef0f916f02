#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "model/program/check.h"
#include "model/program/view.h"

namespace trainyard {
namespace {

enum class BufferState : std::uint8_t { never_written, in_use, freed };

class BufferCheck {
 public:
  BufferCheck(const Program& program, int stage, int rank)
      : program_(program), stage_(stage), rank_(rank) {
    states_.resize(
        static_cast<std::size_t>(program.stages[static_cast<std::size_t>(stage)].instances));
  }

  Expected<void> run() {
    for (const IssuedOperation issued : operations_of(program_, stage_)) {
      for (const Operand& operand : issued.operation->operands) {
        const std::string_view objection = use(issued, operand);
        if (!objection.empty()) return refuse(issued, operand, objection);
      }
    }
    return nothing_left();
  }

 private:
  const ProgramBuffer& buffer_of(const Operand& operand) const {
    return program_.buffer(operand.buffer);
  }

  // The sentence that says what is wrong; empty: nothing is.
  std::string_view use(const IssuedOperation& issued, const Operand& operand) {
    if (buffer_of(operand).role != BufferRole::activation) {
      if (operand.frees) return "frees {}, which outlives the step";
      return operand.access == Access::create ? "creates {}, which is there before the step" : "";
    }
    BufferState& state = states_[static_cast<std::size_t>(instance_of(program_, issued, operand))];
    if (operand.access == Access::create) {
      if (state == BufferState::in_use) return "creates {} while the one before it is in use";
      state = BufferState::in_use;
    } else if (state == BufferState::never_written) {
      return "reads {} before it is written";
    } else if (state == BufferState::freed) {
      return operand.frees ? "frees {}, which was freed" : "reads {} after it was freed";
    }
    if (operand.frees) state = BufferState::freed;
    return "";
  }

  Expected<void> refuse(const IssuedOperation& issued, const Operand& operand,
                        std::string_view objection) const {
    const std::string what =
        fmt::format(fmt::runtime(objection), fmt::format("\"{}\"", buffer_of(operand).name));
    return failure("program", fmt::format("rank {}: {} {}", rank_, described(issued), what));
  }

  // If an activation is still in use at the end, names the operation that created it.
  Expected<void> nothing_left() const {
    for (const IssuedOperation issued : operations_of(program_, stage_)) {
      for (const Operand& operand : issued.operation->operands) {
        const bool activation = buffer_of(operand).role == BufferRole::activation;
        if (!activation || operand.access != Access::create) continue;
        const int instance = instance_of(program_, issued, operand);
        if (states_[static_cast<std::size_t>(instance)] == BufferState::in_use) {
          return refuse(issued, operand, "creates {}, which nobody frees");
        }
      }
    }
    return {};
  }

  const Program& program_;
  int stage_, rank_;
  std::vector<BufferState> states_;
};

}  // namespace

Expected<void> check_buffers(const Program& program, const RankLayout& layout) {
  for (int stage = 0; stage < static_cast<int>(program.stages.size()); ++stage) {
    auto checked = BufferCheck(program, stage, layout.in_stage(0, stage)).run();
    if (!checked) return checked;
  }
  return {};
}

}  // namespace trainyard
