#include "cli/explain_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/text.h"
#include "model/schedule/schedule.h"
#include "scenarios/nearest_name.h"

namespace trainyard {
namespace {

struct NumberKey {
  std::string_view name, short_name;
  Numbers SearchSpace::*space;
  void (*set)(PlanRequest& request, int value);
};

constexpr NumberKey kNumberKeys[] = {
    {"tensor_parallel", "tp", &SearchSpace::tensor_parallel,
     [](PlanRequest& r, int value) { r.tensor_parallel = value; }},
    {"context_parallel", "cp", &SearchSpace::context_parallel,
     [](PlanRequest& r, int value) { r.context_parallel = value; }},
    {"pipeline_parallel", "pp", &SearchSpace::pipeline_parallel,
     [](PlanRequest& r, int value) { r.pipeline_parallel = value; }},
    {"virtual_stages", "vp", &SearchSpace::virtual_stages,
     [](PlanRequest& r, int value) { r.virtual_stages = value; }},
    {"data_parallel", "dp", &SearchSpace::data_parallel,
     [](PlanRequest& r, int value) { r.data_parallel = value; }},
    {"expert_parallel", "ep", &SearchSpace::expert_parallel,
     [](PlanRequest& r, int value) { r.expert_parallel = value; }},
    {"expert_tensor_parallel", "etp", &SearchSpace::expert_tensor_parallel,
     [](PlanRequest& r, int value) { r.expert_tensor_parallel = value; }},
    {"micro_batch", "mb", &SearchSpace::micro_batch,
     [](PlanRequest& r, int value) { r.micro_batch = value; }},
    {"zero_stage", "zero", &SearchSpace::zero_stage,
     [](PlanRequest& r, int value) { r.zero_stage = value; }},
};

constexpr std::pair<std::string_view, RecomputeMode> kRecomputes[] = {
    {"none", RecomputeMode::none},
    {"selective", RecomputeMode::selective},
    {"full", RecomputeMode::full}};

RecomputeMode recompute_mode(std::string_view name) {
  return std::find_if(std::begin(kRecomputes), std::end(kRecomputes),
                      [name](const auto& entry) { return entry.first == name; })
      ->second;
}

const NumberKey* find_number_key(std::string_view name) {
  const auto* found = std::find_if(
      std::begin(kNumberKeys), std::end(kNumberKeys),
      [name](const NumberKey& key) { return key.name == name || key.short_name == name; });
  return found == std::end(kNumberKeys) ? nullptr : found;
}

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

tl::unexpected<Error> refuse(std::string_view key, std::string_view value,
                             const std::vector<std::string>& allowed) {
  const std::string nearest = nearest_name(value, allowed);
  return failure(
      "--explain",
      fmt::format("{}: found \"{}\", allowed {}{}", key, elide(value, 80), fmt::join(allowed, ", "),
                  nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

Expected<PinnedKey> parse_name(std::string_view key, std::string_view value) {
  std::vector<std::string> allowed;
  if (key == "recompute") {
    for (const auto& [name, mode] : kRecomputes) {
      allowed.emplace_back(name);
    }
  } else {
    for (const Schedule* schedule : schedules()) {
      allowed.emplace_back(schedule->name);
    }
  }
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    return refuse(key, value, allowed);
  }
  return PinnedKey{std::string(key), std::string(value)};
}

tl::unexpected<Error> refuse_key(std::string_view key) {
  std::vector<std::string> names = {"recompute", "schedule"};
  for (const NumberKey& known : kNumberKeys) {
    names.emplace_back(known.name);
    names.emplace_back(known.short_name);
  }
  const std::string nearest = nearest_name(key, names);
  return failure(
      "--explain",
      fmt::format("found key \"{}\", allowed {}{}", elide(key, 80), fmt::join(names, " "),
                  nearest.empty() ? "" : fmt::format("; nearest {}", nearest)));
}

Expected<PinnedKey> parse_pinned_key(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return failure("--explain", fmt::format("found \"{}\", allowed KEY=VALUE,… as in tp=8,pp=16",
                                            elide(text, 80)));
  }
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (name == "recompute" || name == "schedule") {
    return parse_name(name, value);
  }
  const NumberKey* key = find_number_key(name);
  if (key == nullptr) {
    return refuse_key(name);
  }
  if (!parse_number(value)) {
    return refuse(key->name, value, {"a whole number"});
  }
  return PinnedKey{std::string(key->name), std::string(value)};
}

}  // namespace

Expected<std::vector<PinnedKey>> parse_pinned_keys(std::string_view text) {
  std::vector<PinnedKey> pinned;
  pinned.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1);
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    auto key = parse_pinned_key(text.substr(0, comma));
    if (!key) {
      return tl::unexpected(std::move(key.error()));
    }
    pinned.push_back(*std::move(key));
    if (comma == text.size()) {
      return pinned;
    }
    text.remove_prefix(comma + 1);
  }
}

SearchSpace pinned_space(SearchSpace space, const std::vector<PinnedKey>& pinned) {
  for (const PinnedKey& pin : pinned) {
    if (pin.key == "recompute") {
      space.recompute = {{{.mode = recompute_mode(pin.value)}, {}}};
    } else if (pin.key == "schedule") {
      space.schedule = {pin.value};
    } else {
      space.*find_number_key(pin.key)->space = {*parse_number(pin.value)};
    }
  }
  return space;
}

PlanRequest pinned_request(PlanRequest request, const std::vector<PinnedKey>& pinned) {
  request.data_parallel.reset();
  request.schedule.clear();
  const bool other_schedule =
      std::ranges::find(pinned, "schedule", &PinnedKey::key) != pinned.end();
  if (other_schedule) request.virtual_stages.reset();
  for (const PinnedKey& pin : pinned) {
    if (pin.key == "recompute") {
      request.recompute = {.mode = recompute_mode(pin.value)};
    } else if (pin.key == "schedule") {
      request.schedule = pin.value;
    } else {
      find_number_key(pin.key)->set(request, *parse_number(pin.value));
    }
  }
  return request;
}

std::string pinned_words(const std::vector<PinnedKey>& pinned) {
  std::vector<std::string> words;
  words.reserve(pinned.size());
  for (const PinnedKey& pin : pinned) {
    words.push_back(fmt::format("{} {}", pin.key, pin.value));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace trainyard
