#include "scenarios/sweep/point_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr std::size_t kJobsKept = 256;
constexpr std::size_t kTiersKept = 256;

// A group of keys of a scenario that are read together, in the order of the scenario's table,
// because one needs the other: a price is of the cluster's device, a release of the training's
// stack. `take` copies what they decide.
struct KeyGroup {
  std::array<std::string_view, 3> keys;
  bool makes_job = false;
  void (*take)(Scenario& to, const Scenario& from) = nullptr;
};

constexpr std::array kKeyGroups = {
    KeyGroup{{"model"},
             true,
             [](Scenario& to, const Scenario& from) {
               to.job.model = from.job.model;
               to.assumptions = from.assumptions;
             }},
    KeyGroup{{"cluster", "price", "power"},
             true,
             [](Scenario& to, const Scenario& from) {
               to.job.cluster = from.job.cluster;
               to.unlike = from.unlike;
               to.carbon_intensity = from.carbon_intensity;
             }},
    KeyGroup{{"training", "measured"},
             true,
             [](Scenario& to, const Scenario& from) {
               to.job.training = from.job.training;
               to.measured = from.measured;
             }},
    KeyGroup{{"name", "question"},
             false,
             [](Scenario& to, const Scenario& from) { to.name = from.name; }},
    KeyGroup{{"plan", "use_of_groups"},
             false,
             [](Scenario& to, const Scenario& from) {
               to.plan = from.plan;
               to.use_of_groups = from.use_of_groups;
             }},
    KeyGroup{{"planner"}, false, [](Scenario& to, const Scenario& from) { to.space = from.space; }},
    KeyGroup{{"run"}, false, [](Scenario& to, const Scenario& from) { to.run = from.run; }},
    KeyGroup{{"reliability"},
             false,
             [](Scenario& to, const Scenario& from) { to.reliability = from.reliability; }},
    KeyGroup{{"checkpoint"},
             false,
             [](Scenario& to, const Scenario& from) { to.checkpoint = from.checkpoint; }},
    KeyGroup{{"simulation"},
             false,
             [](Scenario& to, const Scenario& from) { to.simulation = from.simulation; }},
};

bool has_key(const KeyGroup& group, std::string_view key) {
  return std::ranges::find(group.keys, key) != group.keys.end();
}

// The index of the key's group in kKeyGroups; kKeyGroups.size(): a point may not change the key.
std::size_t group_of(std::string_view key) {
  const auto found =
      std::ranges::find_if(kKeyGroups, [&](const KeyGroup& group) { return has_key(group, key); });
  return static_cast<std::size_t>(found - kKeyGroups.begin());
}

Expected<void> check_sections(const Json& sections, const Place& place) {
  const auto& fields = scenario_section().spec().fields;
  for (const auto& [key, value] : sections.items()) {
    const auto field = std::ranges::find(fields, key, &FieldSpec::key);
    if (auto fits = check(field->shape, value, place / key); !fits) return fits;
  }
  return {};
}

}  // namespace

bool is_read_by_point(std::string_view key) { return group_of(key) < kKeyGroups.size(); }

PointReader::PointReader(const Sweep& sweep)
    : sweep_(sweep),
      document_{.name = "point", .file = sweep.origin->file},
      settings_(sweep.scenario),
      own_(std::make_shared<const Question>(Question{sweep.scenario, prepare(sweep.scenario.job)})),
      jobs_(kJobsKept),
      tiers_(kTiersKept) {
  for (const SweepColumn& column : sweep.columns) {
    const std::size_t group = group_of(column.steps.front());
    groups_.push_back(group);
    makes_job_.push_back(kKeyGroups[group].makes_job);
    makes_topology_.push_back(column.steps.front() == "cluster");
    auto& varying = kKeyGroups[group].makes_job ? job_groups_ : settings_groups_;
    if (std::ranges::find(varying, group) == varying.end()) varying.push_back(group);
  }
}

