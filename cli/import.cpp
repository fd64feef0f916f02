// trainyard import KIND FILE -o OUT.json
#include <fmt/format.h>

#include <memory>
#include <span>

#include "cli/command.h"
#include "cli/provenance_date.h"
#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/style.h"
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
#include "scenarios/write/model.h"

namespace trainyard {
namespace {

// Parameters do not depend on the sequence length unless positions are learned, which no imported
// network has.
constexpr std::int64_t kAnySequence = 1;

struct ImportOptions {
  std::filesystem::path file;
  std::filesystem::path out;
  std::string device;
  ImportSettings settings;
  Format format = Format::text;
};

struct Answer {
  Imported imported;
  std::vector<CsvRow> rows;  // beside the notes
};

struct ImportKind {
  std::string_view name, what, file, example;
  Expected<Answer> (*read)(const ImportOptions& options);
  enum class Takes { nothing, device, machines } takes = Takes::nothing;
};
using Takes = ImportKind::Takes;

std::string model_summary(const Transformer& model) {
  return fmt::format(
      "{} parameters, {} active · {} layers · {} wide · {} heads, {} KV heads · vocabulary {}",
      short_scale(parameter_count(model, kAnySequence)),
      short_scale(active_parameter_count(model, kAnySequence)), model.layers,
      count(model.hidden_size), model.attention_heads, model.kv_heads, count(model.vocabulary));
}

std::vector<CsvRow> model_rows(const Transformer& model) {
  const auto whole = [](std::int64_t value) { return fmt::format("{}", value); };
  return {{{"name", model.name},
           {"parameters", csv_number(parameter_count(model, kAnySequence))},
           {"active_parameters", csv_number(active_parameter_count(model, kAnySequence))},
           {"layers", whole(model.layers)},
           {"hidden_size", whole(model.hidden_size)},
           {"attention_heads", whole(model.attention_heads)},
           {"kv_heads", whole(model.kv_heads)},
           {"vocabulary", whole(model.vocabulary)},
           {"experts", whole(model.experts)}}};
}

Expected<Answer> huggingface(const ImportOptions& options) {
  auto read = read_huggingface(options.file);
  if (!read) return tl::unexpected(read.error());
  return Answer{{model_document(read->model, options.file.string()),
                 fmt::format("{}: {}", read->model.name, model_summary(read->model)),
                 std::move(read->assumptions),
                 {}},
                model_rows(read->model)};
}

Expected<Answer> noted(Expected<Imported> imported) {
  if (!imported) return tl::unexpected(imported.error());
  Answer answer{*std::move(imported), {}};
  const auto note = [&](std::string_view kind, const std::string& text) {
    answer.rows.push_back({{"note", std::string(kind)}, {"text", text}});
  };
  note("summary", answer.imported.summary);
  for (const std::string& line : answer.imported.assumptions) note("assumed", line);
  for (const std::string& line : answer.imported.ignored) note("ignored", line);
  return answer;
}

Expected<Answer> nccl_topology(const ImportOptions& options) {
  return noted(import_nccl_topology(options.file, options.device));
}

Expected<Answer> nvidia_smi(const ImportOptions& options) {
  return noted(import_nvidia_smi(options.file, options.device));
}

Expected<Answer> nccl_tests(const ImportOptions& options) {
  const auto file = read_foreign_file(options.file);
  if (!file) return tl::unexpected(file.error());
  return noted(import_nccl_tests(*file, options.device, provenance_date("")));
}

Expected<Answer> kineto(const ImportOptions& options) {
  const auto file = read_foreign_file(options.file, kLargestTrace);
  if (!file) return tl::unexpected(file.error());
  return noted(import_kineto(*file));
}

// A file of a training framework, and what the user adds to it.
template <Expected<Imported> (*import)(const ForeignFile&, const ImportSettings&)>
Expected<Answer> framework(const ImportOptions& options) {
  const auto file = read_foreign_file(options.file);
  if (!file) return tl::unexpected(file.error());
  return noted(import(*file, options.settings));
}

constexpr std::array kImportKinds = {
    ImportKind{"huggingface", "a model document from a config.json", "config.json of a decoder",
               "trainyard import huggingface config.json -o model.json", huggingface},
    ImportKind{"megatron", "a scenario from Megatron-LM's arguments",
               "a command line, a script that has it, or YAML",
               "trainyard import megatron pretrain.sh --node dgx-h100-80gb --nodes 4 -o run.json",
               framework<import_megatron>, Takes::machines},
    ImportKind{"deepspeed", "a scenario from DeepSpeed's JSON", "ds_config.json",
               "trainyard import deepspeed ds_config.json --model llama-3.1-8b -o run.json",
               framework<import_deepspeed>, Takes::machines},
    ImportKind{"torchtitan", "a scenario from torchtitan's TOML", "its job configuration",
               "trainyard import torchtitan llama3_8b.toml --nodes 8 -o run.json",
               framework<import_torchtitan>, Takes::machines},
    ImportKind{"fsdp", "a scenario from Accelerate's YAML for FSDP", "accelerate's configuration",
               "trainyard import fsdp fsdp.yaml --model llama-3.1-8b -o run.json",
               framework<import_fsdp>, Takes::machines},
    ImportKind{"nccl-topology", "a node document from an NCCL topology",
               "XML that NCCL_TOPO_DUMP_FILE wrote, or an NCCL_TOPO_FILE",
               "trainyard import nccl-topology topo.xml -o node.json", nccl_topology,
               Takes::device},
    ImportKind{"nvidia-smi", "a node document from the matrix of `nvidia-smi topo -m`",
               "its output", "trainyard import nvidia-smi topo.txt -o node.json", nvidia_smi,
               Takes::device},
    ImportKind{"nccl-tests", "a device document with curves fitted to what nccl-tests prints",
               "output of all_reduce_perf and its sisters inside one node",
               "trainyard import nccl-tests all_reduce.txt -o device.json", nccl_tests,
               Takes::device},
    ImportKind{"kineto", "a profile document from a trace of the PyTorch profiler", "its JSON",
               "trainyard import kineto trace.json -o profile.json", kineto},
};

std::string text_of(const ImportOptions& options, const Imported& imported, const Style& style) {
  std::string text = imported.summary + "\n";
  for (const std::string& line : imported.assumptions) {
    text += style.faint("assumed  ") + wrap(line, 9);
  }
  for (const std::string& line : imported.ignored) {
    text += style.faint("ignored  ") + wrap(line, 9);
  }
  return text + fmt::format("written to {}\n", options.out.string());
}

int run(const ImportKind& kind, const ImportOptions& options) {
  if (const auto writable = check_output(options.out, {options.file}); !writable) {
    return fail(writable.error());
  }
  const auto answer = kind.read(options);
  if (!answer) return fail(answer.error());
  const Imported& imported = answer->imported;
  if (const auto written = write_file(options.out, imported.document); !written) {
    return fail(written.error(), kMachineFailed);
  }
  switch (options.format) {
    case Format::json:
      return print(imported.document, kDone);
    case Format::csv:
      return print(csv_text(answer->rows), kDone);
    case Format::text:
      break;
  }
  return print(text_of(options, imported, style_for(stdout)), kDone);
}

void add_machines(CLI::App& command, ImportSettings& settings) {
  command.add_option("--node", settings.node, "the machines: a catalog name or a path")
      ->type_name("NAME");
  command.add_option("--nodes", settings.nodes, "how many; else what the file launches")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command.add_option("--model", settings.model, "the network: a catalog name or a path")
      ->type_name("NAME");
  command.add_option("--sequence", settings.sequence_length, "tokens of a sequence")
      ->check(whole_number(1, 100'000'000))
      ->type_name("TOKENS");
}

void add_kind(CLI::App& parent, Action& action, const ImportKind& kind) {
  CLI::App* command = parent.add_subcommand(std::string(kind.name), std::string(kind.what));
  auto options = std::make_shared<ImportOptions>();
  command->add_option("FILE", options->file, std::string(kind.file))->required();
  command->add_option("-o,--out", options->out, "the document to write")
      ->required()
      ->check(names_a_file)
      ->type_name("OUT.json");
  if (kind.takes == Takes::device) {
    command
        ->add_option("--device", options->device,
                     "the device: a catalog name or a path; else what the file suggests")
        ->type_name("NAME");
  }
  if (kind.takes == Takes::machines) add_machines(*command, options->settings);
  add_format(*command, options->format);
  add_example(*command, kind.example);
  command->callback(
      [&action, &kind, options] { action = [&kind, options] { return run(kind, *options); }; });
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("import", "documents from other tools' files");
  command->require_subcommand(1);
  add_example(*command, kImportKinds.front().example);
  for (const ImportKind& kind : kImportKinds) add_kind(*command, action, kind);
}

}  // namespace trainyard
