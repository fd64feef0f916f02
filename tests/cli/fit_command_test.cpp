// trainyard fit: a device from tables of kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

// Collectives that take 10 µs + S / (300 GB/s): eleven sizes among two devices and among eight.
std::string curve_rows() {
  std::string rows = "op,gpus,bytes,latency_us\n";
  for (const int gpus : {2, 8}) {
    for (double bytes = 1024; bytes <= 1024.0 * (1 << 20); bytes *= 4) {
      rows += fmt::format("all_gather,{},{},{:.6f}\n", gpus, bytes, 10 + bytes / 300e3);
    }
  }
  return rows;
}

std::string fit(const std::filesystem::path& table, const std::filesystem::path& out) {
  return "fit " + quoted(table) + " --device a100-sxm-80gb --date 2026-01-02 -o " + quoted(out);
}

TEST(FitCommand, NamesTheFileAndTheRowOfABadFigure) {
  std::string rows = curve_rows();
  const auto table = write_scratch("bad.csv", rows + "all_gather,2,4096,fast\n");
  const Ran ran = run_trainyard(fit(table, scratch_folder() / "out.json"));
  EXPECT_EQ(ran.status, 2);
  const auto lines = lines_of(ran.err);
  ASSERT_EQ(lines.size(), 1U) << ran.err;
  const auto row = lines_of(rows).size() + 1;
  EXPECT_NE(lines[0].find(
                fmt::format("bad.csv: row {}: column latency_us: found \"fast\"; allowed:", row)),
            std::string::npos)
      << lines[0];
  EXPECT_FALSE(exists(scratch_folder() / "out.json"));
}

// With milliseconds in the column of microseconds, 1 GiB would arrive at 260 TB/s.
TEST(FitCommand, RefusesATableInMilliseconds) {
  std::string rows = "op,gpus,bytes,latency_us\n";
  for (double bytes = 1 << 20; bytes <= 1024.0 * (1 << 20); bytes *= 4) {
    rows += fmt::format("all_gather,2,{},{:.6f}\n", bytes, (200 + bytes / 300e3) / 1000);
  }
  const auto table = write_scratch("milliseconds.csv", rows);
  const auto out = scratch_folder() / "out.json";
  for (const std::string& command :
       {fit(table, out), "fit --check " + quoted(table) + " --device a100-sxm-80gb"}) {
    const Ran ran = run_trainyard(command);
    EXPECT_EQ(ran.status, 2) << command;
    EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
    // Half of 1 MiB at 300 GB/s is 1.748 us.
    EXPECT_NE(
        ran.err.find("milliseconds.csv: row 2: column latency_us: found 0.203495; allowed: from "
                     "1.456, 1.2 times as fast as the datasheet of a100-sxm-80gb"),
        std::string::npos)
        << ran.err;
  }
  EXPECT_FALSE(exists(out));
}

// A bad row is reported instead of the score or the fit, for every kind of table.
TEST(FitCommand, NamesARowThatCannotBe) {
  const std::string gemm = "dtype,m,n,k,latency_us\nbfloat16,64,64,64,9\n";
  const std::string attention = "dtype,batch,seq,heads,kv_heads,head_dim,window,latency_us\n";
  const auto out = scratch_folder() / "out.json";
  for (const auto& [rows, named] :
       {std::pair{gemm + "fp8,64,64,64,9\n", "row 3: column dtype: found \"fp8\"; allowed: "},
        std::pair{gemm + "fp8,64,64,64,9\nbfloat16,64,64,64,nine\n",
                  "row 3: column dtype: found \"fp8\"; allowed: "},
        std::pair{gemm + "bfloat16,64,64,64,999999999\n",
                  "row 3: column latency_us: found 999999999; allowed: to 100"},
        std::pair{attention + "bfloat16,4,4096,8,16,128,0,500\n",
                  "row 2: column kv_heads: found \"16\"; allowed: a divisor of the 8 heads"}}) {
    const auto table = write_scratch("bad.csv", rows);
    for (const std::string& command :
         {fit(table, out), "fit --check " + quoted(table) + " --device a100-sxm-80gb"}) {
      const Ran ran = run_trainyard(command);
      EXPECT_EQ(ran.status, 2) << command;
      EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
      EXPECT_NE(ran.err.find(std::string("bad.csv: ") + named), std::string::npos) << ran.err;
    }
  }
  EXPECT_FALSE(exists(out));
}

TEST(FitCommand, TakesATableOnce) {
  const auto table = write_scratch("curve.csv", curve_rows());
  const auto copy = write_scratch("copy.csv", curve_rows());
  const Ran ran = run_trainyard("fit --check " + quoted(table) + " " + quoted(copy) +
                                " --device a100-sxm-80gb");
  EXPECT_EQ(ran.status, 2);
  const auto lines = lines_of(ran.err);
  ASSERT_EQ(lines.size(), 1U) << ran.err;
  EXPECT_NE(lines[0].find("copy.csv: found the rows of "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("curve.csv; allowed: every table once"), std::string::npos) << lines[0];
}

TEST(FitCommand, NamesARowThatLacksAColumn) {
  const auto table = write_scratch("short.csv", curve_rows() + "all_gather,2,4096\n");
  const Ran ran = run_trainyard("fit --check " + quoted(table) + " --device a100-sxm-80gb");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("short.csv: row 24: found 3 columns"), std::string::npos) << ran.err;
}

