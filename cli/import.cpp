// trainyard import huggingface FILE -o OUT.json
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/style.h"
#include "cli/text.h"
#include "scenarios/huggingface.h"
#include "scenarios/output.h"

namespace trainyard {
namespace {

// Parameters do not depend on it unless positions are learned, which no imported model has.
constexpr std::int64_t kAnySequence = 1;

struct ImportOptions {
  std::filesystem::path file;
  std::filesystem::path out;
  Format format = Format::text;
};

std::string summary(const ImportOptions& options, const ImportedModel& imported,
                    const Style& style) {
  const Transformer& model = imported.model;
  std::string text = fmt::format(
      "{}: {} parameters, {} active · {} layers · {} wide · {} heads, {} KV heads · vocabulary "
      "{}\n",
      style.strong(model.name), short_scale(parameter_count(model, kAnySequence)),
      short_scale(active_parameter_count(model, kAnySequence)), model.layers,
      count(model.hidden_size), model.attention_heads, model.kv_heads, count(model.vocabulary));
  for (const std::string& assumption : imported.assumptions) {
    text += style.faint("assumed  ") + wrap(assumption, 9);
  }
  return text + fmt::format("written to {}\n", options.out.string());
}

std::string csv_of(const Transformer& model) {
  const auto whole = [](std::int64_t value) { return fmt::format("{}", value); };
  return csv_text({{{"name", model.name},
                    {"parameters", csv_number(parameter_count(model, kAnySequence))},
                    {"active_parameters", csv_number(active_parameter_count(model, kAnySequence))},
                    {"layers", whole(model.layers)},
                    {"hidden_size", whole(model.hidden_size)},
                    {"attention_heads", whole(model.attention_heads)},
                    {"kv_heads", whole(model.kv_heads)},
                    {"vocabulary", whole(model.vocabulary)},
                    {"experts", whole(model.experts)}}});
}

int run(const ImportOptions& options) {
  const auto imported = read_huggingface(options.file);
  if (!imported) {
    return fail(imported.error());
  }
  const std::string document = model_document(imported->model, options.file.string());
  if (const auto written = write_file(options.out, document); !written) {
    return fail(written.error(), kMachineFailed);
  }
  switch (options.format) {
    case Format::json:
      return print(document, kDone);
    case Format::csv:
      return print(csv_of(imported->model), kDone);
    case Format::text:
      break;
  }
  return print(summary(options, *imported, style_for(stdout)), kDone);
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("import", "documents from other tools' files");
  command->require_subcommand(1);
  add_example(*command, "trainyard import huggingface config.json -o model.json");
  CLI::App* huggingface =
      command->add_subcommand("huggingface", "a model document from a config.json");
  auto options = std::make_shared<ImportOptions>();
  huggingface->add_option("FILE", options->file, "config.json of a decoder")->required();
  huggingface->add_option("-o,--out", options->out, "the model document to write")
      ->required()
      ->type_name("OUT.json");
  add_format(*huggingface, options->format);
  add_example(*huggingface, "trainyard import huggingface config.json -o model.json");
  huggingface->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
