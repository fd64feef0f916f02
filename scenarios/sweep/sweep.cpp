#include "scenarios/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/file.h"
#include "scenarios/sweep/point_reader.h"
#include "scenarios/sweep/sha256.h"
#include "simulator/engine/random.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostPoints = 1'000'000'000'000;
// Lines of a CSV file that are checked beforehand; later ones when their point is answered.
constexpr std::int64_t kCheckedLines = 1000;

// Reads and checks the scenario of the document, with the documents it refers to copied into it.
Expected<void> take_scenario(const Json& value, Sweep& sweep, const Place& place) {
  const bool refers = value.is_string();
  Json base = value;
  std::unique_ptr<OpenDocument> opened;
  Place at = place;
  if (refers) {
    auto document = open_reference("scenario", value.get<std::string>(), place);
    if (!document) return tl::unexpected(document.error());
    opened = std::move(*document);
    base = opened->value;
    at = opened->root();
  }
  if (auto fits = check(scenario_section().spec(), base, at); !fits) return fits;
  base.erase("trainyard");  // the tag of a scenario written inside the sweep
  if (auto read = scenario_section().read(base, sweep.scenario, at); !read) return read;
  if (refers) {
    sweep.inputs.push_back({shown_path(opened->document.file), sha256(opened->text)});
  }
  collect_inputs(scenario_section().spec(), base, at, sweep.inputs);
  if (auto done = resolve_references(scenario_section().spec(), base, at); !done) return done;
  if (sweep.scenario.name.empty() && refers) {
    sweep.scenario.name = opened->document.file.stem().string();
  }
  sweep.base = std::move(base);
  return {};
}

// Opens the document that the text at `at`, a part of `root`, refers to; false: it refers to none.
bool open_name(std::string& kind, Json& root, Json& at, const Place& place) {
  std::string found = kind_of_reference(scenario_section().spec(), root, &at);
  if (found.empty()) return false;
  kind = std::move(found);
  auto opened = resolved_document(kind, at.get<std::string>(), place);
  if (opened) at = std::move(*opened);
  return opened.has_value();
}

// Where a column leads through names of documents, notes their kinds and puts the documents into
// `root`.
void open_names(SweepColumn& column, Json& root, const Place& place) {
  Json* at = &root;
  for (std::size_t depth = 0; depth < column.steps.size(); ++depth) {
    if (at->is_string() && !open_name(column.kinds[depth], root, *at, place)) return;
    if (!at->is_object() || !at->contains(column.steps[depth])) return;
    at = &(*at)[column.steps[depth]];
  }
}

// Puts `value` in its place in `trial` and checks it; `place`: where the sweep has the value.
Expected<void> try_value(const Sweep& sweep, const SweepColumn& column, const SweepValue& value,
                         Json& trial, const Place& place) {
  if (value.text.empty()) return {};
  if (auto done = put(column, value.value, trial, sweep.place()); !done) {
    return place.error(fmt::format("{}: {}", done.error().where, done.error().message));
  }
  const Document scenario{.name = fmt::format("of {}", column.name)};
  if (auto fits = check(scenario_section().spec(), trial, {&scenario, ""}); !fits) {
    return place.error(fmt::format("{}: {}", fits.error().where, fits.error().message));
  }
  return {};
}

// Finds documents that do not exist before the first point is answered.
Expected<void> open_value(Sweep& sweep, const SweepColumn& column, const SweepValue& value,
                          Json& trial, const Place& place) {
  if (!value.value.is_string()) return {};
  const SectionSpec& section = scenario_section().spec();
  const std::string kind = kind_of_reference(section, trial, find(column, trial));
  if (kind.empty()) return {};
  if (kind != "passes") {
    auto opened = open_reference(kind, value.value.get<std::string>(), sweep.place());
    if (!opened) return place.error(opened.error().message);
  }
  collect_inputs(section, trial, sweep.place(), sweep.inputs);
  return {};
}

// Checks every value of a column, in a scenario where the other columns have their first value.
Expected<void> check_values(Sweep& sweep, const SweepAxis& axis, std::size_t within,
                            const Json& trial, const Place& place) {
  const SweepColumn& column = sweep.columns[axis.columns[within]];
  const bool listed = place.pointer.ends_with("values");
  std::vector<SweepValue> ends;
  if (axis.range) ends = {axis.range->at(0), axis.range->at(1)};
  const std::size_t count = axis.range ? ends.size() : axis.rows.size();
  for (std::size_t i = 0; i < count; ++i) {
    const SweepValue& value = axis.range ? ends[i] : axis.rows[i][within];
    const Place at = listed ? place / i : place;
    Json one = trial;
    if (auto done = try_value(sweep, column, value, one, at); !done) return done;
    if (auto done = open_value(sweep, column, value, one, at); !done) return done;
  }
  return {};
}