// Six all-reduces between two nodes, in JSON; fitted, stored, and scored from the document.
TEST(FitCommand, FitsAndScoresAFabric) {
  std::string rows;
  for (const double bytes : {1e7, 3e7, 1e8, 3e8, 1e9, 1e10}) {
    rows += fmt::format(R"({}{{"op": "all_reduce", "nodes": 2, "gpus": 16, "bytes": {}, )"
                        R"("time_us": {}, "source": "us"}})",
                        rows.empty() ? "" : ", ", bytes, 100 + bytes / 170e3);
  }
  const auto data = write_scratch("across.json", "{\"rows\": [" + rows + "]}");
  const auto start = write_scratch("start.json", R"({"trainyard": "fabric/1", "kind": "rail",
      "measured": {"node": "a3-mega", "source": "us"}})");
  const auto out = scratch_folder() / "fabric.json";
  const Ran fit = run_trainyard("fit " + quoted(data) + " --fabric " + quoted(start) + " -o " +
                                quoted(out) + " --date 2026-01-02");
  ASSERT_EQ(fit.status, 0) << fit.err;
  const PrintedJson document = PrintedJson::parse(read_text(out));
  // 170 GB/s of the eight NICs of 25 GB/s that each of two nodes has.
  EXPECT_NEAR(document["efficiency"].get<double>(), 0.85, 0.02);
  EXPECT_TRUE(document["sources"]["efficiency"].get<std::string>().starts_with(
      "fitted 2026-01-02 to across.json (6 rows of us, FNV-1a "));
  const Ran check =
      run_trainyard("fit --check " + quoted(data) + " --fabric " + quoted(out) + " --format json");
  ASSERT_EQ(check.status, 0) << check.err;
  EXPECT_LT(PrintedJson::parse(check.out)["files"][0]["mape"].get<double>(), 0.05);
}

TEST(FitCommand, RefusesADayThatNoCalendarHas) {
  const auto table = write_scratch("table.csv", curve_rows());
  const auto out = scratch_folder() / "undated.json";
  for (const char* date : {"2026-13-01", "2026-02-31", "2026-1-1", "today"}) {
    const Ran ran = run_trainyard("fit " + quoted(table) + " --device a100-sxm-80gb -o " +
                                  quoted(out) + " --date " + date);
    EXPECT_EQ(ran.status, 2) << date;
    EXPECT_NE(ran.err.find(date), std::string::npos) << ran.err;
  }
  EXPECT_FALSE(exists(out));
}

TEST(FitCommand, WantsOneKindOfThingToFit) {
  const auto table = write_scratch("table.csv", curve_rows());
  const Ran ran =
      run_trainyard("fit --check " + quoted(table) + " --device a100-sxm-80gb --fabric a3-mega");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("found 2 of --device, --stack and --fabric; allowed: one of them"),
            std::string::npos)
      << ran.err;
}

TEST(FitCommand, WritesTheSameBytesEveryTime) {
  const auto table = write_scratch("table.csv", curve_rows());
  const auto once = table.parent_path() / "once.json";
  const auto again = table.parent_path() / "again.json";
  const Ran first = run_trainyard(fit(table, once) + " --plot " + quoted(once) + ".svg");
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(run_trainyard(fit(table, again) + " --plot " + quoted(again) + ".svg").status, 0);
  EXPECT_EQ(read_text(once), read_text(again));
  EXPECT_EQ(read_text(once.string() + ".svg"), read_text(again.string() + ".svg"));
  EXPECT_TRUE(read_text(once.string() + ".svg").starts_with("<svg"));
}

// Expected is the curve that the rows were made from, to the four digits of a document, and its
// source.
TEST(FitCommand, FindsTheCurveOfItsRowsAndSaysWhereItIsFrom) {
  const auto table = write_scratch("table.csv", curve_rows());
  const auto out = table.parent_path() / "out.json";
  const Ran ran = run_trainyard(fit(table, out));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson device = PrintedJson::parse(read_text(out));
  const std::string source = device.at("sources").at("collectives");
  EXPECT_TRUE(source.starts_with("fitted 2026-01-02 to table.csv (22 rows, FNV-1a ")) << source;
  EXPECT_NE(source.find("mean error on shapes held back (5 folds): "), std::string::npos) << source;
  // Figures that the table does not determine stay.
  EXPECT_TRUE(device.at("rates").at("sources").at("gemm").get<std::string>().starts_with("fitted"));
}

TEST(FitCommand, ScoresStoredParametersWithoutFitting) {
  const auto table = write_scratch("table.csv", curve_rows());
  const auto out = table.parent_path() / "out.json";
  ASSERT_EQ(run_trainyard(fit(table, out)).status, 0);
  const std::string before = read_text(out);
  const std::string check = "fit --check " + quoted(table) + " --format json --device ";
  const Ran fitted = run_trainyard(check + quoted(out));
  ASSERT_EQ(fitted.status, 0) << fitted.err;
  EXPECT_LT(PrintedJson::parse(fitted.out).at("files").at(0).at("mape").get<double>(), 0.01);
  const Ran stored = run_trainyard(check + "a100-sxm-80gb");  // its own curves are others
  EXPECT_GT(PrintedJson::parse(stored.out).at("files").at(0).at("mape").get<double>(), 0.05);
  EXPECT_EQ(read_text(out), before);
}

TEST(FitCommand, WantsEitherAnOutputOrACheck) {
  const auto table = write_scratch("table.csv", curve_rows());
  const std::string command = "fit " + quoted(table) + " --device a100-sxm-80gb";
  const Ran neither = run_trainyard(command);
  EXPECT_EQ(neither.status, 2);
  EXPECT_NE(neither.err.find("found neither -o and --check; allowed: one of them"),
            std::string::npos)
      << neither.err;
  EXPECT_EQ(run_trainyard(command + " --check -o out.json").status, 2);
}

}  // namespace
}  // namespace trainyard
