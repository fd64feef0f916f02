// trainyard fit KERNELS.csv… --device NAME -o DEVICE.json · fit --check KERNELS.csv… --device NAME
// trainyard fit RUNS.json… --stack NAME -o STACK.json
// trainyard fit COLLECTIVES.json --fabric NAME -o FABRIC.json · fit --check … --fabric NAME
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/fit/fabric_fit.h"
#include "cli/fit/stack_fit.h"
#include "cli/progress.h"
#include "cli/provenance_date.h"
#include "cli/text/kernels.h"
#include "scenarios/json/output_file.h"
#include "scenarios/kernels/limits.h"
#include "scenarios/kernels/report.h"
#include "scenarios/machine/device_document.h"

namespace trainyard {
namespace {

struct FitOptions {
  std::vector<std::filesystem::path> files;
  std::string device;
  std::string stack;
  std::string fabric;
  std::filesystem::path out;
  std::filesystem::path plot;
  std::string date;
  bool check = false;
  Format format = Format::text;
};

Expected<std::vector<KernelTable>> read_tables(const std::vector<std::filesystem::path>& files,
                                               const Device& device) {
  std::vector<KernelTable> tables;
  const RowCheck check = [&device](const KernelTable& table) { return check_rows(device, table); };
  for (const std::filesystem::path& file : files) {
    auto table = read_kernel_table(file, check);
    if (!table) return tl::unexpected(std::move(table.error()));
    // The rows of a table given twice would count twice.
    const auto same = std::ranges::find(tables, table->digest, &KernelTable::digest);
    if (same != tables.end()) {
      return failure(table->file,
                     fmt::format("found the rows of {}; allowed: every table once", same->file));
    }
    tables.push_back(*std::move(table));
  }
  return tables;
}

int write_plot(const FitOptions& options, std::string_view device,
               const std::vector<KernelFileReport>& files) {
  if (options.plot.empty()) return kDone;
  const auto written = write_file(options.plot, svg_of(residual_chart(device, files)));
  return written ? kDone : fail(written.error(), kMachineFailed);
}

int run_check(const FitOptions& options, const DeviceDocument& document,
              const std::vector<KernelTable>& tables) {
  const auto files = check_kernels(document.device, tables);
  if (!files) return fail(files.error());
  if (const int status = write_plot(options, document.device.name, *files); status != kDone) {
    return status;
  }
  switch (options.format) {
    case Format::json:
      return print(kernel_check_json(options.device, *files), kDone);
    case Format::csv:
      return print(kernels_csv(*files), kDone);
    case Format::text:
      break;
  }
  return print(kernels_text(*files, style_for(stdout)), kDone);
}

int run_fit(const FitOptions& options, const DeviceDocument& document,
            const std::vector<KernelTable>& tables) {
  auto fit = [&] {
    Progress progress("fitting");
    return fit_kernels(document.device, tables, provenance_date(options.date),
                       [&progress](double fraction) { progress.show(fraction); });
  }();
  if (!fit) return fail(fit.error());
  const std::string text = device_document(fit->device, document, fit->provenance);
  if (const auto reads = check_device_document(text, options.out); !reads) {
    return fail(reads.error());
  }
  if (const auto written = write_file(options.out, text); !written) {
    return fail(written.error(), kMachineFailed);
  }
  if (const int status = write_plot(options, document.device.name, fit->files); status != kDone) {
    return status;
  }
  switch (options.format) {
    case Format::json:
      return print(kernel_fit_json(options.device, *fit), kDone);
    case Format::csv:
      return print(kernels_csv(fit->cross_validated), kDone);
    case Format::text:
      break;
  }
  return print(kernel_fit_text(fit->files, fit->cross_validated, options.out, style_for(stdout)),
               kDone);
}

// Why the options do not go together; empty: they do.
std::string misuse(const FitOptions& options) {
  const int wanted = static_cast<int>(!options.device.empty()) +
                     static_cast<int>(!options.stack.empty()) +
                     static_cast<int>(!options.fabric.empty());
  if (wanted != 1) {
    return fmt::format("found {} of --device, --stack and --fabric; allowed: one of them", wanted);
  }
  if (options.check && !options.stack.empty()) {
    return "found --check with --stack; allowed: trainyard validate scores stacks";
  }
  if (!options.plot.empty() && options.device.empty()) {
    return "found --plot without --device; allowed: --plot with --device";
  }
  if (!options.fabric.empty() && options.files.size() != 1) {
    return fmt::format("found {} files with --fabric; allowed: one", options.files.size());
  }
  if (!options.plot.empty() && options.plot == options.out) {
    return fmt::format("found {} as -o and as --plot; allowed: a file each", options.out.string());
  }
  if (options.check != options.out.empty()) {
    return fmt::format("found {} -o and --check; allowed: one of them",
                       options.check ? "both" : "neither");
  }
  return "";
}

int run(const FitOptions& options) {
  if (const std::string found = misuse(options); !found.empty()) {
    return fail({"command line", found});
  }
  for (const std::filesystem::path& file : {options.out, options.plot}) {
    if (const auto writable = check_output(file, options.files); !writable) {
      return fail(writable.error());
    }
  }
  if (!options.stack.empty()) {
    return fit_stack_document(
        {options.files, options.stack, options.out, provenance_date(options.date), options.format});
  }
  if (!options.fabric.empty()) {
    return fit_or_check_fabric({options.files.front(), options.fabric, options.out,
                                provenance_date(options.date), options.format});
  }
  const auto document = read_device(options.device, "--device");
  if (!document) return fail(document.error());
  const auto tables = read_tables(options.files, document->device);
  if (!tables) return fail(tables.error());
  return options.check ? run_check(options, *document, *tables)
                       : run_fit(options, *document, *tables);
}

}  // namespace

void add_fit(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("fit",
                                         "a device's rates from measured kernels, a fabric's from "
                                         "collectives, their error, or a stack "
                                         "from measured runs");
  auto options = std::make_shared<FitOptions>();
  command
      ->add_option("FILE", options->files,
                   "tables of measured kernels (CSV); with --stack: arrays of measured scenarios; "
                   "with --fabric: measured collectives across nodes (JSON)")
      ->required();
  command
      ->add_option("--device", options->device,
                   "the device to start from or to check: a catalog name or a path")
      ->type_name("NAME");
  command
      ->add_option("--stack", options->stack, "the stack to start from: a catalog name or a path")
      ->type_name("NAME");
  command
      ->add_option("--fabric", options->fabric,
                   "the fabric to start from or to check: a catalog name or a path")
      ->type_name("NAME");
  command->add_option("-o,--out", options->out, "the fitted document")
      ->check(names_a_file)
      ->type_name("OUT.json");
  command->add_flag("--check", options->check, "score the stored parameters, fit nothing");
  command->add_option("--plot", options->plot, "residuals as a chart")
      ->check(names_a_file)
      ->type_name("FILE.svg");
  command
      ->add_option("--date", options->date,
                   "for the provenance; else SOURCE_DATE_EPOCH, else today")
      ->type_name("YYYY-MM-DD")
      ->check(names_a_day);
  add_format(*command, options->format);
  add_example(*command,
              "trainyard fit --check ../shared/measured/kernels/h100_sxm_gemm.csv --device "
              "h100-sxm-80gb");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
