#include "cli/plan/given_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace trainyard {
namespace {

// Keys that a search takes from the given plan if it does not vary them. The values of other keys
// are searched, or follow from the degrees.
constexpr std::array<std::string_view, 8> kTaken = {
    "sequence_parallel", "offload",         "rank_order",     "collective",
    "overlap",           "capacity_factor", "load_imbalance", "optimizer_barrier"};

std::string are(const std::vector<std::string>& keys, std::string_view what) {
  return fmt::format("{} {} {}", fmt::join(keys, ", "), keys.size() == 1 ? "is" : "are", what);
}

}  // namespace

std::optional<PlanNote> note_on_given_plan(const Scenario& scenario,
                                           const std::vector<std::string>& searched) {
  std::vector<std::string> kept, anew, dropped;
  for (const std::string& key : scenario.plan_keys) {
    const bool varied = std::ranges::find(searched, key) != searched.end();
    const bool taken = std::ranges::find(kTaken, key) != kTaken.end();
    (varied ? anew : taken ? kept : dropped).push_back(key);
  }
  std::vector<std::string> words;
  if (!kept.empty()) words.push_back(are(kept, "kept"));
  if (!anew.empty()) words.push_back(are(anew, "searched anew"));
  if (!dropped.empty()) words.push_back(are(dropped, "not taken"));
  if (words.empty()) return std::nullopt;
  const bool all = words.size() == 1 && !kept.empty();
  return PlanNote{.text = fmt::format("of the given `plan` {}{}", fmt::join(words, ", "),
                                      all ? "" : "; the `planner` section fixes what is to hold"),
                  .plans = {}};
}

}  // namespace trainyard