// Where the document has the values of a column.
Place place_of_values(const AxisDocument& axis, std::size_t within, const Place& place) {
  const bool zipped = !axis.zip.empty();
  const AxisDocument& column = zipped ? axis.zip[within] : axis;
  const Place at = zipped ? place / "zip" / within : place;
  return column.values.empty() ? at / "from" : at / "values";
}

Expected<void> add_columns(const AxisDocument& axis, Sweep& sweep, const Place& place) {
  const auto add = [&](const std::string& key, const Place& at) -> Expected<void> {
    SweepColumn column = column_of(key);
    for (const SweepColumn& other : sweep.columns) {
      if (other.name == column.name) {
        return (at / "key").error(fmt::format("found {} twice; allowed: once", shown(Json(key))));
      }
    }
    sweep.columns.push_back(std::move(column));
    return {};
  };
  if (axis.zip.empty()) return add(axis.key, place);
  for (std::size_t i = 0; i < axis.zip.size(); ++i) {
    if (auto done = add(axis.zip[i].key, place / "zip" / i); !done) return done;
  }
  return {};
}

// Checks every value of an axis; afterwards `trial` has its first.
Expected<void> check_axis_values(Sweep& sweep, std::size_t index, Json& trial, const Place& place) {
  const SweepAxis& axis = sweep.axes[index];
  for (std::size_t within = 0; within < axis.columns.size(); ++within) {
    SweepColumn& column = sweep.columns[axis.columns[within]];
    const Place at = place_of_values(sweep.document.vary[index], within, place);
    open_names(column, sweep.base, sweep.place());
    open_names(column, trial, sweep.place());
    if (auto done = check_values(sweep, axis, within, trial, at); !done) return done;
    const SweepValue first = axis.range ? axis.range->at(0) : axis.rows.front()[within];
    if (auto done = put(column, first.value, trial, sweep.place()); !done) return done;
  }
  return {};
}

Expected<void> take_axes(Sweep& sweep, const Place& place) {
  const bool drawn = sweep.document.combine == Combination::random;
  for (std::size_t i = 0; i < sweep.document.vary.size(); ++i) {
    const AxisDocument& document = sweep.document.vary[i];
    auto axis = axis_of(document, sweep.columns.size(), drawn, place / "vary" / i);
    if (!axis) return tl::unexpected(axis.error());
    if (auto done = add_columns(document, sweep, place / "vary" / i); !done) return done;
    sweep.axes.push_back(std::move(*axis));
  }
  Json trial = sweep.base;
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    if (auto done = check_axis_values(sweep, i, trial, place / "vary" / i); !done) return done;
  }
  return {};
}

Expected<void> take_csv(std::string text, Sweep& sweep, const Place& place) {
  auto csv = CsvOverrides::parse(std::move(text), place);
  if (!csv) return tl::unexpected(csv.error());
  sweep.csv = std::move(*csv);
  for (const std::string& key : sweep.csv->keys()) {
    if (auto done = add_columns({.key = key}, sweep, place); !done) return done;
    if (!is_read_by_point(sweep.columns.back().steps.front())) {
      return place.error(fmt::format("found the key {}; allowed: a key of the scenario",
                                     shown(std::string_view(key))));
    }
    open_names(sweep.columns.back(), sweep.base, sweep.place());
  }
  std::vector<SweepValue> values(sweep.columns.size());
  for (std::int64_t row = 0; row < std::min(sweep.csv->rows(), kCheckedLines); ++row) {
    sweep.csv->read(row, values);
    Json trial = sweep.base;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Document line{.name = fmt::format("{}: line {}", place.document->name, row + 2)};
      const SweepColumn& column = sweep.columns[i];
      if (auto done = try_value(sweep, column, values[i], trial, {&line, ""}); !done) return done;
      if (auto done = open_value(sweep, column, values[i], trial, {&line, ""}); !done) return done;
    }
  }
  return {};
}

Expected<std::int64_t> count_points(const Sweep& sweep, const Place& place) {
  if (sweep.csv) return sweep.csv->rows();
  if (sweep.document.combine == Combination::random) return sweep.document.samples;
  const bool grid = sweep.document.combine == Combination::grid;
  std::int64_t points = 1;
  for (const SweepAxis& axis : sweep.axes) {
    const auto rows = static_cast<std::int64_t>(axis.rows.size());
    if (grid && points > kMostPoints / rows) {
      return (place / "vary")
          .error(fmt::format("found more than {} points; allowed: fewer", kMostPoints));
    }
    points = grid ? points * rows : points + rows;
  }
  return points;
}

