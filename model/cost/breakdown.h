// What a training step is spent on: the exposed parts of the stage with the longest span, which sum
// to the step. kBreakdownParts is the one list of them, with their keys in documents and their
// names for people.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "model/units.h"

namespace trainyard {

struct Breakdown {
  Seconds compute;          // layers: GEMM, attention, memory-bound operators
  Seconds embedding_head;   // embedding, output head, cross-entropy
  Seconds tensor_parallel;  // this and the next four: exposed communication
  Seconds context_parallel;
  Seconds expert_parallel;
  Seconds pipeline;
  Seconds data_parallel;
  Seconds optimizer;
  Seconds recompute;
  Seconds offload;
  Seconds launch;  // what the host needs to launch kernels beyond the time they run
  Seconds bubble;
  Seconds other;

  Seconds total() const;
  Breakdown& operator*=(double factor);
};

struct BreakdownPart {
  std::string_view key;    // "tensor_parallel"
  std::string_view label;  // "tensor-parallel communication"
  Seconds Breakdown::*time;
};

inline constexpr std::array kBreakdownParts = {
    BreakdownPart{"compute", "computing the layers", &Breakdown::compute},
    BreakdownPart{"embedding_head", "embedding and output head", &Breakdown::embedding_head},
    BreakdownPart{"tensor_parallel", "tensor-parallel communication", &Breakdown::tensor_parallel},
    BreakdownPart{"context_parallel", "context-parallel communication",
                  &Breakdown::context_parallel},
    BreakdownPart{"expert_parallel", "expert-parallel communication", &Breakdown::expert_parallel},
    BreakdownPart{"pipeline", "pipeline communication", &Breakdown::pipeline},
    BreakdownPart{"data_parallel", "data-parallel communication", &Breakdown::data_parallel},
    BreakdownPart{"optimizer", "the optimizer step", &Breakdown::optimizer},
    BreakdownPart{"recompute", "recomputation", &Breakdown::recompute},
    BreakdownPart{"offload", "offload traffic", &Breakdown::offload},
    BreakdownPart{"launch", "kernel launch by the host", &Breakdown::launch},
    BreakdownPart{"bubble", "the pipeline bubble", &Breakdown::bubble},
    BreakdownPart{"other", "other fixed times", &Breakdown::other},
};
static_assert(sizeof(Breakdown) == kBreakdownParts.size() * sizeof(Seconds),
              "every part is in the list");

constexpr std::span<const BreakdownPart> breakdown_parts() { return kBreakdownParts; }

// Whether the part is computing layers, embedding or head. All else is overhead.
constexpr bool is_useful(const BreakdownPart& part) {
  return part.time == &Breakdown::compute || part.time == &Breakdown::embedding_head;
}

inline Seconds Breakdown::total() const {
  Seconds sum;
  for (const BreakdownPart& part : kBreakdownParts) sum += this->*part.time;
  return sum;
}

inline Breakdown& Breakdown::operator*=(double factor) {
  for (const BreakdownPart& part : kBreakdownParts) this->*part.time *= factor;
  return *this;
}

}  // namespace trainyard
