#include "scenarios/sweep/results/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/json/file.h"
#include "scenarios/sweep/results/result_file.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::string below(const std::string& key, const std::string& step) {
  return key.empty() ? step : fmt::format("{}.{}", key, step);
}

void compare_values(const std::string& key, const Json* before, const Json* after,
                    std::vector<KeyChange>& changes);

void compare_members(const std::string& key, const Json* before, const Json* after,
                     std::vector<KeyChange>& changes) {
  const auto member = [](const Json* of, const std::string& name) {
    return of != nullptr && of->contains(name) ? &of->at(name) : nullptr;
  };
  if (before != nullptr) {
    for (const auto& [name, value] : before->items()) {
      compare_values(below(key, name), &value, member(after, name), changes);
    }
  }
  if (after == nullptr) return;
  for (const auto& [name, value] : after->items()) {
    if (member(before, name) == nullptr) {
      compare_values(below(key, name), nullptr, &value, changes);
    }
  }
}

void compare_values(const std::string& key, const Json* before, const Json* after,
                    std::vector<KeyChange>& changes) {
  const auto has_members = [](const Json* value) {
    return value == nullptr || (value->is_object() && !value->empty());
  };
  if (has_members(before) && has_members(after)) {
    return compare_members(key, before, after, changes);
  }
  if (before != nullptr && after != nullptr && *before == *after) return;
  changes.push_back({key, before == nullptr ? "" : json_line(*before),
                     after == nullptr ? "" : json_line(*after)});
}

std::string columns_of(std::string_view side) {
  std::string list = fmt::format("{0}.point, {0}.status, {0}.overrides", side);
  for (const std::string_view name : kFigureNames) list += fmt::format(", {}.{}", side, name);
  return list;
}

// Reads a row from the columns that begin at `at`.
PointRow row_at(const Statement& select, int at) {
  PointRow row{.point = select.integer(at), .status = status_of(select.text(at + 1))};
  row.overrides = select.text(at + 2);
  for (std::size_t i = 0; i < kFigures; ++i) {
    row.figures[i] = select.number(at + 3 + static_cast<int>(i));
  }
  return row;
}

// Pairs the points of the same overrides, the first with the first and so on, because a random
// sweep may draw the same overrides several times.
constexpr std::string_view kPairs =
    "(SELECT point, overrides, row_number() OVER (PARTITION BY overrides ORDER BY point) AS nth "
    "FROM main.points) AS m JOIN "
    "(SELECT point, overrides, row_number() OVER (PARTITION BY overrides ORDER BY point) AS nth "
    "FROM other.points) AS o USING (overrides, nth) "
    "JOIN main.points AS a ON a.point = m.point JOIN other.points AS b ON b.point = o.point";

std::string moved() {
  std::string any = "(a.status <> b.status";
  for (const std::string_view name : kFigureNames) {
    any += fmt::format(" OR a.{0} IS NOT b.{0}", name);
  }
  return any + ")";
}

// The order of the moved points: by the change of the step time, then by the figure that moved
// most, as MovedPoint computes it.
std::string largest_first() {
  std::string most = "max(0";
  for (const std::string_view name : kFigureNames) {
    most += fmt::format(", coalesce(abs(b.{0} / a.{0} - 1), a.{0} IS NOT b.{0})", name);
  }
  return fmt::format("coalesce(abs(b.step_time_s / a.step_time_s - 1), 0) DESC, {}) DESC, a.point",
                     most);
}

// 1 if only one side is known, or `before` is 0.
double relative_change(double before, double after) {
  if (before == after || (std::isnan(before) && std::isnan(after))) return 0;
  const double change = after / before - 1;
  return std::isfinite(change) ? std::abs(change) : 1;
}

Expected<void> count_pairs(Database& database, ResultDifference& difference) {
  auto select = database.prepare(
      fmt::format("SELECT count(*) FILTER (WHERE NOT {0}), count(*) FILTER (WHERE {0}), "
                  "count(*) FILTER (WHERE a.status = 'done' AND b.status <> 'done'), "
                  "count(*) FILTER (WHERE a.status <> 'done' AND b.status = 'done'), "
                  "(SELECT count(*) FROM main.points) - count(*), "
                  "(SELECT count(*) FROM other.points) - count(*) FROM {1}",
                  moved(), kPairs));
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  int column = 0;
  for (std::int64_t* count :
       {&difference.same, &difference.moved, &difference.fits_no_more, &difference.fits_now,
        &difference.only_before, &difference.only_after}) {
    *count = select->integer(column++);
  }
  return {};
}