// A key of a constraint: one that varies, or a constant of the scenario.
Expected<KeyMeaning> meaning_of(const Sweep& sweep, const std::string& key) {
  const SweepColumn asked = column_of(key);
  for (std::size_t i = 0; i < sweep.columns.size(); ++i) {
    if (sweep.columns[i].name == asked.name) return i;
    if (leads_to(sweep.columns[i], asked) || leads_to(asked, sweep.columns[i])) {
      return failure("", fmt::format("found {}, a part of which varies; allowed: {}", key,
                                     sweep.columns[i].name));
    }
  }
  const Json* value = find(asked, sweep.base);
  if (value == nullptr) {
    return failure("", fmt::format("found {}, which neither varies nor stands in the scenario; "
                                   "allowed: a key that does",
                                   shown(std::string_view(key))));
  }
  return constraint_value_of(*value);
}

Expected<void> take_constraints(Sweep& sweep, const Place& place) {
  for (std::size_t i = 0; i < sweep.document.where.size(); ++i) {
    auto constraint = Constraint::parse(
        sweep.document.where[i], [&](const std::string& key) { return meaning_of(sweep, key); });
    if (!constraint) return (place / "where" / i).error(constraint.error().message);
    sweep.constraints.push_back(std::move(*constraint));
  }
  return {};
}

// The text of the CSV file: from a result file if that kept it, else from the file itself.
Expected<std::string> text_of_csv(const Sweep& sweep, const std::string* kept) {
  if (kept != nullptr) return *kept;
  auto text = read_file(sweep.origin->folder() / sweep.document.overrides);
  if (text) return text;
  return (sweep.place() / "overrides")
      .error(fmt::format("found {}, which {}", shown(std::string_view(sweep.document.overrides)),
                         text.error().message));
}

Expected<void> take_points(Sweep& sweep, const std::string* kept_csv) {
  if (sweep.document.overrides.empty()) return take_axes(sweep, sweep.place());
  auto text = text_of_csv(sweep, kept_csv);
  if (!text) return tl::unexpected(text.error());
  const fs::path file = sweep.origin->folder() / sweep.document.overrides;
  sweep.inputs.push_back({file.string(), sha256(*text)});
  const Document document{.name = shown_path(file)};
  return take_csv(std::move(*text), sweep, {&document, ""});
}

// The document as a result file keeps it.
std::string self_contained(Json value, const Sweep& sweep) {
  value["scenario"] = sweep.base;
  Json tagged = {{"trainyard", "sweep/1"}};
  tagged.update(value);
  return text_of(tagged);
}

// `value`: the document with its tag. `kept_csv`: the CSV text to use instead of the file; may be
// null.
Expected<void> make_sweep(Json value, const std::string* kept_csv, Sweep& sweep) {
  const Place place = sweep.place();
  if (auto tagged = take_tag(value, "sweep", place); !tagged) return tagged;
  if (auto fits = check(sweep_section().spec(), value, place); !fits) return fits;
  if (auto read = sweep_section().read(value, sweep.document, place); !read) return read;
  if (auto taken = take_scenario(sweep.document.scenario, sweep, place / "scenario"); !taken) {
    return taken;
  }
  if (auto taken = take_points(sweep, kept_csv); !taken) return taken;
  if (auto taken = take_constraints(sweep, place); !taken) return taken;
  const auto points = count_points(sweep, place);
  if (!points) return tl::unexpected(points.error());
  sweep.points = *points;
  if (sweep.scenario.unlike) {
    const auto known = check_groups_are_answered(sweep.document, sweep.scenario);
    if (!known) return Place{place.document, known.error().where}.error(known.error().message);
  }
  sweep.name = sweep.document.name.empty() ? sweep.scenario.name : sweep.document.name;
  if (sweep.name.empty()) {
    sweep.name = sweep.origin->file.stem().string();
    if (!sweep.name.empty()) value["name"] = sweep.name;  // the file that keeps it has another one
  }
  sweep.text = self_contained(std::move(value), sweep);
  return {};
}

// The row of an axis that a drawn point takes.
std::size_t drawn_row(double uniform, std::size_t rows) {
  return std::min(static_cast<std::size_t>(uniform * static_cast<double>(rows)), rows - 1);
}

