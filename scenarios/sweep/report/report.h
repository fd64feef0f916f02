// The report of a result file: every point beside two baselines for the same job, plain data
// parallelism and the rule of thumb, and a summary by strategy: memory, speed, number of devices.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/sweep/point_reader.h"
#include "scenarios/sweep/results/point_row.h"
#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/results/summary.h"

namespace trainyard {

// A baseline: a plan that people would use without a planner, for the same job.
struct BaselineFigures {
  double step_time = 0;    // s
  double peak_memory = 0;  // bytes
  bool fits = false;
  std::string plan;  // "TP 8, PP 4, DP 2, ZeRO 1"
};

struct ReportedPoint {
  PointRow row;
  std::string strategy;                        // kinds of parallelism used: "TP + PP + DP"
  std::string plan;                            // its degrees
  std::optional<BaselineFigures> plain, rule;  // absent: that baseline has no legal plan
};

// All points of one strategy.
struct StrategyRecord {
  std::int64_t done = 0, too_large = 0;
  double least_memory = 0, most_memory = 0;    // bytes, of those that fit
  double best_speed = 0, best_mfu = 0;         // tokens/s a device
  double least_devices = 0, most_devices = 0;  // of those that fit
  double best_total = 0;                       // tokens/s
};

class SweepReport {
 public:
  static Expected<std::unique_ptr<SweepReport>> open(const std::filesystem::path& file);

  const Sweep& sweep() const { return sweep_; }
  ResultFile& results() { return results_; }
  PointOrder order() const { return order_of(sweep_.document); }
  ReportedPoint describe(const PointRow& row);
  // Reads every row and returns the record of each strategy; `also` is called for every point.
  Expected<std::map<std::string, StrategyRecord>> strategies(
      const std::function<void(const ReportedPoint&)>& also);

 private:
  SweepReport(ResultFile results, Sweep sweep)
      : results_(std::move(results)), sweep_(std::move(sweep)), reader_(sweep_) {}
  struct Baselines {
    std::shared_ptr<const Question> question;  // kept alive, because its address is the key
    std::optional<BaselineFigures> plain, rule;
  };
  const Baselines& baselines_of(const std::shared_ptr<const Question>& question);
  std::optional<PlanRequest> request_of(const PointRow& row, const PointQuestion& point);

  ResultFile results_;
  Sweep sweep_;
  PointReader reader_;
  std::vector<SweepValue> values_;
  std::map<const Question*, Baselines> baselines_;
};

}  // namespace trainyard
