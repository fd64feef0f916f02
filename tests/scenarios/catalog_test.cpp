#include "scenarios/catalog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "model/cost/collective.h"
#include "scenarios/huggingface.h"
#include "scenarios/json/json_document.h"
#include "scenarios/machine/device_document.h"
#include "scenarios/scenario.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// A scenario with the given model, cluster and training, as JSON text.
Expected<Scenario> scenario_of(const std::string& model, const std::string& cluster,
                               const std::string& stack) {
  const fs::path file =
      fs::path(::testing::TempDir()) / fmt::format("trainyard_catalog.{}.json", ::getpid());
  std::ofstream(file) << fmt::format(
      R"({{"trainyard": "scenario/1", "model": "{}", "cluster": {}, )"
      R"("training": {{"global_batch": 8, "sequence_length": 2048, "stack": "{}"}}}})",
      model, cluster, stack);
  auto scenario = read_scenario(file);
  fs::remove(file);
  return scenario;
}

constexpr const char* kEightH100 = R"({"node": "dgx-h100-80gb", "nodes": 1})";

class CatalogEntries : public ::testing::TestWithParam<CatalogEntry> {};

TEST_P(CatalogEntries, IsReadAndCarriesItsNameAndSource) {
  const CatalogEntry& entry = GetParam();
  const std::string name(entry.name);
  std::string model = "llama-3.1-8b", cluster = kEightH100, stack = "fsdp";
  if (entry.kind == "model") model = name;
  if (entry.kind == "stack") stack = name;
  if (entry.kind == "node") cluster = fmt::format(R"({{"node": "{}", "nodes": 2}})", name);
  if (entry.kind == "fabric") {
    cluster = fmt::format(R"({{"node": "dgx-h100-80gb", "nodes": 64, "fabric": "{}"}})", name);
  }
  if (entry.kind == "device") {
    cluster = fmt::format(R"({{"device": "{}", "devices_per_node": 1, "nodes": 1,
        "intra_node": {{"kind": "pcie", "bandwidth": "32 GB/s"}}}})",
                          name);
  }
  const auto scenario = scenario_of(model, cluster, stack);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().where << ": " << scenario.error().message;
  EXPECT_NE(entry.text.find("\"source\": \""), std::string_view::npos);
  const Job& job = scenario->job;
  const std::string read_name = entry.kind == "model"    ? job.model.name
                                : entry.kind == "stack"  ? job.training.stack.name
                                : entry.kind == "node"   ? job.cluster.name
                                : entry.kind == "fabric" ? name  // a cluster keeps its figures only
                                                         : job.cluster.device.name;
  EXPECT_EQ(read_name, name);
}

