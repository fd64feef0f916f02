// What an estimate says, in words and in parts that a chart draws. The only place where results
// become text.
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
  bool is_bad = false;  // such as: does not fit
};
std::vector<AnswerLine> answer_lines(const Candidate& candidate, const Job& job);

// A part of a bar: `key` chooses the colour.
struct BarPart {
  std::string key;
  QString label, text;
  double value = 0;
};
std::vector<BarPart> breakdown_bar(const Estimate& estimate);  // seconds; the parts above zero

struct StageBar {
  QString label;
  std::vector<BarPart> parts;  // bytes
};
std::vector<StageBar> memory_bars(const Estimate& estimate);

// "stage 3 needs 183.1 GiB of 80.00 GiB"; empty: it fits.
QString misfit_text(const Estimate& estimate, const Cluster& cluster);
// "Most of the step is …", in a sentence or two.
QString limits_text(const Candidate& candidate, const Cluster& cluster);
QString remedy_text(const Remedy& remedy, const Estimate& before);
QString closest_text(const Remedy& closest);  // of plans that do not fit
// "TP 8 · PP 16 · …", and what the plan has otherwise than a document that says nothing of it.
QString plan_text(const Plan& plan);
QString recompute_text(const Recompute& recompute);  // "full 4"
QString offload_text(const Offload& offload);        // "optimizer on host"; "none"
// Whether dense states are sharded among fewer ranks than there are.
bool shards_in_groups(const Plan& plan);
// Why `other` is not the best plan.
QString why_not_text(const Candidate& winner, const Candidate& other, const Cluster& cluster);

// 13.75 s, 0.4051 as "40.5 %", and differences to a first value: "+3.1 %".
QString percent_text(double fraction);
QString difference_text(double value, double first);

}  // namespace trainyard
