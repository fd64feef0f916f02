// Worked questions with files of other tools: importing the files of scenarios/cases/files/ gives
// the documents of the cases, and plans of cases are the same after export and import.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/hardware/nccl_tests.h"
#include "scenarios/interchange/hardware/nvidia_smi.h"
#include "scenarios/interchange/kineto.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"
#include "scenarios/question.h"
#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

fs::path case_file(const std::string& name) {
  return source_folder() / "scenarios" / "cases" / name;
}
Json document(const fs::path& file) { return parse_json(read_file(file).value()).value(); }
ForeignFile foreign_file(const std::string& name) {
  return read_foreign_file(case_file("files") / name).value();
}

struct ImportedCase {
  const char* kind;
  const char* file;  // in files/
  const char* made;  // the document, of cases/
  Expected<Imported> (*import)(const ForeignFile& file);
};

const ImportedCase kImported[] = {
    {"megatron", "gpt3-175b.sh", "gpt3-175b-by-megatron.json",
     [](const ForeignFile& file) {
       return import_megatron(file, {.node = "dgx-a100-80gb", .nodes = 128});
     }},
    {"deepspeed", "zero-3.json", "llama-3.1-8b-by-deepspeed.json",
     [](const ForeignFile& file) {
       return import_deepspeed(
           file,
           {.model = "llama-3.1-8b", .node = "dgx-a100-80gb", .nodes = 1, .sequence_length = 4096});
     }},
    {"torchtitan", "llama3-70b.toml", "llama-3.1-70b-by-torchtitan.json",
     [](const ForeignFile& file) {
       return import_torchtitan(file, {.node = "dgx-h100-80gb", .nodes = 32});
     }},
    {"fsdp", "fsdp.yaml", "llama-3.1-8b-by-accelerate.json",
     [](const ForeignFile& file) {
       return import_fsdp(
           file,
           {.model = "llama-3.1-8b", .node = "dgx-h100-80gb", .nodes = 8, .sequence_length = 4096});
     }},
    {"nccl_tests", "all_reduce_perf.txt", "files/h100-by-nccl-tests.json",
     [](const ForeignFile& file) { return import_nccl_tests(file, "", "2026-01-31"); }},
    {"kineto", "trace.json", "files/profile-by-kineto.json",
     [](const ForeignFile& file) { return import_kineto(file); }},
    {"nvidia_smi", "topo-m.txt", "files/node-by-nvidia-smi.json",
     [](const ForeignFile& file) -> Expected<Imported> {
       return import_nvidia_smi(case_file("files") / file.name, "a100-sxm-80gb");
     }},
};

class ImportedCases : public ::testing::TestWithParam<ImportedCase> {};

// A case adds a name, a question and perhaps a run. Names of files depend on the working folder.
TEST_P(ImportedCases, AreWhatTheirFilesSay) {
  const ImportedCase& tested = GetParam();
  ForeignFile file = foreign_file(tested.file);
  file.name = tested.file;
  const auto imported = tested.import(file);
  ASSERT_TRUE(imported.has_value()) << line_of(imported.error());
  const Json made = document(case_file(tested.made));
  const Json read = parse_json(imported->document).value();
  for (const auto& [key, value] : read.items()) {
    // The rest of a device comes from the catalog, which is fitted anew from time to time.
    const bool of_device = std::string(tested.kind) == "nccl_tests" && key != "collectives";
    if (key == "name" || key == "source" || of_device) continue;
    EXPECT_EQ(made.value(key, Json()), value) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImportedCases, ::testing::ValuesIn(kImported),
                         [](const auto& tested) { return std::string(tested.param.kind); });

struct ExportedCase {
  const char* kind;
  const char* name;
  const char* file;
  Expected<Exported> (*write)(const Scenario&, const Plan&);
  Expected<Imported> (*read)(const ForeignFile&, const ImportSettings&);
  ImportSettings settings;
};

const ExportedCase kExported[] = {
    {"megatron",
     "gpt3-175b-by-megatron",
     "megatron-arguments.txt",
     export_megatron,
     import_megatron,
     {.node = "dgx-a100-80gb", .nodes = 128}},
    {"deepspeed",
     "llama-3.1-8b-by-deepspeed",
     "deepspeed.json",
     export_deepspeed,
     import_deepspeed,
     {.model = "llama-3.1-8b", .node = "dgx-a100-80gb", .nodes = 1, .sequence_length = 4096}},
    {"torchtitan",
     "llama-3.1-70b-by-torchtitan",
     "torchtitan.toml",
     export_torchtitan,
     import_torchtitan,
     {.node = "dgx-h100-80gb", .nodes = 32}},
    {"fsdp",
     "llama-3.1-8b-by-accelerate",
     "accelerate.yaml",
     export_fsdp,
     import_fsdp,
     {.model = "llama-3.1-8b", .node = "dgx-h100-80gb", .nodes = 8, .sequence_length = 4096}},
};

class ExportedCases : public ::testing::TestWithParam<ExportedCase> {};

Plan planned(const Scenario& scenario) {
  return requested_plan(scenario, prepare(scenario.job)).value();
}

TEST_P(ExportedCases, ComeBackTheSame) {
  const ExportedCase& tested = GetParam();
  const auto scenario = read_scenario(case_file(std::string(tested.name) + ".json"));
  ASSERT_TRUE(scenario.has_value()) << line_of(scenario.error());
  const Plan plan = planned(*scenario);
  const auto exported = tested.write(*scenario, plan);
  ASSERT_TRUE(exported.has_value()) << line_of(exported.error());
  const auto file = std::ranges::find(exported->files, tested.file, &ExportedFile::name);
  ASSERT_NE(file, exported->files.end());
  const auto back = tested.read(foreign(file->text), tested.settings);
  ASSERT_TRUE(back.has_value()) << line_of(back.error());
  EXPECT_EQ(text_of_plan(planned(parse_scenario(back->document, "back").value())),
            text_of_plan(plan));
}

INSTANTIATE_TEST_SUITE_P(All, ExportedCases, ::testing::ValuesIn(kExported),
                         [](const auto& tested) { return std::string(tested.param.kind); });

}  // namespace
}  // namespace trainyard