void draw(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values) {
  RandomStream random(static_cast<std::uint64_t>(sweep.document.seed),
                      static_cast<std::uint64_t>(point));
  for (const SweepAxis& axis : sweep.axes) {
    const double uniform = 1 - random.uniform();  // in [0, 1)
    if (axis.range) {
      values[axis.columns.front()] = axis.range->at(uniform);
      continue;
    }
    const auto& row = axis.rows[drawn_row(uniform, axis.rows.size())];
    for (std::size_t i = 0; i < row.size(); ++i) values[axis.columns[i]] = row[i];
  }
}

void take_row(const SweepAxis& axis, std::int64_t row, std::vector<SweepValue>& values) {
  const auto& cells = axis.rows[static_cast<std::size_t>(row)];
  for (std::size_t i = 0; i < cells.size(); ++i) values[axis.columns[i]] = cells[i];
}

// Point 0 is the scenario itself.
void vary_one(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values) {
  for (SweepValue& value : values) value = {};
  std::int64_t left = point - 1;
  for (const SweepAxis& axis : sweep.axes) {
    const auto rows = static_cast<std::int64_t>(axis.rows.size());
    if (left >= 0 && left < rows) take_row(axis, left, values);
    left -= rows;
  }
}

void cross(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values) {
  for (std::size_t i = sweep.axes.size(); i-- > 0;) {
    const auto rows = static_cast<std::int64_t>(sweep.axes[i].rows.size());
    take_row(sweep.axes[i], point % rows, values);
    point /= rows;
  }
}

}  // namespace

Expected<void> check_groups_are_answered(const SweepDocument& sweep, const Scenario& scenario) {
  const auto refused = [](std::string_view where, std::string_view found,
                          std::string_view allowed) {
    return tl::unexpected(not_for_groups(where, found, allowed));
  };
  if (sweep.evaluate == Evaluation::simulate || sweep.evaluate == Evaluation::run) {
    return refused("/evaluate", sweep.evaluate == Evaluation::run ? "run" : "simulate",
                   "estimate, plan, goodput");
  }
  if (scenario.plan) return refused("/scenario/plan", "a plan", "none: the planner finds it");
  return {};
}

Expected<Sweep> read_sweep(const fs::path& file) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  Sweep sweep;
  sweep.origin = std::make_shared<const Document>((*opened)->document);
  sweep.inputs.push_back({sweep.origin->file.string(), sha256((*opened)->text)});
  auto made = make_sweep(std::move((*opened)->value), nullptr, sweep);
  return made ? Expected<Sweep>(std::move(sweep)) : tl::unexpected(made.error());
}

Expected<Sweep> sweep_of_text(const std::string& text, const std::string& csv,
                              const fs::path& file) {
  auto value = parse_json(text);
  if (!value) return tl::unexpected(value.error());
  Sweep sweep;
  sweep.origin = std::make_shared<const Document>(Document{shown_path(file), file, nullptr});
  auto made = make_sweep(std::move(*value), &csv, sweep);
  return made ? Expected<Sweep>(std::move(sweep)) : tl::unexpected(made.error());
}

void values_at(const Sweep& sweep, std::int64_t point, std::vector<SweepValue>& values) {
  values.resize(sweep.columns.size());
  if (sweep.csv) {
    sweep.csv->read(point, values);
    return;
  }
  switch (sweep.document.combine) {
    case Combination::random:
      return draw(sweep, point, values);
    case Combination::one_at_a_time:
      return vary_one(sweep, point, values);
    case Combination::grid:
      return cross(sweep, point, values);
  }
}

bool is_asked_for(const Sweep& sweep, const std::vector<SweepValue>& values) {
  const auto value_at = [&](std::size_t i) -> const Json& {
    if (!values[i].text.empty()) return values[i].value;
    static const Json kNothing;
    const Json* own = find(sweep.columns[i], sweep.base);
    return own == nullptr ? kNothing : *own;
  };
  return std::ranges::all_of(
      sweep.constraints, [&](const Constraint& constraint) { return constraint.holds(value_at); });
}

std::string overrides_text(const Sweep& sweep, const std::vector<SweepValue>& values) {
  std::string text = "{";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].text.empty()) continue;
    if (text.size() > 1) text += ',';
    text += sweep.columns[i].quoted;
    text += ':';
    text += values[i].text;
  }
  return text += '}';
}

Expected<Json> scenario_of_point(const Sweep& sweep, const std::vector<SweepValue>& values) {
  Json scenario = sweep.base;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].text.empty()) continue;
    auto done = put(sweep.columns[i], values[i].value, scenario, sweep.place());
    if (!done) return tl::unexpected(done.error());
  }
  return scenario;
}

}  // namespace trainyard
