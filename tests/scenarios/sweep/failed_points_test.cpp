// Points whose answer throws are rows like others and do not harm others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using Row = nlohmann::json;

constexpr const char* kFourPoints = R"("evaluate": "run", "vary": [
    { "key": "training.global_batch", "values": [64, 128, 192, 256] } ])";

// Fails in another way for each global batch.
Expected<HardwareRun> fail_by_point(const std::string& scenario) {
  switch (Row::parse(scenario).at("training").at("global_batch").get<int>()) {
    case 64:
      throw std::bad_alloc();
    case 128:
      throw std::length_error("vector::reserve");
    case 192:
      throw std::runtime_error("no such day");
    default:
      return HardwareRun{Seconds(2), Bytes(3)};
  }
}

std::vector<Row> rows_in(const fs::path& file) {
  std::vector<Row> rows;
  std::istringstream lines(dump(file));
  for (std::string line; std::getline(lines, line);) rows.push_back(Row::parse(line));
  return rows;
}

TEST(FailedPoints, AreRefusedWithTheReason) {
  const auto sweep = sweep_from(kFourPoints);
  ASSERT_TRUE(sweep.has_value());
  std::string alike;
  for (const int threads : {1, 4}) {
    const fs::path file = sweep_folder() / fmt::format("{}.sqlite", threads);
    const SweepOutcome outcome = run(*sweep, file, {.workers = threads, .runner = fail_by_point});
    EXPECT_TRUE(outcome.complete());
    if (alike.empty()) alike = dump(file);
    EXPECT_EQ(dump(file), alike);
    const std::vector<Row> rows = rows_in(file);
    ASSERT_EQ(rows.size(), 4u);
    const std::vector<std::string> notes = {"needs more memory than there is",
                                            "needs more memory than there is", "no such day"};
    for (std::size_t i = 0; i < notes.size(); ++i) {
      EXPECT_EQ(rows[i].at("status"), "refused");
      EXPECT_EQ(rows[i].at("note"), notes[i]);
      EXPECT_TRUE(rows[i].at("step_time_s").is_null());
    }
    EXPECT_EQ(rows[3].at("status"), "done");
    EXPECT_EQ(rows[3].at("measured_step_time_s"), 2);
    EXPECT_GT(rows[3].at("step_time_s"), 0);
  }
}

}  // namespace
}  // namespace trainyard
