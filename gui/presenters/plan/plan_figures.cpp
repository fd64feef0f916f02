#include "gui/presenters/plan/plan_figures.h"

#include <QCoreApplication>
#include <limits>
#include <optional>

#include "gui/presenters/text.h"
#include "model/units.h"
#include "planner/planner.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

using Kind = PlanFigure::Kind;

constexpr double kKilowattHour = 3'600'000;  // joules
constexpr double kUnknown = std::numeric_limits<double>::infinity();

std::string known(double value, const std::string& text) { return value < kUnknown ? text : "–"; }
std::string seconds_text(double value) { return with_unit(Seconds(value)); }
std::string bubble_text(double value) { return value > 0 ? seconds_text(value) : "–"; }
std::string bytes_text(double value) { return with_unit(Bytes(value)); }
std::string share_text(double value) { return percent(value) + " %"; }
std::string dollars_text(double value) { return known(value, number(value)); }
std::string energy_text(double value) { return known(value, with_unit(Joules(value))); }
std::string whole_text(double value) { return count(static_cast<std::int64_t>(value)); }

template <typename Quantity>
double value_or_unknown(const std::optional<Quantity>& quantity) {
  return quantity ? quantity->value() : kUnknown;
}

template <int Plan::*degree>
constexpr PlanFigure key(const char* head, const char* label) {
  return {head, label, [](const Candidate& c) { return double(c.plan.*degree); }, whole_text,
          Kind::key};
}

// NOLINTNEXTLINE(modernize-macro-to-enum): marks text for translation
#define TRAINYARD_FIGURE(text) QT_TRANSLATE_NOOP("PlanFigures", text)

constexpr PlanFigure kPlanFigures[] = {
    {TRAINYARD_FIGURE("Step time"), TRAINYARD_FIGURE("Step time"),
     [](const Candidate& c) { return c.estimate.step_time.value(); }, seconds_text, Kind::axis},
    {TRAINYARD_FIGURE("Memory"), TRAINYARD_FIGURE("Peak memory"),
     [](const Candidate& c) { return c.estimate.peak_memory.value(); }, bytes_text, Kind::axis,
     kGiB},
    {TRAINYARD_FIGURE("Cost, USD"), TRAINYARD_FIGURE("Cost of a step, USD"),
     [](const Candidate& c) { return value_or_unknown(c.estimate.cost_per_step); }, dollars_text,
     Kind::axis},
    {TRAINYARD_FIGURE("Energy"), TRAINYARD_FIGURE("Energy of a step"),
     [](const Candidate& c) { return value_or_unknown(c.estimate.energy_per_step); }, energy_text,
     Kind::axis, kKilowattHour},
    {TRAINYARD_FIGURE("Bubble"), TRAINYARD_FIGURE("Bubble"),
     [](const Candidate& c) { return c.estimate.breakdown.bubble.value(); }, bubble_text,
     Kind::axis},
    {TRAINYARD_FIGURE("MFU"), TRAINYARD_FIGURE("MFU"),
     [](const Candidate& c) { return c.estimate.mfu; }, share_text, Kind::share},
    {TRAINYARD_FIGURE("Tokens/s"), TRAINYARD_FIGURE("Tokens a second"),
     [](const Candidate& c) { return c.estimate.tokens_per_second; }, short_scale, Kind::figure},
    key<&Plan::tensor_parallel>("TP", TRAINYARD_FIGURE("Tensor parallel")),
    key<&Plan::context_parallel>("CP", TRAINYARD_FIGURE("Context parallel")),
    key<&Plan::pipeline_parallel>("PP", TRAINYARD_FIGURE("Pipeline stages")),
    key<&Plan::virtual_stages>("VP", TRAINYARD_FIGURE("Virtual stages")),
    key<&Plan::data_parallel>("DP", TRAINYARD_FIGURE("Data parallel")),
    key<&Plan::expert_parallel>("EP", TRAINYARD_FIGURE("Expert parallel")),
    key<&Plan::micro_batch>("MB", TRAINYARD_FIGURE("Micro-batch")),
    key<&Plan::zero_stage>("ZeRO", TRAINYARD_FIGURE("ZeRO stage")),
};

#undef TRAINYARD_FIGURE

}  // namespace

QString PlanFigure::shown_head() const { return QCoreApplication::translate("PlanFigures", head); }
QString PlanFigure::shown_label() const {
  return QCoreApplication::translate("PlanFigures", label);
}
QString PlanFigure::shown(const Candidate& candidate) const { return qt(text(value(candidate))); }

std::span<const PlanFigure> plan_figures() { return kPlanFigures; }

}  // namespace trainyard
