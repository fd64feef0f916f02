#include "gui/presenters/sweep/sweep_figures.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/presenters/text.h"
#include "model/units.h"
#include "scenarios/sweep/results/point_row.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr double kKilowattHourSize = 3'600'000;  // joules

struct FigureUnit {
  std::string (*text)(double value);
  double size = 1;
};

constexpr FigureUnit kPlain = {[](double value) { return number(value); }};
constexpr FigureUnit kWhole = {[](double value) { return count(std::llround(value)); }};
constexpr FigureUnit kLarge = {short_scale};
constexpr FigureUnit kShare = {[](double value) { return percent(value) + " %"; }, 0.01};
constexpr FigureUnit kSeconds = {[](double value) { return with_unit(Seconds(value)); }};
constexpr FigureUnit kHours = {[](double value) { return number(Seconds(value) / kHour) + " h"; },
                               kHour.value()};
constexpr FigureUnit kDays = {[](double value) { return number(Seconds(value) / kDay) + " d"; },
                              kDay.value()};
constexpr FigureUnit kBytes = {[](double value) { return with_unit(Bytes(value)); }, kGiB};
constexpr FigureUnit kDollars = {[](double value) { return number(value) + " USD"; }};
constexpr FigureUnit kEnergy = {[](double value) { return with_unit(Joules(value)); },
                                kKilowattHourSize};
constexpr FigureUnit kCarbon = {[](double value) { return number(value / 1000) + " kg"; }, 1000};

struct SweepFigure {
  std::string_view name;
  const char* label;
  FigureUnit unit;
};

// NOLINTNEXTLINE(modernize-macro-to-enum): marks text for translation
#define TRAINYARD_SWEEP_FIGURE(text) QT_TRANSLATE_NOOP("SweepFigures", text)

