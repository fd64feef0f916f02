#include "tests/fuzz/readers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "executor/token_file.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/huggingface.h"
#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/hardware/nccl_tests.h"
#include "scenarios/interchange/hardware/nccl_topology.h"
#include "scenarios/interchange/hardware/nvidia_smi.h"
#include "scenarios/interchange/kineto.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"
#include "scenarios/json/output_file.h"
#include "scenarios/kernels/tables.h"
#include "scenarios/machine/fabric_document.h"
#include "scenarios/scenario.h"
#include "scenarios/sweep/report/html.h"
#include "scenarios/sweep/report/json.h"
#include "scenarios/sweep/results/difference.h"
#include "scenarios/sweep/sweep.h"
#include "scenarios/write/profile.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// A refusal must be one non-empty line.
void check_line(const Error& error) {
  const bool whole = !error.message.empty() && error.message.find('\n') == std::string::npos &&
                     error.where.find('\n') == std::string::npos && error.message.size() < 2000;
  if (!whole) std::abort();
}

template <typename T>
bool check_answer(const Expected<T>& answer) {
  if (!answer) check_line(answer.error());
  return answer.has_value();
}

bool check_scenario(const Expected<Imported>& imported) {
  if (imported && !parse_scenario(imported->document, "again")) std::abort();
  return check_answer(imported);
}

ForeignFile fuzzed(const std::string& text) { return {"fuzz", "fuzz", text}; }

// Reads a document of a kind that has a file of its own from its text. check_document writes what
// was read and reads it again.
template <typename S>
Expected<S> document_of(const Section<S>& section, const std::string& text) {
  auto value = parse_json(text);
  if (!value) return tl::unexpected(value.error());
  const Document document{.name = "fuzz"};
  const Place place{&document, ""};
  S target;
  const auto read = take_tag(*value, section.spec().name, place)
                        .and_then([&] { return check(section.spec(), *value, place); })
                        .and_then([&] { return section.read(*value, target, place); });
  return read ? Expected<S>(std::move(target)) : tl::unexpected(read.error());
}

template <typename S>
bool check_document(const Section<S>& section, const std::string& text) {
  const auto read = document_of(section, text);
  if (!check_answer(read)) return false;
  Json again = section.write(*read);
  again["trainyard"] = fmt::format("{}/1", section.spec().name);
  if (!document_of(section, again.dump())) std::abort();
  return true;
}

// The text as a file, for readers that open one. The file is deleted with the value.
class OutsideFile {
 public:
  OutsideFile(const std::string& text, std::string_view name)
      : path_(fs::temp_directory_path() / fmt::format("trainyard_fuzz.{}.{}", ::getpid(), name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  OutsideFile(const OutsideFile&) = delete;
  OutsideFile& operator=(const OutsideFile&) = delete;
  ~OutsideFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <typename Write>
void check_report(const fs::path& results, const Write& write) {
  auto report = SweepReport::open(results);
  if (!report) return check_line(report.error());
  const OutsideFile page("", "page");
  auto out = OutputFile::open(page.path());
  if (!out) std::abort();
  const auto written = write(**report, *out);
  if (!written) check_line(written.error());
}

}  // namespace

bool scenario_reader(const std::string& text) { return check_answer(parse_scenario(text, "fuzz")); }
bool model_reader(const std::string& text) { return check_document(model_section(), text); }
bool device_reader(const std::string& text) { return check_document(device_section(), text); }
bool node_reader(const std::string& text) { return check_document(node_section(), text); }
bool fabric_reader(const std::string& text) { return check_document(fabric_section(), text); }
bool stack_reader(const std::string& text) { return check_document(stack_section(), text); }

bool passes_reader(const std::string& text) {
  const auto table = document_of(passes_section(), text);
  if (!check_answer(table)) return false;
  const Document document{.name = "fuzz"};
  return check_answer(schedule_of(*table, {&document, ""}));
}

bool profile_reader(const std::string& text) {
  const OutsideFile file(text, "profile.json");
  const auto profile = read_profile(file.path());
  if (!check_answer(profile)) return false;
  const OutsideFile again(profile_document(*profile), "profile.json");
  if (!read_profile(again.path())) std::abort();
  return true;
}

bool sweep_reader(const std::string& text) {
  return check_answer(sweep_of_text(text, "", "fuzz.json"));
}

bool validation_reader(const std::string& text) {
  const OutsideFile file(text, "validation.json");
  return check_answer(read_scenarios(file.path()));
}

bool huggingface_reader(const std::string& text) {
  return check_answer(parse_huggingface(text, "fuzz"));
}
bool nccl_topology_reader(const std::string& text) {
  return check_answer(nccl_topology_node(fuzzed(text), std::nullopt));
}
bool nvidia_smi_reader(const std::string& text) {
  return check_answer(nvidia_smi_node(fuzzed(text), std::nullopt));
}
bool megatron_reader(const std::string& text) {
  return check_scenario(import_megatron(fuzzed(text), {}));
}
bool deepspeed_reader(const std::string& text) {
  return check_scenario(import_deepspeed(fuzzed(text), {.model = "llama-3.1-8b"}));
}
bool torchtitan_reader(const std::string& text) {
  return check_scenario(import_torchtitan(fuzzed(text), {}));
}
bool fsdp_reader(const std::string& text) {
  return check_scenario(import_fsdp(fuzzed(text), {.model = "llama-3.1-8b"}));
}
bool nccl_tests_reader(const std::string& text) {
  return check_answer(read_nccl_tests(fuzzed(text)));
}
bool kineto_reader(const std::string& text) { return check_answer(import_kineto(fuzzed(text))); }

bool kernel_table_reader(const std::string& text) {
  return check_answer(parse_kernel_table(text, "fuzz.csv"));
}

bool fabric_rows_reader(const std::string& text) {
  const OutsideFile file(text, "rows.json");
  return check_answer(read_fabric_rows(file.path(), "a paper"));
}

bool overrides_reader(const std::string& text) {
  static const std::string kSweep = R"({"trainyard": "sweep/1", "overrides": "fuzz.csv",
      "scenario": {"model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
                   "training": {"global_batch": 8, "sequence_length": 2048},
                   "plan": {"tensor_parallel": 2}}})";
  return check_answer(sweep_of_text(kSweep, text, "fuzz.json"));
}

bool results_reader(const std::string& text) {
  const OutsideFile file(text, "results.sqlite");
  const bool opened = check_answer(SweepReport::open(file.path()));
  check_report(file.path(), write_report_html);
  check_report(file.path(), write_report_json);
  check_answer(difference_of(file.path(), file.path()));
  return opened;
}

bool tokens_reader(const std::string& text) {
  const OutsideFile file(text, "tokens.bin");
  return check_answer(read_tokens(file.path(), 1000, 1 << 20));
}

}  // namespace trainyard
