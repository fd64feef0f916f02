#include "cli/plan/explain_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/text/layout/columns.h"
#include "scenarios/json/nearest_name.h"
#include "scenarios/planner_keys.h"

namespace trainyard {
namespace {

constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"tp", "tensor_parallel"},   {"cp", "context_parallel"}, {"pp", "pipeline_parallel"},
    {"vp", "virtual_stages"},    {"dp", "data_parallel"},    {"ep", "expert_parallel"},
    {"mb", "micro_batch"},       {"zero", "zero_stage"},     {"etp", "expert_tensor_parallel"},
    {"sp", "sequence_parallel"},
};

std::string long_name(std::string_view name) {
  const auto* found =
      std::ranges::find(kShortNames, name, [](const auto& entry) { return entry.first; });
  return std::string(found == std::end(kShortNames) ? name : found->second);
}

tl::unexpected<Error> refuse_key(std::string_view key, std::vector<std::string> names) {
  for (const auto& [name, key_of_plan] : kShortNames) names.emplace_back(name);
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
  PinnedKey pinned{long_name(name), std::string(text.substr(equals + 1))};
  std::vector<std::string> names = planner_keys_of_plan();
  if (std::ranges::find(names, pinned.key) == names.end()) {
    return refuse_key(name, std::move(names));
  }
  return with_planner_key(PlannerKeys(), pinned.key, pinned.value, "--explain")
      .map([&](const PlannerKeys&) { return std::move(pinned); });
}

// Position of the first comma outside lists and objects; the end if there is none.
std::size_t end_of_key(std::string_view text) {
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '{') ++open;
    if (text[i] == ']' || text[i] == '}') --open;
    if (text[i] == ',' && open <= 0) return i;
  }
  return text.size();
}

}  // namespace

Expected<std::vector<PinnedKey>> parse_pinned_keys(std::string_view text) {
  std::vector<PinnedKey> pinned;
  while (true) {
    const std::size_t end = end_of_key(text);
    auto key = parse_pinned_key(text.substr(0, end));
    if (!key) return tl::unexpected(std::move(key.error()));
    if (std::ranges::find(pinned, key->key, &PinnedKey::key) != pinned.end()) {
      return failure("--explain", fmt::format("found {} twice, allowed once", key->key));
    }
    pinned.push_back(*std::move(key));
    if (end == text.size()) return pinned;
    text.remove_prefix(end + 1);
  }
}

PlannerKeys pinned_keys(const PlannerKeys& keys, const std::vector<PinnedKey>& pinned) {
  PlannerKeys narrowed = keys;
  for (const PinnedKey& pin : pinned) {
    narrowed = *with_planner_key(narrowed, pin.key, pin.value, "--explain");
  }
  return narrowed;
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
