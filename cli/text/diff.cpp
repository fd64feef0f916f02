#include "cli/text/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "cli/text/sweep.h"
#include "model/cost/breakdown.h"

namespace trainyard {
namespace {

constexpr std::size_t kLongestValue = 40;

std::string value_in_words(const std::string& text) {
  return text.empty() ? "not there" : elide(text, kLongestValue);
}

std::string changes_table(const std::vector<KeyChange>& changes, const Style& style) {
  if (changes.empty()) return "the documents say the same\n";
  Table table({{"changed", "", Align::left}, {"A", "", Align::left}, {"B", "", Align::left}});
  for (const KeyChange& change : changes) {
    table.add_row({elide(change.key, kLongestValue), value_in_words(change.before),
                   value_in_words(change.after)});
  }
  return table.render(style);
}

void add_answer(std::string_view side, const NamedAnswer& answer, Table& table) {
  const Estimate& estimate = answer.candidate.estimate;
  table.add_row({std::string(side), elide(answer.name, kLongestValue),
                 count(answer.candidate.plan.devices()), number(estimate.step_time.value()),
                 number(estimate.tokens_per_second / answer.candidate.plan.devices()),
                 percent(estimate.mfu), with_unit(estimate.peak_memory),
                 estimate.feasible ? "fits" : "does not fit"});
}

struct PartMove {
  const BreakdownPart* part = nullptr;
  double before = 0, after = 0;
  double change() const { return after - before; }
};

// Parts of the step that changed, the largest change first.
std::vector<PartMove> moves(const Breakdown& before, const Breakdown& after) {
  std::vector<PartMove> found;
  for (const BreakdownPart& part : breakdown_parts()) {
    const PartMove move{&part, (before.*part.time).value(), (after.*part.time).value()};
    if (move.change() != 0) found.push_back(move);
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const PartMove& move) { return std::abs(move.change()); });
  return found;
}

// How each side uses its groups: with groups of unlike nodes the steps have no parts in common to
// compare.
std::string groups_of(const NamedAnswer& before, const NamedAnswer& after) {
  std::string text;
  for (const auto& [side, answer] : {std::pair("A", &before), std::pair("B", &after)}) {
    if (!answer->groups) continue;
    text += fmt::format("\nhow {} uses its groups\n{}", side, answer->groups_table);
  }
  return text;
}

// Figures beside the step time that changed; empty: none did.
std::string beside_the_step(const NamedAnswer& before, const NamedAnswer& after,
                            const Style& style) {
  Table table({{"beside the step", "", Align::left}, {"A", ""}, {"B", ""}, {"change", "%"}});
  bool any = false;
  const auto add = [&](std::string_view label, const std::optional<double>& a,
                       const std::optional<double>& b, std::string (*words)(double)) {
    if (a == b) return;
    any = true;
    const auto cell = [&](const std::optional<double>& value) {
      return value ? words(*value) : "unknown";
    };
    const bool compares = a && b && *a != 0;
    table.add_row(
        {std::string(label), cell(a), cell(b), compares ? signed_percent(*b / *a - 1) : ""});
  };
  const auto value_of = [](const auto& quantity) {
    return quantity ? std::optional(quantity->value()) : std::nullopt;
  };
  const Estimate& a = before.candidate.estimate;
  const Estimate& b = after.candidate.estimate;
  add("goodput, in closed form", before.goodput, after.goodput,
      [](double share) { return percent(share) + " %"; });
  add("cost of a step", value_of(a.cost_per_step), value_of(b.cost_per_step),
      [](double dollars) { return number(dollars) + " USD"; });
  add("energy of a step", value_of(a.energy_per_step), value_of(b.energy_per_step),
      [](double joules) { return with_unit(Joules(joules)); });
  add("carbon of a step", before.carbon_per_step, after.carbon_per_step,
      [](double grams) { return number(grams) + " g"; });
  add("peak memory", a.peak_memory.value(), b.peak_memory.value(),
      [](double bytes) { return with_unit(Bytes(bytes)); });
  return any ? "\n" + table.render(style) : "";
}

std::string why(const NamedAnswer& named_before, const NamedAnswer& named_after,
                const Style& style) {
  const Candidate& before = named_before.candidate;
  const Candidate& after = named_after.candidate;
  const double a = before.estimate.step_time.value();
  const double b = after.estimate.step_time.value();
  const std::string groups = groups_of(named_before, named_after);
  if (a == b) return "the step takes as long as before\n" + groups;
  std::string text = fmt::format("the step: {} s to {} s, {} %\n", number(a), number(b),
                                 signed_percent(b / a - 1));
  if (!groups.empty()) return text + groups;
  Table table({{"part of the step", "", Align::left},
               {"A", "s"},
               {"B", "s"},
               {"change", "s"},
               {"of the move", "%"}});
  for (const PartMove& move : moves(before.estimate.breakdown, after.estimate.breakdown)) {
    table.add_row({std::string(move.part->label), number(move.before), number(move.after),
                   signed_number(move.change()), percent(move.change() / (b - a))});
  }
  return text + table.render(style);
}

// The largest change of a point whose step time is the same.
std::string figure_in_words(const MovedPoint& moved) {
  const std::size_t at = moved.largest_figure();
  if (at == kFigures || moved.before.status == PointStatus::refused ||
      moved.after.status == PointStatus::refused) {
    return "";
  }
  const auto words = [](double figure) { return std::isnan(figure) ? "–" : number(figure); };
  return fmt::format("{} {} to {}", kFigureNames[at], words(moved.before.figures[at]),
                     words(moved.after.figures[at]));
}

std::string part_in_words(const MovedPoint& moved) {
  if (moved.step_time_change() == 0) return figure_in_words(moved);
  const std::size_t at = moved.largest_part();
  if (at == kFigures) return "";
  for (const BreakdownPart& part : breakdown_parts()) {
    if (fmt::format("{}_s", part.key) != kFigureNames[at]) continue;
    return fmt::format("{} {} s", part.label,
                       signed_number(moved.after.figures[at] - moved.before.figures[at]));
  }
  return "";
}

std::string largest_moves(const ResultDifference& difference, const Style& style) {
  if (difference.largest.empty()) return "";
  Table table({{"point", "of A"},
               {"step", "A, s"},
               {"step", "B, s"},
               {"change", "%"},
               {"most of it", "", Align::left},
               {"what it has of its own", "", Align::left}});
  for (const MovedPoint& moved : difference.largest) {
    const auto step = [](const PointRow& row) {
      const double time = row.figure("step_time_s");
      return std::isnan(time) ? std::string(name_of(row.status)) : number(time);
    };
    table.add_row({count(moved.before.point), step(moved.before), step(moved.after),
                   signed_percent(moved.step_time_change()), part_in_words(moved),
                   elide(overrides_in_words(moved.before), kLongestValue)});
  }
  return "\nlargest moves\n" + table.render(style);
}

}  // namespace

std::string scenario_difference_text(const std::vector<KeyChange>& changes,
                                     const NamedAnswer& before, const NamedAnswer& after,
                                     const Style& style) {
  Table answers({{"", "", Align::left},
                 {"scenario", "", Align::left},
                 {"devices", ""},
                 {"step", "s"},
                 {"tokens", "1/s per device"},
                 {"MFU", "%"},
                 {"peak memory", ""},
                 {"verdict", "", Align::left}});
  add_answer("A", before, answers);
  add_answer("B", after, answers);
  return answers.render(style) + "\n" + changes_table(changes, style) + "\n" +
         why(before, after, style) + beside_the_step(before, after, style);
}

std::string result_difference_text(const ResultDifference& difference, const Style& style) {
  std::string text = changes_table(difference.documents, style) + "\n";
  text += wrap(fmt::format(
      "{} points of both have the same answer, {} moved; {} are of A alone, {} "
      "of B alone. {} fit no more, {} fit now.",
      count(difference.same), count(difference.moved), count(difference.only_before),
      count(difference.only_after), count(difference.fits_no_more), count(difference.fits_now)));
  return text + largest_moves(difference, style);
}

}  // namespace trainyard
