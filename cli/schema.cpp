// trainyard schema KIND
#include "scenarios/schema.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/text/csv.h"

namespace trainyard {
namespace {

struct SchemaOptions {
  std::string kind;
  Format format = Format::text;
};

// A schema is text already; as CSV it is one field.
int run(const SchemaOptions& options) {
  const auto schema = json_schema(options.kind);
  if (!schema) {
    return fail(schema.error());
  }
  if (options.format == Format::csv) {
    return print(csv_text({{{"kind", options.kind}, {"schema", *schema}}}), kDone);
  }
  return print(*schema, kDone);
}

}  // namespace

void add_schema(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("schema", "the JSON Schema of a kind of document");
  auto options = std::make_shared<SchemaOptions>();
  command->add_option("KIND", options->kind, fmt::format("{}", fmt::join(document_kinds(), ", ")))
      ->required();
  add_format(*command, options->format);
  add_example(*command, "trainyard schema scenario > scenario.schema.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
