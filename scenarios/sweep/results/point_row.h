// What a sweep keeps of one point: a row of table `points`. A row is a pure function of the sweep
// and the point's number, except for measured figures.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// The names of the figures. Values are in SI units, named as in the commands' `--format json`.
inline constexpr std::array<std::string_view, 45> kFigureNames = {"devices",
                                                                  "parameters",
                                                                  "active_parameters",
                                                                  "step_time_s",
                                                                  "step_time_low_s",
                                                                  "step_time_high_s",
                                                                  "tokens_per_second",
                                                                  "tokens_per_second_per_device",
                                                                  "model_tflops_per_device",
                                                                  "mfu",
                                                                  "mfu_bf16",
                                                                  "hfu",
                                                                  "peak_allocated_bytes",
                                                                  "peak_reserved_bytes",
                                                                  "peak_memory_bytes",
                                                                  "compute_s",
                                                                  "embedding_head_s",
                                                                  "tensor_parallel_s",
                                                                  "context_parallel_s",
                                                                  "expert_parallel_s",
                                                                  "pipeline_s",
                                                                  "data_parallel_s",
                                                                  "optimizer_s",
                                                                  "recompute_s",
                                                                  "offload_s",
                                                                  "launch_s",
                                                                  "bubble_s",
                                                                  "other_s",
                                                                  "cost_per_step_usd",
                                                                  "energy_per_step_joule",
                                                                  "carbon_per_step_g",
                                                                  "goodput",
                                                                  "goodput_p10",
                                                                  "goodput_p90",
                                                                  "finished",
                                                                  "wall_time_s",
                                                                  "interruptions",
                                                                  "closed_form_goodput",
                                                                  "mtbf_s",
                                                                  "interval_s",
                                                                  "cost_usd",
                                                                  "energy_joule",
                                                                  "carbon_g",
                                                                  "measured_step_time_s",
                                                                  "measured_peak_memory_bytes"};
inline constexpr std::size_t kFigures = kFigureNames.size();

// The index of a figure; kFigures: there is no such figure.
constexpr std::size_t figure_at(std::string_view name) {
  std::size_t i = 0;
  while (i < kFigures && kFigureNames[i] != name) ++i;
  return i;
}

// The name of a figure, checked by the compiler: a wrong name does not compile.
struct FigureName {
  std::size_t at;
  consteval FigureName(const char* name) : at(figure_at(name)) {
    if (at == kFigures) throw "no figure of that name";
  }
};

// `done`: the plan fits; `too_large`: it does not fit, but has figures; `refused`: the point is not
// possible, and the note says why.
enum class PointStatus { done, too_large, refused };
inline constexpr std::array<std::string_view, 3> kStatusNames = {"done", "does not fit", "refused"};
constexpr std::string_view name_of(PointStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

struct PointRow {
  std::int64_t point = 0;
  PointStatus status = PointStatus::done;
  std::string overrides;  // what the point changes: JSON object, key → value
  std::string note;       // reason if refused
  std::string plan;       // JSON of the planner's plan; empty: the scenario's own plan
  std::array<double, kFigures> figures = kNothing;  // NaN: unknown

  double& figure(FigureName name) { return figures[name.at]; }
  double figure(FigureName name) const { return figures[name.at]; }

 private:
  static constexpr std::array<double, kFigures> kNothing = [] {
    std::array<double, kFigures> nothing{};
    nothing.fill(std::numeric_limits<double>::quiet_NaN());
    return nothing;
  }();
};

}  // namespace trainyard