constexpr std::array kSweepFigures = {
    SweepFigure{"devices", TRAINYARD_SWEEP_FIGURE("Devices"), kWhole},
    SweepFigure{"parameters", TRAINYARD_SWEEP_FIGURE("Parameters"), kLarge},
    SweepFigure{"active_parameters", TRAINYARD_SWEEP_FIGURE("Active parameters"), kLarge},
    SweepFigure{"step_time_s", TRAINYARD_SWEEP_FIGURE("Step time"), kSeconds},
    SweepFigure{"step_time_low_s", TRAINYARD_SWEEP_FIGURE("Step time, low"), kSeconds},
    SweepFigure{"step_time_high_s", TRAINYARD_SWEEP_FIGURE("Step time, high"), kSeconds},
    SweepFigure{"tokens_per_second", TRAINYARD_SWEEP_FIGURE("Tokens a second"), kLarge},
    SweepFigure{"tokens_per_second_per_device", TRAINYARD_SWEEP_FIGURE("Tokens/s of a device"),
                kLarge},
    SweepFigure{"model_tflops_per_device", TRAINYARD_SWEEP_FIGURE("TFLOP/s of a device"), kPlain},
    SweepFigure{"mfu", TRAINYARD_SWEEP_FIGURE("MFU"), kShare},
    SweepFigure{"mfu_bf16", TRAINYARD_SWEEP_FIGURE("MFU of BF16"), kShare},
    SweepFigure{"hfu", TRAINYARD_SWEEP_FIGURE("HFU"), kShare},
    SweepFigure{"peak_allocated_bytes", TRAINYARD_SWEEP_FIGURE("Peak allocated"), kBytes},
    SweepFigure{"peak_reserved_bytes", TRAINYARD_SWEEP_FIGURE("Peak reserved"), kBytes},
    SweepFigure{"peak_memory_bytes", TRAINYARD_SWEEP_FIGURE("Peak memory"), kBytes},
    SweepFigure{"compute_s", TRAINYARD_SWEEP_FIGURE("Compute"), kSeconds},
    SweepFigure{"embedding_head_s", TRAINYARD_SWEEP_FIGURE("Embedding and head"), kSeconds},
    SweepFigure{"tensor_parallel_s", TRAINYARD_SWEEP_FIGURE("Tensor-parallel traffic"), kSeconds},
    SweepFigure{"context_parallel_s", TRAINYARD_SWEEP_FIGURE("Context-parallel traffic"), kSeconds},
    SweepFigure{"expert_parallel_s", TRAINYARD_SWEEP_FIGURE("Expert-parallel traffic"), kSeconds},
    SweepFigure{"pipeline_s", TRAINYARD_SWEEP_FIGURE("Pipeline traffic"), kSeconds},
    SweepFigure{"data_parallel_s", TRAINYARD_SWEEP_FIGURE("Data-parallel traffic"), kSeconds},
    SweepFigure{"optimizer_s", TRAINYARD_SWEEP_FIGURE("Optimizer"), kSeconds},
    SweepFigure{"recompute_s", TRAINYARD_SWEEP_FIGURE("Recomputation"), kSeconds},
    SweepFigure{"offload_s", TRAINYARD_SWEEP_FIGURE("Offload"), kSeconds},
    SweepFigure{"launch_s", TRAINYARD_SWEEP_FIGURE("Launches"), kSeconds},
    SweepFigure{"bubble_s", TRAINYARD_SWEEP_FIGURE("Pipeline bubble"), kSeconds},
    SweepFigure{"other_s", TRAINYARD_SWEEP_FIGURE("Other times"), kSeconds},
    SweepFigure{"cost_per_step_usd", TRAINYARD_SWEEP_FIGURE("Cost of a step"), kDollars},
    SweepFigure{"energy_per_step_joule", TRAINYARD_SWEEP_FIGURE("Energy of a step"), kEnergy},
    SweepFigure{"carbon_per_step_g", TRAINYARD_SWEEP_FIGURE("Carbon of a step"), kCarbon},
    SweepFigure{"goodput", TRAINYARD_SWEEP_FIGURE("Goodput"), kShare},
    SweepFigure{"goodput_p10", TRAINYARD_SWEEP_FIGURE("Goodput, 10 %"), kShare},
    SweepFigure{"goodput_p90", TRAINYARD_SWEEP_FIGURE("Goodput, 90 %"), kShare},
    SweepFigure{"finished", TRAINYARD_SWEEP_FIGURE("Runs that did all their work"), kShare},
    SweepFigure{"wall_time_s", TRAINYARD_SWEEP_FIGURE("Time of the run"), kDays},
    SweepFigure{"interruptions", TRAINYARD_SWEEP_FIGURE("Interruptions"), kPlain},
    SweepFigure{"closed_form_goodput", TRAINYARD_SWEEP_FIGURE("Goodput in closed form"), kShare},
    SweepFigure{"mtbf_s", TRAINYARD_SWEEP_FIGURE("Time between failures"), kHours},
    SweepFigure{"interval_s", TRAINYARD_SWEEP_FIGURE("Time between checkpoints"), kHours},
    SweepFigure{"cost_usd", TRAINYARD_SWEEP_FIGURE("Cost of the run"), kDollars},
    SweepFigure{"energy_joule", TRAINYARD_SWEEP_FIGURE("Energy of the run"), kEnergy},
    SweepFigure{"carbon_g", TRAINYARD_SWEEP_FIGURE("Carbon of the run"), kCarbon},
    SweepFigure{"measured_step_time_s", TRAINYARD_SWEEP_FIGURE("Measured step time"), kSeconds},
    SweepFigure{"measured_peak_memory_bytes", TRAINYARD_SWEEP_FIGURE("Measured peak memory"),
                kBytes},
};

static_assert(std::ranges::equal(kSweepFigures, kFigureNames, {}, &SweepFigure::name));

}  // namespace

QString sweep_figure_name(std::size_t figure) {
  return QCoreApplication::translate("SweepFigures", kSweepFigures[figure].label);
}

QString sweep_figure_text(std::size_t figure, double value) {
  return std::isfinite(value) ? qt(kSweepFigures[figure].unit.text(value)) : QStringLiteral("–");
}

double sweep_figure_unit(std::size_t figure) { return kSweepFigures[figure].unit.size; }

}  // namespace trainyard
