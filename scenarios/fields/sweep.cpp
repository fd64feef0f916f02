// The fields of a sweep (`sweep/1`): a scenario, what varies, how each point is answered.
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/sweep/sweep_document.h"

namespace trainyard {
namespace {

using A = AxisDocument;
using S = SweepDocument;

constexpr std::array kEvaluations = {Named<Evaluation>{"estimate", Evaluation::estimate},
                                     Named<Evaluation>{"simulate", Evaluation::simulate},
                                     Named<Evaluation>{"plan", Evaluation::plan},
                                     Named<Evaluation>{"goodput", Evaluation::goodput},
                                     Named<Evaluation>{"run", Evaluation::run}};
constexpr std::array kCombinations = {
    Named<Combination>{"grid", Combination::grid},
    Named<Combination>{"one-at-a-time", Combination::one_at_a_time},
    Named<Combination>{"random", Combination::random}};
constexpr std::array kScales = {Named<Scale>{"linear", Scale::linear},
                                Named<Scale>{"geometric", Scale::geometric}};
constexpr std::array kSweepObjectives = {
    Named<Objective>{"step-time", Objective::step_time}, Named<Objective>{"cost", Objective::cost},
    Named<Objective>{"energy", Objective::energy}, Named<Objective>{"memory", Objective::memory}};
constexpr double kMostValuesOfAxis = 1e6;

Field<A> values_field() {
  return Field<A>{{.key = "values",
                   .shape = {ListShape{{Shape{ValueShape{}}}}},
                   .doc = "values of the key, each in turn"},
                  [](const Json& list, A& axis, const Place&) -> Expected<void> {
                    axis.values.assign(list.begin(), list.end());
                    return {};
                  },
                  [](const A&) { return std::nullopt; }}
      .absent("`from`, `to` and `steps` give them");
}

// An end of a range: a number, or a quantity.
Field<A> end_field(std::string_view key, Json A::*member, std::string_view doc) {
  return Field<A>{{.key = std::string(key),
                   .shape = {AnyShape{{Shape{NumberShape{-1e300, 1e300}}, Shape{TextShape{}}}}},
                   .doc = std::string(doc)},
                  [member](const Json& value, A& axis, const Place&) -> Expected<void> {
                    axis.*member = value;
                    return {};
                  },
                  [](const A&) { return std::nullopt; }}
      .absent("`values` lists them");
}

std::vector<Field<A>> axis_fields() {
  return {
      text("key", &A::key, "key of the scenario: `plan.tensor_parallel` or `/plan/tensor_parallel`")
          .absent("`zip`"),
      values_field(),
      end_field("from", &A::from,
                "first value of a range; whole numbers at both ends make whole values"),
      end_field("to", &A::to, "last value of the range, in the unit of `from`"),
      count("steps", &A::steps, "number of values in the range", {.most = kMostValuesOfAxis})
          .absent("allowed only where points are drawn"),
      choice("scale", &A::scale, kScales,
             "spacing of the range: equal differences (linear) or equal ratios (geometric)")};
}

const Section<A>& sweep_column_section() {
  static const Section<A> section("sweep_column", "One of the keys that vary together.",
                                  axis_fields());
  return section;
}

const Section<A>& sweep_axis_section() {
  static const Section<A> section = [] {
    std::vector<Field<A>> fields = axis_fields();
    fields.push_back(objects<sweep_column_section>(
                         "zip", &A::zip, "keys that vary together, with equally many values each")
                         .absent("the axis is one key"));
    return Section<A>("sweep_axis", "Values that one key takes, or several keys together.",
                      std::move(fields));
  }();
  return section;
}

Field<S> scenario_field() {
  return Field<S>{{.key = "scenario",
                   .shape = {AnyShape{{Shape{ReferenceShape{"scenario"}},
                                       Shape{ObjectShape{&spec_of<scenario_section>, {}}}}}},
                   .doc = "scenario that every point starts from"},
                  [](const Json& value, S& sweep, const Place&) -> Expected<void> {
                    sweep.scenario = value;
                    return {};
                  },
                  [](const S&) { return std::nullopt; }}
      .required();
}

Field<S> where_field() {
  return Field<S>{{.key = "where",
                   .shape = {ListShape{{Shape{TextShape{}}}}},
                   .doc = "conditions on keys of the scenario, all of which a point must meet: "
                          "`plan.tensor_parallel * plan.pipeline_parallel <= 8 * cluster.nodes`"},
                  [](const Json& list, S& sweep, const Place&) -> Expected<void> {
                    sweep.where = list.get<std::vector<std::string>>();
                    return {};
                  },
                  [](const S&) { return std::nullopt; }}
      .absent("every point is answered");
}

Expected<void> check_sweep(S& sweep, const Place& place) {
  if (sweep.vary.empty() == sweep.overrides.empty()) {
    return place.error(sweep.vary.empty()
                           ? "found no \"vary\"; allowed: \"vary\" or \"overrides\""
                           : "found \"vary\" and \"overrides\"; allowed: one of them");
  }
  const bool drawn = sweep.combine == Combination::random;
  if (drawn != (sweep.samples > 0)) {
    return (place / "samples")
        .error(drawn ? "found none; allowed: the number of points with \"combine\": \"random\""
                     : "found a number of points; allowed: only with \"combine\": \"random\"");
  }
  return {};
}

}  // namespace

const Section<SweepDocument>& sweep_section() {
  static const Section<S> section(
      "sweep", "A batch of questions: a scenario, what of it varies, how each point is answered.",
      {
          text("name", &S::name, "name that reports show").absent("the name of the scenario"),
          remark<S>("question", "what the sweep asks, and what to read in the answer"),
          scenario_field(),
          choice("evaluate", &S::evaluate, kEvaluations,
                 "`trainyard` command that answers each point"),
          choice("objective", &S::objective, kSweepObjectives,
                 "what `plan` minimises, and what reports put first"),
          objects<sweep_axis_section>("vary", &S::vary, "keys that vary, and their values")
              .absent("`overrides` has the points"),
          choice("combine", &S::combine, kCombinations,
                 "grid: every combination, the last axis fastest; one-at-a-time: the scenario "
                 "itself and each value alone; random: points drawn from all axes"),
          count("samples", &S::samples, "number of points to draw", {.most = 1e9})
              .absent("allowed unless points are drawn"),
          count("seed", &S::seed, "random seed of the points drawn", {.least = 0, .most = 9e15}),
          text("overrides", &S::overrides,
               "CSV file instead of `vary`: a head of keys, then a line of values for each point; "
               "an empty cell leaves the scenario's value",
               {PathShape{"a CSV file"}})
              .absent("`vary` has the points"),
          where_field(),
      },
      {.finish = check_sweep});
  return section;
}

}  // namespace trainyard