INSTANTIATE_TEST_SUITE_P(All, CatalogEntries,
                         ::testing::ValuesIn(catalog().begin(), catalog().end()),
                         [](const auto& tested) {
                           std::string name =
                               fmt::format("{}_{}", tested.param.kind, tested.param.name);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

// Rates of kernels name the table of measurements that they were fitted to, or say that there is
// none.
TEST(Catalog, DevicesSayWhatWasNotMeasured) {
  for (const std::string& name : catalog_names("device")) {
    const Json device = parse_json(find_in_catalog("device", name)->text).value();
    for (const char* kernels : {"gemm", "attention", "experts"}) {
      const std::string source = device["rates"]["sources"][kernels];
      EXPECT_TRUE(source.starts_with("fitted ") || source.find("no measurement") != source.npos)
          << name << ": " << source;
    }
  }
}

bool begins_with(const Json& source, std::string_view words) {
  return source.get_ref<const std::string&>().starts_with(words);
}

// The interval is not widened if the chip itself was measured, or if training runs on it determine
// its clock.
TEST(Catalog, DevicesHaveWiderIntervalsForRatesOfAnotherDevice) {
  int wider = 0;
  for (const std::string& name : catalog_names("device")) {
    const Json device = parse_json(find_in_catalog("device", name)->text).value();
    const Json& sources = device["rates"]["sources"];
    const std::string gemm = sources["gemm"];
    const bool known = begins_with(gemm, "fitted ") ||
                       gemm.find(": the same chip; ") != gemm.npos ||
                       begins_with(sources["sustained_clock"], "fitted ");
    EXPECT_EQ(device.contains("interval_widening"), !known) << name;
    if (known) continue;
    ++wider;
    EXPECT_GT(device.value("interval_widening", 0.0), 1) << name;
    const std::string source = device["sources"]["interval_widening"];
    EXPECT_NE(source.find("scripts/carried-kernels, 20"), source.npos) << name << source;
  }
  EXPECT_GE(wider, 10);
}

Json device_rates(const std::string& name) {
  return parse_json(find_in_catalog("device", name)->text).value()["rates"];
}

// Whether the source names a published figure with its unit, or a device of the catalog.
bool names_a_figure_or_a_device(const std::string& source) {
  for (const std::string_view unit : {" TB/s", " TFLOP/s", " %"}) {
    const auto at = source.find(unit);
    if (at != source.npos && at > 0 && std::isdigit(static_cast<unsigned char>(source[at - 1]))) {
      return true;
    }
  }
  const auto at = source.find("as ");
  if (at == source.npos) return false;
  const std::string name = source.substr(at + 3, source.find_first_of(",; ", at + 3) - at - 3);
  return find_in_catalog("device", name) != nullptr;
}

// The measured tables have no collectives of this mesh, so published figures are used. AMD,
// "Understanding RCCL Bandwidth and xGMI Performance on AMD Instinct MI300X" (2025): 310 to 330
// GB/s among the eight of a node; between two of them one link, of which 48 GB/s can be used.
TEST(Catalog, CollectivesOfAMeshAreAtWhatItsLibraryAttains) {
  const auto document = read_device("mi300x-192gb", "the test");
  ASSERT_TRUE(document) << document.error().message;
  Cluster cluster;
  cluster.device = document->device;
  cluster.intra = {.kind = IntraNodeKind::nvlink_mesh, .bandwidth = BytesPerSecond(448e9)};
  const CollectiveChoice choice = collective_choice("", cluster);
  const Bytes message(1e9);
  for (const auto operation : {CollectiveOperation::all_reduce, CollectiveOperation::all_gather,
                               CollectiveOperation::reduce_scatter}) {
    const auto attained = [&](int ranks) {
      const GroupLinks links{.size = ranks, .ranks_per_domain = ranks};
      const Seconds time = collective_time(operation, links, message, choice);
      return bus_bandwidth(operation, ranks, message, time).value();
    };
    EXPECT_GT(attained(8), 310e9);
    EXPECT_LT(attained(8), 330e9);
    EXPECT_LT(attained(2), 48e9);
    EXPECT_GT(attained(2), 0.9 * 48e9);
  }
}

TEST(Catalog, DevicesNameTheFiguresThatNoTableHas) {
  for (const std::string& name : catalog_names("device")) {
    const Json sources =
        parse_json(find_in_catalog("device", name)->text).value()["rates"]["sources"];
    const std::string attention = sources["attention"];
    const auto backward = attention.find("; backward: ");
    ASSERT_NE(backward, attention.npos) << name;
    EXPECT_TRUE(names_a_figure_or_a_device(attention.substr(backward))) << name << attention;
    EXPECT_TRUE(names_a_figure_or_a_device(sources["memory"])) << name << sources["memory"];
    const std::string clock = sources["sustained_clock"];
    EXPECT_TRUE(names_a_figure_or_a_device(clock)) << name << clock;
    EXPECT_TRUE(names_a_figure_or_a_device(sources["batched_gemm"])) << name;
    EXPECT_FALSE(sources.value("launch", "").empty()) << name;
  }
}

// One figure for all devices, with what the runs that use such kernels say about it
// (scripts/batched-gemms).
TEST(Catalog, DevicesHaveOneFigureOfBatchedGemmsWithDataDateAndError) {
  for (const std::string& name : catalog_names("device")) {
    const Json rates = device_rates(name);
    const std::string source = rates["sources"]["batched_gemm"];
    if (name != "a100-sxm-80gb") {
      EXPECT_EQ(rates["batched_gemm"], device_rates("a100-sxm-80gb")["batched_gemm"]) << name;
      EXPECT_TRUE(begins_with(source, "as a100-sxm-80gb, ")) << name << source;
      continue;
    }
    EXPECT_TRUE(
        begins_with(source, fmt::format("{} of the peak, ", rates["batched_gemm"].get<double>())))
        << source;
    EXPECT_TRUE(std::regex_search(
        source, std::regex(R"(tried \d{4}-\d\d-\d\d on \d+ published runs of \d+ files .*: mean )"
                           R"(error of the step time \d+\.\d\d % in sample, least )")))
        << source;
  }
}

// The stack says which kernel runs attention's backward pass, and names its source.
TEST(Catalog, StacksNameTheSourceOfTheirAttentionBackward) {
  for (const std::string& name : catalog_names("stack")) {
    const Json stack = parse_json(find_in_catalog("stack", name)->text).value();
    const bool flash = stack.value("flash_attention", true) && name != "ideal";
    const std::string source = stack["sources"].value("attention_backward", "");
    EXPECT_NE(source.find(flash ? "arXiv" : "of forward"), source.npos) << name << ": " << source;
  }
}

// `ideal` is exempt: it is a bound, defined by its figures.
TEST(Catalog, StacksNameTheSourceOfEveryFigure) {
  const std::set<std::string> remarks = {"trainyard", "name",     "source",
                                         "sources",   "evidence", "releases"};
  for (const std::string& name : catalog_names("stack")) {
    if (name == "ideal") continue;
    const Json stack = parse_json(find_in_catalog("stack", name)->text).value();
    for (const auto& [key, value] : stack.items()) {
      if (remarks.contains(key)) continue;
      EXPECT_FALSE(stack["sources"].value(key, "").empty()) << name << " " << key;
    }
    for (const auto& entry : stack.value("releases", Json::array())) {
      EXPECT_FALSE(entry.value("source", "").empty()) << name << " " << entry.dump();
    }
  }
}

TEST(Catalog, ListsNamesByKind) {
  const auto stacks = catalog_names("stack");
  EXPECT_EQ(stacks.size(), 11U);  // design §3, megatron-deepspeed and gpt-neox
  EXPECT_EQ(find_in_catalog("stack", "h100-sxm-80gb"), nullptr);
}

struct PublishedSize {
  std::string model;
  double billions;
  double tolerance;
};

class PublishedSizes : public ::testing::TestWithParam<PublishedSize> {};

TEST_P(PublishedSizes, AgreeWithTheCatalog) {
  const auto scenario = scenario_of(GetParam().model, kEightH100, "fsdp");
  ASSERT_TRUE(scenario.has_value());
  EXPECT_NEAR(parameter_count(scenario->job.model, 2048) / 1e9, GetParam().billions,
              GetParam().tolerance);
}

// Narayanan 2021, Table 1; Korthikanti 2022, Table 3; model cards; Kimi K2 report (1.04T).
INSTANTIATE_TEST_SUITE_P(
    Papers, PublishedSizes,
    ::testing::Values(PublishedSize{"gpt-1.7b", 1.7, 0.05}, PublishedSize{"gpt-3.6b", 3.6, 0.05},
                      PublishedSize{"gpt-7.5b", 7.5, 0.05}, PublishedSize{"gpt-18b", 18.4, 0.05},
                      PublishedSize{"gpt-39b", 39.1, 0.05}, PublishedSize{"gpt-76b", 76.1, 0.05},
                      PublishedSize{"gpt-145b", 145.6, 0.05},
                      PublishedSize{"gpt-310b", 310.1, 0.05},
                      PublishedSize{"gpt-530b", 529.6, 0.05}, PublishedSize{"gpt-1t", 1008, 0.5},
                      PublishedSize{"gpt-22b", 22, 0.5},
                      PublishedSize{"gpt3-175b", 174.615846912, 1e-9},     // handbook §2
                      PublishedSize{"llama-2-7b", 6.738415616, 1e-9},      // golden.md
                      PublishedSize{"llama-2-70b", 68.976648192, 1e-9},    // safetensors index
                      PublishedSize{"qwen3-30b-a3b", 30.532122624, 1e-9},  // safetensors index
                      PublishedSize{"gpt-oss-120b", 116.829156672, 1e-9},  // model card: 117B
                      PublishedSize{"kimi-k2", 1026.4, 20}),
    [](const auto& tested) {
      std::string name = tested.param.model;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

struct SameModel {
  std::string name;
  std::string config;
};

class CatalogModels : public ::testing::TestWithParam<SameModel> {};

// The catalog document and the Hugging Face config describe the same network.
TEST_P(CatalogModels, HaveTheParametersOfTheirConfigs) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto scenario = scenario_of(GetParam().name, kEightH100, "fsdp");
  const auto imported = read_huggingface(shared / "models" / "hf" / GetParam().config);
  ASSERT_TRUE(scenario.has_value() && imported.has_value());
  const Transformer& model = scenario->job.model;
  EXPECT_EQ(parameter_count(model, 2048), parameter_count(imported->model, 2048));
  EXPECT_EQ(active_parameter_count(model, 2048), active_parameter_count(imported->model, 2048));
  EXPECT_EQ(model.sliding_window, imported->model.sliding_window);
  EXPECT_EQ(model.full_attention_every, imported->model.full_attention_every);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, CatalogModels,
                         ::testing::Values(SameModel{"llama-3.1-8b", "Meta-Llama-3.1-8B.json"},
                                           SameModel{"llama-3.1-70b", "Meta-Llama-3.1-70B.json"},
                                           SameModel{"llama-3.1-405b", "Meta-Llama-3.1-405B.json"},
                                           SameModel{"mixtral-8x7b", "Mixtral-8x7B-v0.1.json"},
                                           SameModel{"mixtral-8x22b", "Mixtral-8x22B-v0.1.json"},
                                           SameModel{"deepseek-v3", "DeepSeek-V3.json"},
                                           SameModel{"qwen3-32b", "Qwen3-32B.json"},
                                           SameModel{"qwen3-235b-a22b", "Qwen3-235B-A22B.json"},
                                           SameModel{"gpt-oss-20b", "gpt-oss-20b.json"}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace trainyard
