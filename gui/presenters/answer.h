// Turns an estimate into text, and into labelled parts that a chart draws. Pages share these texts,
// so that they call the same thing by the same words.
#pragma once

#include <QString>
#include <string>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

struct Comparison;
struct Remedy;

struct AnswerLine {
  QString label, value, detail;
  bool is_bad = false;  // is shown as a problem, such as "does not fit"
};
std::vector<AnswerLine> answer_lines(const Candidate& candidate, const Job& job);

// A part of a bar. `key` chooses its colour (gui/charts/colours.h).
struct BarPart {
  std::string key;
  QString label, text;
  double value = 0;
};
// The parts of the step time that are above zero, in seconds.
std::vector<BarPart> breakdown_bar(const Estimate& estimate);

struct StageBar {
  QString label;
  std::vector<BarPart> parts;  // bytes
};
std::vector<StageBar> memory_bars(const Estimate& estimate);

// "stage 3 needs 183.1 GiB of 80.00 GiB"; empty if the plan fits.
QString misfit_text(const Estimate& estimate, const Cluster& cluster);
// What limits the plan, in a sentence or two: "Most of the step is …".
QString limits_text(const Candidate& candidate, const Cluster& cluster);
QString remedy_text(const Remedy& remedy, const Estimate& before);
QString closest_text(const Remedy& closest);  // no plan fits; this one comes closest
// "TP 8 · PP 16 · …": the degrees, then every other choice that differs from its default.
QString plan_text(const Plan& plan);
QString recompute_text(const Recompute& recompute);  // "full 4"
QString offload_text(const Offload& offload);        // "optimizer on host"; "none"
// Whether ZeRO shards the dense states over fewer than all data- and context-parallel ranks (HSDP).
bool shards_in_groups(const Plan& plan);
// Why `other` lost against `winner`.
QString why_not_text(const Candidate& winner, const Candidate& other, const Cluster& cluster);

// percent_text: 0.4051 as "40.5 %". difference_text: how much `value` differs from `first`, as
// "+3.1 %"; empty if they are equal or the ratio is no finite number.
QString percent_text(double fraction);
QString difference_text(double value, double first);
// The same of two fractions: "+1.5 points" for 42.0 % beside 40.5 %.
QString points_text(double value, double first);

}  // namespace trainyard
