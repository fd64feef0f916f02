// Reads the scenarios of points one after another, without reading everything again: only sections
// that a point changes are read, and what points share (network, cluster with its topology,
// training) is kept. Each thread has its own reader.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scenarios/question.h"
#include "scenarios/sweep/sweep.h"

namespace trainyard {

// A cache of the last few values that were used, by key.
template <typename Value>
class Recent {
 public:
  explicit Recent(std::size_t capacity) : capacity_(capacity) {}

  // The value under `key`; null if it is not known.
  std::shared_ptr<const Value> find(const std::string& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
  }
  std::shared_ptr<const Value> keep(std::string key, Value value) {
    if (entries_.size() == capacity_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::move(key), std::make_shared<const Value>(std::move(value)));
    places_[entries_.front().first] = entries_.begin();
    return entries_.front().second;
  }

 private:
  using Entries = std::list<std::pair<std::string, std::shared_ptr<const Value>>>;

  std::size_t capacity_;
  Entries entries_;  // last used first
  std::unordered_map<std::string, typename Entries::iterator> places_;
};

// A point's scenario. `settings` has all of it but the sections that make the job, which are in
// `question`.
struct PointQuestion {
  const Scenario* settings = nullptr;
  std::shared_ptr<const Question> question;

  const PreparedJob& job() const { return question->job; }
};

// Whether a point may change this key of the scenario.
bool is_read_by_point(std::string_view key);

class PointReader {
 public:
  // Requires: `sweep` outlives this.
  explicit PointReader(const Sweep& sweep);

  // The scenario of a point with these values. Valid until the next call.
  Expected<PointQuestion> read(const std::vector<SweepValue>& values);

 private:
  using Values = std::vector<SweepValue>;

  bool is_changed(std::size_t group, const Values& values) const;
  std::string key_of(const Values& values, const std::vector<bool>& columns) const;
  Expected<Scenario> read_groups(const Values& values, const std::vector<std::size_t>& groups);
  Expected<std::shared_ptr<const Question>> job_of(const Values& values);
  Expected<Question> read_job(const Values& values);
  std::shared_ptr<const FabricTiers> tiers_of(const Cluster& cluster, const Values& values);
  Expected<void> read_settings(const Values& values);

  const Sweep& sweep_;
  Document document_;                 // what errors name, and where relative paths start
  std::vector<std::size_t> groups_;   // of each column: its index in kKeyGroups
  std::vector<bool> makes_job_;       // by column
  std::vector<bool> makes_topology_;  // by column
  std::vector<std::size_t> job_groups_, settings_groups_;  // groups that the sweep's columns change
  Scenario settings_;
  std::shared_ptr<const Question> own_;  // the sweep's scenario itself
  Recent<Question> jobs_;
  Recent<FabricTiers> tiers_;
};

}  // namespace trainyard
