// The catalog's stacks are what the fit gives, and their documents say so.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "model/calibration/stack_parameters.h"
#include "model/cost/estimate.h"
#include "scenarios/catalog.h"
#include "scenarios/machine/stack_document.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> run_files(const fs::path& shared) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(shared / "measured" / "runs")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

StackDocument catalog_stack(const std::string& name) {
  auto document = read_stack(name, "test");
  EXPECT_TRUE(document.has_value());
  return document ? *std::move(document) : StackDocument{};
}

class FittedStack : public testing::TestWithParam<const char*> {};

// Parameters are stored to four digits, and devices may have been fitted again since.
TEST_P(FittedStack, IsNoWorseThanFittingAgain) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const StackDocument document = catalog_stack(GetParam());
  const auto runs = runs_on(document.stack, run_files(shared));
  ASSERT_TRUE(runs.has_value());
  const StackFit again = fit_stack(*runs);
  double stored = 0;
  double fitted = 0;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const MeasuredRun& run = (*runs)[i];
    stored += std::abs(estimate(run.job, run.plan).step_time / run.step_time - 1);
    fitted += std::abs(again.errors[i]);
  }
  const auto rows = static_cast<double>(runs->size());
  EXPECT_LE(stored / rows, fitted / rows + 0.01);
}

TEST_P(FittedStack, NamesTheRunsBehindEachParameter) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const StackDocument document = catalog_stack(GetParam());
  const auto runs = runs_on(document.stack, run_files(shared));
  ASSERT_TRUE(runs.has_value());
  EXPECT_GE(document.stack.evidence.runs, static_cast<int>(runs->size()));  // and unfitted ones
  const std::string rows = fmt::format(" to {} published runs", runs->size());
  for (const StackParameter& parameter : stack_parameters()) {
    if (!parameter.applies(document.stack)) continue;
    const std::string name(parameter.name);
    ASSERT_TRUE(document.value["sources"].contains(name)) << name;
    const std::string source = document.value["sources"][name];
    EXPECT_TRUE(source.find(rows) != std::string::npos || source.starts_with("not determined"))
        << name << ": " << source;
  }
}

TEST_P(FittedStack, WritesADocumentThatReadsBack) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const StackDocument document = catalog_stack(GetParam());
  const auto runs = runs_on(document.stack, run_files(shared));
  ASSERT_TRUE(runs.has_value());
  const StackFit fit = fit_stack(*runs);
  const std::string text = stack_document(document, *runs, fit, "2026-01-31");
  EXPECT_NE(text.find("fitted 2026-01-31 to"), std::string::npos);
  const fs::path file =
      fs::path(testing::TempDir()) / fmt::format("{}.{}.json", GetParam(), ::getpid());
  std::ofstream(file) << text;
  const auto read = read_stack(file.string(), "test");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(stack_document(*read, *runs, fit, "2026-01-31"), text);
}

INSTANTIATE_TEST_SUITE_P(Catalog, FittedStack,
                         testing::Values("megatron-deepspeed", "megatron-2022", "megatron-core",
                                         "fsdp", "torchtitan", "torchtitan-eager", "internevo"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(StackFit, OfAStackThatNoRunNamesIsAnError) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto runs = runs_on(catalog_stack("ideal").stack, run_files(shared));
  ASSERT_FALSE(runs.has_value());
  EXPECT_EQ(
      runs.error().message,
      "found no run on ideal; allowed: a stack that some run with a measured step time names");
}

}  // namespace
}  // namespace trainyard
