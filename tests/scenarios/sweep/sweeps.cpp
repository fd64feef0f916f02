#include "tests/scenarios/sweep/sweeps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/results/row_json.h"

namespace trainyard {

namespace fs = std::filesystem;

fs::path sweep_folder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  fs::path folder = fs::path(testing::TempDir()) /
                    fmt::format("sweep-{}-{}-{}", info->test_suite_name(), info->name(), getpid());
  fs::create_directories(folder);
  return folder;
}

fs::path write_sweep_file(const std::string& name, const std::string& text) {
  fs::path file = sweep_folder() / name;
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::string base_scenario() {
  return R"({ "name": "base", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 4 },
    "training": { "global_batch": 64, "sequence_length": 8192, "precision": "bf16",
                  "optimizer": "adamw", "stack": "megatron-core" },
    "plan": { "tensor_parallel": 2, "micro_batch": 1 }, "price": "2 USD/h" })";
}

std::string sweep_text(const std::string& keys) {
  return fmt::format(R"({{ "trainyard": "sweep/1", "scenario": {}, {} }})", base_scenario(), keys);
}

Expected<Sweep> sweep_from(const std::string& keys) {
  return read_sweep(write_sweep_file("sweep.json", sweep_text(keys)));
}

std::vector<std::string> all_overrides(const Sweep& sweep) {
  std::vector<std::string> all;
  std::vector<SweepValue> values;
  for (std::int64_t point = 0; point < sweep.points; ++point) {
    values_at(sweep, point, values);
    all.push_back(is_asked_for(sweep, values) ? overrides_text(sweep, values) : "");
  }
  return all;
}

SweepOutcome run(const Sweep& sweep, const fs::path& file, const SweepOptions& options) {
  auto store = SweepStore::open(file, sweep, kSession);
  const auto outcome =
      store.and_then([&](SweepStore& opened) { return run_sweep(sweep, opened, options); });
  if (!outcome) ADD_FAILURE() << outcome.error().message;
  return outcome.value_or(SweepOutcome{});
}

std::string dump(const fs::path& file) {
  std::string text;
  auto results = ResultFile::open(file);
  if (!results) {
    ADD_FAILURE() << results.error().message;
    return text;
  }
  const auto read = results->each({}, [&text](const PointRow& row) {
    text += row_value(row).dump() + "\n";
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return text;
}

}  // namespace trainyard
