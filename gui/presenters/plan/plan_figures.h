// The one list of figures of a plan and its estimate, which tables show and scatters draw. An
// unknown figure, such as the cost on a device without a price, is infinite, so that it sorts last.
#pragma once

#include <QString>
#include <span>
#include <string>

namespace trainyard {

struct Candidate;

struct PlanFigure {
  const char* head;   // heading of a column; to be translated
  const char* label;  // heading of a row, and what `head` means; to be translated
  double (*value)(const Candidate& candidate);
  std::string (*text)(double value);
  // axis: less is better; share: a fraction, whose differences are points; key: a key of the plan
  enum class Kind { axis, figure, share, key } kind;
  double unit = 1;  // ticks are round multiples of it: 1 GiB for memory, 1 kWh for energy

  QString shown_head() const;
  QString shown_label() const;
  QString shown(const Candidate& candidate) const;
};

// Axes first, keys last.
std::span<const PlanFigure> plan_figures();

}  // namespace trainyard