bool PointReader::is_changed(std::size_t group, const Values& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (groups_[i] == group && !values[i].text.empty()) return true;
  }
  return false;
}

std::string PointReader::key_of(const Values& values, const std::vector<bool>& columns) const {
  std::string key;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!columns[i] || values[i].text.empty()) continue;
    key += sweep_.columns[i].name;
    key += '=';
    key += values[i].text;
    key += '\n';
  }
  return key;
}

// Reads a scenario from the keys of these groups only.
Expected<Scenario> PointReader::read_groups(const Values& values,
                                            const std::vector<std::size_t>& groups) {
  const Place place{&document_, ""};
  Json sections = Json::object();
  for (const std::size_t group : groups) {
    for (const std::string_view key : kKeyGroups[group].keys) {
      const auto own = sweep_.base.find(key);
      if (own != sweep_.base.end()) sections[std::string(key)] = *own;
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool here = std::ranges::find(groups, groups_[i]) != groups.end();
    if (!here || values[i].text.empty()) continue;
    auto done = put(sweep_.columns[i], values[i].value, sections, place);
    if (!done) return tl::unexpected(done.error());
  }
  if (auto fits = check_sections(sections, place); !fits) return tl::unexpected(fits.error());
  Scenario scenario;
  const auto read = scenario_section().read(sections, scenario, place);
  return read ? Expected<Scenario>(std::move(scenario)) : tl::unexpected(read.error());
}

std::shared_ptr<const FabricTiers> PointReader::tiers_of(const Cluster& cluster,
                                                         const Values& values) {
  std::string key = key_of(values, makes_topology_);
  if (key.empty()) return {own_, &own_->job.tiers};
  if (auto known = tiers_.find(key)) return known;
  return tiers_.keep(std::move(key), fabric_tiers(cluster));
}

Expected<Question> PointReader::read_job(const Values& values) {
  std::vector<std::size_t> changed;
  for (const std::size_t group : job_groups_) {
    if (is_changed(group, values)) changed.push_back(group);
  }
  auto read = read_groups(values, changed);
  if (!read) return tl::unexpected(read.error());
  Scenario scenario = sweep_.scenario;
  for (const std::size_t group : changed) kKeyGroups[group].take(scenario, *read);
  if (auto done = choose_zero_stack(scenario, {&document_, ""}); !done) {
    return tl::unexpected(done.error());
  }
  const auto tiers = tiers_of(scenario.job.cluster, values);
  PreparedJob job = prepare(scenario.job, *tiers);
  return Question{std::move(scenario), std::move(job)};
}

Expected<std::shared_ptr<const Question>> PointReader::job_of(const Values& values) {
  std::string key = key_of(values, makes_job_);
  if (key.empty()) return own_;
  if (auto known = jobs_.find(key)) return known;
  auto question = read_job(values);
  if (!question) return tl::unexpected(question.error());
  return jobs_.keep(std::move(key), std::move(*question));
}

Expected<void> PointReader::read_settings(const Values& values) {
  if (settings_groups_.empty()) return {};
  std::vector<std::size_t> changed;
  for (const std::size_t group : settings_groups_) {
    if (is_changed(group, values)) {
      changed.push_back(group);
    } else {
      kKeyGroups[group].take(settings_, sweep_.scenario);
    }
  }
  const auto read = read_groups(values, changed);
  if (!read) return tl::unexpected(read.error());
  for (const std::size_t group : changed) kKeyGroups[group].take(settings_, *read);
  return {};
}

Expected<PointQuestion> PointReader::read(const Values& values) {
  auto question = job_of(values);
  if (!question) return tl::unexpected(question.error());
  if (auto done = read_settings(values); !done) return tl::unexpected(done.error());
  settings_.carbon_intensity = (*question)->scenario.carbon_intensity;
  return PointQuestion{&settings_, std::move(*question)};
}

}  // namespace trainyard
