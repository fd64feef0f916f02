// A rank's own list of operations as a view of the folded program: it stores and allocates nothing.
// All ranks of a stage see the same list; rank_layout.h says which part of the tensors each holds.
//
//   for (const IssuedOperation issued : operations_of(program, stage)) { … }
//
// The order is that in which a host would launch them. Operations of different streams overlap as
// far as their buffers allow (operation.h).
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

#include "model/program/program.h"

namespace trainyard {

struct Tag {
  int stage = 0;
  StepPass pass = StepPass::forward;
  int chunk = 0;
  int microbatch = 0;
  int layer = -1;
};

struct IssuedOperation {
  const Operation* operation = nullptr;
  const Block* block = nullptr;
  const BlockCall* call = nullptr;
  const Step* step = nullptr;
  int stage = 0;

  Tag tag() const { return {stage, step->pass, step->chunk, step->microbatch, call->layer}; }
};

class OperationIterator {
 public:
  using value_type = IssuedOperation;
  // NOLINTBEGIN(readability-identifier-naming): the names of the standard library
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using pointer = void;
  using reference = IssuedOperation;
  // NOLINTEND(readability-identifier-naming)

  OperationIterator() = default;
  OperationIterator(const Program& program, int stage, std::size_t step)
      : program_(&program), stage_(stage), step_(step) {
    settle();
  }

  IssuedOperation operator*() const {
    return {&block().operations[operation_], &block(), &call(), &step(), stage_};
  }
  OperationIterator& operator++() {
    ++operation_;
    settle();
    return *this;
  }
  OperationIterator operator++(int) {
    const OperationIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const OperationIterator&, const OperationIterator&) = default;

 private:
  const StageProgram& stage_program() const {
    return program_->stages[static_cast<std::size_t>(stage_)];
  }
  const Step& step() const { return stage_program().steps[step_]; }
  const Body& body() const { return stage_program().bodies[static_cast<std::size_t>(step().body)]; }
  const BlockCall& call() const { return body().calls[call_]; }
  const Block& block() const { return program_->blocks[static_cast<std::size_t>(call().block)]; }

  // Skips ends of blocks and bodies: moves to the next operation, or to the end of the list.
  void settle() {
    while (step_ < stage_program().steps.size()) {
      if (call_ < body().calls.size()) {
        if (operation_ < block().operations.size()) return;
        ++call_;
      } else {
        ++step_;
        call_ = 0;
      }
      operation_ = 0;
    }
  }

  const Program* program_ = nullptr;
  int stage_ = 0;
  std::size_t step_ = 0;
  std::size_t call_ = 0;
  std::size_t operation_ = 0;
};

struct OperationView {
  const Program* program = nullptr;
  int stage = 0;
  OperationIterator begin() const { return {*program, stage, 0}; }
  OperationIterator end() const {
    return {*program, stage, program->stages[static_cast<std::size_t>(stage)].steps.size()};
  }
};

// Requires: 0 <= stage < stages.
inline OperationView operations_of(const Program& program, int stage) { return {&program, stage}; }

// The number of the buffer instance that an operand names, 0 … StageProgram::instances − 1, without
// gaps. A `create` makes a new buffer in the place of one that was freed.
int instance_of(const Program& program, const IssuedOperation& issued, const Operand& operand);

// The layer of the network that the operand's buffer belongs to; −1: none.
int layer_of(const Program& program, const IssuedOperation& issued, const Operand& operand);

// The buffer's name, and its layer if that is another one than the operation's: "query weight",
// "query weight of layer 4".
std::string operand_name(const Program& program, const IssuedOperation& issued,
                         const Operand& operand);

// "linear (qkv projection)"; "all-reduce".
std::string kind_and_part(const Operation& operation);

// "linear (qkv projection) of layer 3, micro-batch 1, forward".
std::string described(const IssuedOperation& issued);

}  // namespace trainyard