Expected<void> read_largest(Database& database, ResultDifference& difference) {
  auto select = database.prepare(fmt::format("SELECT {}, {} FROM {} WHERE {} ORDER BY {} LIMIT {}",
                                             columns_of("a"), columns_of("b"), kPairs, moved(),
                                             largest_first(), kMovedPointsTold));
  if (!select) return tl::unexpected(select.error());
  constexpr int kSide = 3 + static_cast<int>(kFigures);
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    difference.largest.push_back({row_at(*select, 0), row_at(*select, kSide)});
  }
}

// The file that cannot be read, because an error of a statement over both does not say which.
std::string unreadable_of(ResultFile& before, ResultFile& after) {
  for (ResultFile* results : {&before, &after}) {
    if (!results->each({}, [](const PointRow&) { return true; }))
      return shown_path(results->file());
  }
  return fmt::format("{} or {}", shown_path(before.file()), shown_path(after.file()));
}

Expected<void> compare_points(const fs::path& before, const fs::path& after,
                              ResultDifference& difference) {
  auto database = Database::open(before, Database::Access::read);
  if (!database) return tl::unexpected(database.error());
  auto attach = database->prepare("ATTACH ?1 AS other");
  if (!attach) return tl::unexpected(attach.error());
  const std::string other = after.string();
  attach->bind(1, std::string_view(other));
  if (auto done = attach->run(); !done) return done;
  if (auto done = count_pairs(*database, difference); !done) return done;
  return read_largest(*database, difference);
}

// The inputs that are not among `others`.
std::vector<SweepInput> without(std::vector<SweepInput> inputs,
                                const std::vector<SweepInput>& others) {
  std::erase_if(inputs, [&](const SweepInput& input) {
    return std::ranges::find(others, input) != others.end();
  });
  return inputs;
}

}  // namespace

std::vector<KeyChange> changes_between(const Json& before, const Json& after) {
  std::vector<KeyChange> changes;
  compare_values("", &before, &after, changes);
  return changes;
}

Expected<Json> resolved_scenario(const fs::path& file) {
  auto opened = open_file(file);
  if (!opened) return tl::unexpected(opened.error());
  Json value = (*opened)->value;
  const Place place = (*opened)->root();
  const SectionSpec& section = scenario_section().spec();
  if (auto tagged = take_tag(value, "scenario", place); !tagged) {
    return tl::unexpected(tagged.error());
  }
  if (auto fits = check(section, value, place); !fits) return tl::unexpected(fits.error());
  auto done = resolve_references(section, value, place);
  return done ? Expected<Json>(std::move(value)) : tl::unexpected(done.error());
}

double MovedPoint::step_time_change() const {
  const double change = after.figure("step_time_s") / before.figure("step_time_s") - 1;
  return std::isfinite(change) ? change : 0;
}

std::size_t MovedPoint::largest_part() const {
  std::size_t largest = kFigures;
  double most = 0;
  for (std::size_t i = figure_at("compute_s"); i <= figure_at("other_s"); ++i) {
    const double moved = std::abs(after.figures[i] - before.figures[i]);
    if (moved > most) {
      most = moved;
      largest = i;
    }
  }
  return largest;
}

std::size_t MovedPoint::largest_figure() const {
  std::size_t largest = kFigures;
  double most = 0;
  for (std::size_t i = 0; i < kFigures; ++i) {
    const double moved = relative_change(before.figures[i], after.figures[i]);
    if (moved > most) {
      most = moved;
      largest = i;
    }
  }
  return largest;
}

Expected<ResultDifference> difference_of(const fs::path& before, const fs::path& after) {
  auto a = ResultFile::open(before);
  if (!a) return tl::unexpected(a.error());
  auto b = ResultFile::open(after);
  if (!b) return tl::unexpected(b.error());
  const auto document_a = parse_json(a->said("document"));
  const auto document_b = parse_json(b->said("document"));
  if (!document_a || !document_b) {
    return failure((document_a ? after : before).string(), "has no document of its sweep");
  }
  ResultDifference difference{.documents = changes_between(*document_a, *document_b)};
  const auto inputs_a = a->inputs();
  const auto inputs_b = b->inputs();
  if (!inputs_a || !inputs_b) {
    return failure((inputs_a ? after : before).string(), "has no table of inputs");
  }
  difference.inputs_before = without(*inputs_a, *inputs_b);
  difference.inputs_after = without(*inputs_b, *inputs_a);
  auto compared = compare_points(before, after, difference);
  if (!compared) return failure(unreadable_of(*a, *b), compared.error().message);
  return difference;
}

bool is_database(const fs::path& file) {
  if (!check_readable(file, std::numeric_limits<std::size_t>::max())) return false;
  std::string head(15, '\0');
  std::ifstream(file, std::ios::binary).read(head.data(), 15);
  return head == "SQLite format 3";
}

}  // namespace trainyard
