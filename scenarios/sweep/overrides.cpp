#include "scenarios/sweep/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "scenarios/sweep/references.h"

namespace trainyard {
namespace {

std::string unescaped(std::string_view step) {
  std::string text;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escape = step[i] == '~' && i + 1 < step.size();
    if (escape) ++i;
    text += !escape ? step[i] : step[i] == '1' ? '/' : '~';
  }
  return text;
}

std::optional<std::size_t> index_in(const Json& list, std::string_view step) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool whole = error == std::errc() && end == step.data() + step.size();
  return whole && index < list.size() ? std::optional(index) : std::nullopt;
}

tl::unexpected<Error> no_way(const SweepColumn& column, std::size_t depth, const Json& found) {
  return failure(column.name, fmt::format("found {} at {}, which has no {}", shown(found),
                                          depth == 0 ? "the scenario" : column.steps[depth - 1],
                                          shown(std::string_view(column.steps[depth]))));
}

// The member that step `depth` of the column names; created if an object lacks it.
Expected<Json*> step_into(const SweepColumn& column, std::size_t depth, Json& at) {
  const std::string& step = column.steps[depth];
  if (at.is_null()) at = Json::object();
  if (at.is_object()) return &at[step];
  if (at.is_array()) {
    if (const auto index = index_in(at, step)) return &at[*index];
  }
  return no_way(column, depth, at);
}

}  // namespace

SweepColumn column_of(std::string_view key) {
  SweepColumn column;
  const bool pointer = key.starts_with('/');
  if (pointer) key.remove_prefix(1);
  const char between = pointer ? '/' : '.';
  while (true) {
    const std::size_t end = std::min(key.find(between), key.size());
    column.steps.push_back(pointer ? unescaped(key.substr(0, end))
                                   : std::string(key.substr(0, end)));
    if (end == key.size()) break;
    key.remove_prefix(end + 1);
  }
  column.name = fmt::format("{}", fmt::join(column.steps, "."));
  column.quoted = json_line(Json(column.name));
  column.kinds.resize(column.steps.size());
  return column;
}

bool leads_to(const SweepColumn& key, const SweepColumn& other) {
  return key.steps.size() <= other.steps.size() &&
         std::equal(key.steps.begin(), key.steps.end(), other.steps.begin());
}

Expected<void> put(const SweepColumn& column, const Json& value, Json& root, const Place& place) {
  Json* at = &root;
  for (std::size_t depth = 0; depth < column.steps.size(); ++depth) {
    if (at->is_string() && !column.kinds[depth].empty()) {
      auto opened = resolved_document(column.kinds[depth], at->get<std::string>(), place);
      if (!opened) return tl::unexpected(opened.error());
      *at = std::move(*opened);
    }
    auto next = step_into(column, depth, *at);
    if (!next) return tl::unexpected(next.error());
    at = *next;
  }
  *at = value;
  return {};
}

const Json* find(const SweepColumn& column, const Json& root) {
  const Json* at = &root;
  for (const std::string& step : column.steps) {
    if (at->is_array()) {
      const auto index = index_in(*at, step);
      if (!index) return nullptr;
      at = &(*at)[*index];
      continue;
    }
    if (!at->is_object() || !at->contains(step)) return nullptr;
    at = &at->at(step);
  }
  return at;
}

}  // namespace trainyard
