// trainyard export KIND SCENARIO -o DIR
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/planner_run.h"
#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/style.h"
#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"
#include "scenarios/json/output_file.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

struct ExportOptions {
  std::filesystem::path scenario;
  std::filesystem::path out;
  Format format = Format::text;
};

struct ExportKind {
  std::string_view name, what, target, example;
  Expected<Exported> (*write)(const Scenario& scenario, const Plan& plan);
};

constexpr std::array kExportKinds = {
    ExportKind{"megatron", "Megatron-LM arguments", "Megatron-LM", "gpt3-175b-1024-a100",
               export_megatron},
    ExportKind{"deepspeed", "DeepSpeed JSON", "DeepSpeed", "llama-3.1-8b-by-deepspeed",
               export_deepspeed},
    ExportKind{"torchtitan", "torchtitan TOML", "torchtitan", "llama-3.1-70b-by-torchtitan",
               export_torchtitan},
    ExportKind{"fsdp", "Accelerate YAML for FSDP and DDP", "Accelerate",
               "llama-3.1-8b-by-accelerate", export_fsdp},
};

Expected<std::vector<std::string>> write_all(const std::filesystem::path& folder,
                                             const Exported& exported) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failure(folder.string(), "cannot be made: " + error.message());
  std::vector<std::string> names;
  for (const ExportedFile& file : exported.files) {
    const std::filesystem::path path = folder / file.name;
    if (auto done = write_file(path, file.text); !done) return tl::unexpected(done.error());
    names.push_back(path.string());
  }
  return names;
}

std::string answer(const std::vector<std::string>& names, const Exported& exported, Format format,
                   const Style& style) {
  if (format == Format::json) return exported_json(names, exported.notes);
  std::string text;
  std::vector<CsvRow> rows;
  for (const std::string& name : names) {
    rows.push_back({{"file", name}});
    text += fmt::format("written to {}\n", name);
  }
  for (const std::string& note : exported.notes) {
    text += style.faint("not said ") + wrap(note, 9);
  }
  return format == Format::csv ? csv_text(rows) : text;
}

int run(const ExportKind& kind, const ExportOptions& options) {
  const auto question = read_question(options.scenario, NodeKinds::any);
  if (!question) return fail(question.error());
  if (question->scenario.unlike) {
    return fail(
        in_file(options.scenario,
                {"/cluster/groups",
                 fmt::format("found groups of unlike nodes, whose unlike shares of layers "
                             "and micro-batches {} cannot be told; allowed: one kind of node",
                             kind.target)}));
  }
  const auto plan = plan_of(options.scenario, *question);
  if (was_interrupted()) return kInterrupted;
  if (!plan) return fail(plan.error());
  const auto exported = kind.write(question->scenario, *plan);
  if (!exported) return fail(in_file(options.scenario, exported.error()));
  const auto names = write_all(options.out, *exported);
  if (!names) return fail(names.error(), kMachineFailed);
  return print(answer(*names, *exported, options.format, style_for(stdout)), kDone);
}

void add_kind(CLI::App& parent, Action& action, const ExportKind& kind) {
  CLI::App* command = parent.add_subcommand(
      std::string(kind.name), fmt::format("{}, sbatch script and hostfile", kind.what));
  auto options = std::make_shared<ExportOptions>();
  command->add_option("SCENARIO", options->scenario, "scenario document; without a plan, the best")
      ->required();
  command->add_option("-o,--out", options->out, "the folder to write to")
      ->required()
      ->check(names_a_file)
      ->type_name("DIR");
  add_format(*command, options->format);
  add_example(*command, fmt::format("trainyard export {} scenarios/cases/{}.json -o exported",
                                    kind.name, kind.example));
  command->callback(
      [&action, &kind, options] { action = [&kind, options] { return run(kind, *options); }; });
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("export", "a plan as another tool's configuration");
  command->require_subcommand(1);
  add_example(*command,
              "trainyard export megatron scenarios/cases/gpt3-175b-1024-a100.json -o exported");
  for (const ExportKind& kind : kExportKinds) add_kind(*command, action, kind);
}

}  // namespace trainyard
