// A sweep as a person builds it in a window: keys of the open scenario, each with the values that
// were typed for it. It becomes a sweep/1 document (docs/sweeps.md) and is checked as one.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep/sweep.h"

namespace trainyard {

struct DraftAxis {
  std::string key;     // dotted: "plan.tensor_parallel"
  std::string values;  // "1, 2, 4", or the ends of a range: "100 Gbit/s .. 800 Gbit/s"
  int steps = 0;       // of a range; 0: not stated, as for drawn points
  Scale scale = Scale::linear;
  bool with_previous = false;  // varies together with the axis before it

  bool operator==(const DraftAxis&) const = default;
};

// Limits of a draft's drawn points; documents may exceed both.
inline constexpr int kMostDraftedSamples = 1'000'000;
inline constexpr int kMostDraftedSeed = std::numeric_limits<int>::max();

struct SweepDraft {
  std::vector<DraftAxis> axes;
  Combination combine = Combination::grid;
  std::int64_t samples = 0, seed = 0;  // for drawn points
  Evaluation evaluate = Evaluation::estimate;
  std::string where;  // a condition; empty: none
};

// Whether what was typed are the ends of a range.
bool is_range(std::string_view values);

// The sweep that a draft makes of the scenario `text` at `file`.
Expected<Sweep> drafted_sweep(std::string_view text, const std::filesystem::path& file,
                              const SweepDraft& draft);

// A sweep document as a scenario and a draft.
struct OpenedSweep {
  std::string scenario;  // its text, for a document at `destination`
  SweepDraft draft;
};
// Fails where the document has something that a draft cannot express.
Expected<OpenedSweep> opened_sweep(const std::filesystem::path& file,
                                   const std::filesystem::path& destination);

// A key that a sweep can vary, from the tables of fields.
struct SweepKey {
  std::string name;  // dotted
  std::string doc, allowed;
};
const std::vector<SweepKey>& sweep_keys();

}  // namespace trainyard
