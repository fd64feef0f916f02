#include "scenarios/interchange/hardware/nccl_tests.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "model/calibration/fit_collectives.h"
#include "scenarios/machine/device_document.h"
#include "tests/scenarios/interchange/foreign.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

constexpr double kLatency = 20e-6, kBandwidth = 200e9;

double seconds_of(double bytes) { return kLatency + bytes / kBandwidth; }

// Output as nccl-tests 2.17 prints it, for `ranks` ranks of a node with times of latency +
// S/bandwidth.
std::string printed(const std::string& program, int ranks, const std::string& product) {
  std::string text =
      "# nccl-tests version 2.17.6 nccl-headers=22808 nccl-library=22808\n"
      "# Collective test starting: " +
      program +
      "\n"
      "# nThread 1 nGpus 8 minBytes 1024 maxBytes 1073741824 step: 2(factor)\n#\n"
      "# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("#  Rank  {0} Group  0 Pid  52 on node-1 device  {0} [0000:18:00] {1}\n",
                        rank, product);
  }
  text +=
      "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong"
      "     time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n";
  for (double bytes = 1024; bytes <= 1 << 30; bytes *= 2) {
    const double us = seconds_of(bytes) * 1e6;
    text += fmt::format("{:12.0f} {:12.0f} float sum -1 {:9.2f} 1.00 1.00 0 {:9.2f} 1.00 1.00 0\n",
                        bytes, bytes / 4, us, 2 * us);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100.0\n";
}

const std::vector<CollectiveSample>& samples_of(const NcclTests& tests) {
  return std::get<std::vector<CollectiveSample>>(tests.table.samples);
}

std::string nccl_tests_refusal(const std::string& text) {
  return line_of(read_nccl_tests(foreign(text)).error());
}

TEST(NcclTests, ReadsTheOutOfPlaceTimes) {
  const auto read =
      read_nccl_tests(foreign(printed("all_reduce_perf", 8, "NVIDIA H100 80GB HBM3")));
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  EXPECT_EQ(read->product, "NVIDIA H100 80GB HBM3");
  const std::vector<CollectiveSample>& samples = samples_of(*read);
  ASSERT_EQ(samples.size(), 21u);
  EXPECT_EQ(samples.front().operation, CollectiveOperation::all_reduce);
  EXPECT_EQ(samples.front().gpus, 8);
  EXPECT_DOUBLE_EQ(samples.front().bytes.value(), 1024);
  EXPECT_NEAR(samples.front().time.value(), seconds_of(1024), 1e-8);
}

// Two tests in one file. The document is read back, and its curves give the times within 2 %.
TEST(NcclTests, FitADevicesCurves) {
  const std::string both = printed("all_reduce_perf", 8, "NVIDIA H100 80GB HBM3") +
                           printed("all_gather_perf", 8, "NVIDIA H100 80GB HBM3");
  const auto imported = import_nccl_tests(foreign(both), "", "2026-01-31");
  ASSERT_TRUE(imported.has_value()) << line_of(imported.error());
  EXPECT_THAT(imported->summary, HasSubstr("h100-sxm-80gb"));
  const std::string file = testing::TempDir() + fmt::format("nccl-tests-{}.json", getpid());
  std::ofstream(file) << imported->document;
  const auto device = read_device(file, "test");
  ASSERT_TRUE(device.has_value()) << line_of(device.error());
  const auto tests = read_nccl_tests(foreign(both)).value();
  for (const CollectiveSample& sample : samples_of(tests)) {
    EXPECT_NEAR(
        collective_sample_time(device->device, sample).value() / seconds_of(sample.bytes.value()),
        1, 0.02)
        << sample.bytes.value();
  }
}

// Each run lists its own ranks, whatever the previous run listed.
TEST(NcclTests, CountsTheGpusOfEachRun) {
  const std::string two = printed("all_reduce_perf", 2, "NVIDIA H100 80GB HBM3");
  const std::string eight = printed("all_reduce_perf", 8, "NVIDIA H100 80GB HBM3");
  for (const std::string& both : {two + eight, eight + two}) {
    const auto read = read_nccl_tests(foreign(both));
    ASSERT_TRUE(read.has_value()) << line_of(read.error());
    const std::vector<CollectiveSample>& samples = samples_of(*read);
    EXPECT_EQ(std::ranges::count(samples, 2, &CollectiveSample::gpus), 21);
    EXPECT_EQ(std::ranges::count(samples, 8, &CollectiveSample::gpus), 21);
  }
}

TEST(NcclTests, RefusesWhatADeviceHasNoCurveFor) {
  std::string two_hosts = printed("all_reduce_perf", 8, "NVIDIA H100 80GB HBM3");
  two_hosts.replace(two_hosts.find("on node-1 device  7"), 9, "on node-2");
  EXPECT_THAT(nccl_tests_refusal(two_hosts), HasSubstr("found a second host \"node-2\""));
  EXPECT_THAT(
      line_of(
          import_nccl_tests(foreign(printed("all_reduce_perf", 8, "NVIDIA X1")), "", "").error()),
      HasSubstr("found the device \"NVIDIA X1\", which the catalog does not have"));
}

TEST(NcclTests, GivesOneLineForWhatCannotBe) {
  EXPECT_THAT(nccl_tests_refusal(""), HasSubstr("found no row of sizes and times"));
  EXPECT_THAT(nccl_tests_refusal("# size count time\n 8 2 1.0\n"),
              HasSubstr("line 2: found times of no named"));
  EXPECT_THAT(nccl_tests_refusal("all_reduce_perf\n# size count time\n 8 2 1.0\n"),
              HasSubstr("found times of 0 ranks"));
}

}  // namespace
}  // namespace trainyard
