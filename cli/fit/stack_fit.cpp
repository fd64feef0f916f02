#include "cli/fit/stack_fit.h"

#include <fmt/format.h>

#include "cli/progress.h"
#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "scenarios/json/output_file.h"
#include "scenarios/machine/stack_document.h"

namespace trainyard {
namespace {

std::string parameters_text(const StackFit& fit, const Style& style) {
  Table table({{"parameter", "", Align::left}, {"value", "SI"}, {"decided by", "", Align::left}});
  for (const FittedParameter& parameter : fit.parameters) {
    table.add_row({std::string(parameter.name), fmt::format("{:.4g}", parameter.value),
                   parameter.determined ? "runs" : "prior"});
  }
  return table.render(style);
}

std::string errors_text(const std::vector<SourceError>& sources, const Style& style) {
  Table table({{"source", "", Align::left}, {"rows", ""}, {"MAPE", "%"}});
  for (const SourceError& source : sources) {
    table.add_row({source.source, std::to_string(source.rows), percent(source.mape)});
  }
  return table.render(style);
}

std::string csv_of(const StackFit& fit) {
  std::vector<CsvRow> rows;
  for (const FittedParameter& parameter : fit.parameters) {
    rows.push_back({{"parameter", std::string(parameter.name)},
                    {"value", csv_number(parameter.value)},
                    {"determined", parameter.determined ? "true" : "false"}});
  }
  return csv_text(rows);
}

std::string text_of(const StackFitRequest& request, const Stack& stack,
                    const std::vector<MeasuredRun>& runs, const StackFit& fit) {
  switch (request.format) {
    case Format::json:
      return stack_fit_json(stack, runs, fit);
    case Format::csv:
      return csv_of(fit);
    case Format::text:
      break;
  }
  const Style style = style_for(stdout);
  return fmt::format("{}\n{}\n{}\nwritten to {}\n", style.strong(stack.name),
                     parameters_text(fit, style), errors_text(errors_by_source(runs, fit), style),
                     request.out.string());
}

}  // namespace

int fit_stack_document(const StackFitRequest& request) {
  const auto document = read_stack(request.stack, "--stack");
  if (!document) return fail(document.error());
  const auto runs = runs_on(document->stack, request.files);
  if (!runs) return fail(runs.error());
  const StackFit fit = [&] {
    Progress progress("fitting");
    return fit_stack(*runs);
  }();
  const std::string text = stack_document(*document, *runs, fit, request.date);
  if (const auto reads = check_stack_document(text, request.out); !reads) {
    return fail(reads.error());
  }
  if (const auto written = write_file(request.out, text); !written) {
    return fail(written.error(), kMachineFailed);
  }
  return print(text_of(request, document->stack, *runs, fit), kDone);
}

}  // namespace trainyard
