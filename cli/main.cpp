// The command `trainyard`: chooses the subcommand, runs it, and turns whatever happens into an exit
// status (design §4).
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/text/layout/columns.h"

namespace trainyard {
namespace {

// A build of the executor alone (TRAINYARD_ONLY), made for bare machines, has only the commands
// that run and measure.
void add_commands(CLI::App& app, Action& action) {
#ifndef TRAINYARD_ONLY_EXECUTOR
  add_estimate(app, action);
  add_plan(app, action);
  add_validate(app, action);
  add_fit(app, action);
  add_import(app, action);
  add_export(app, action);
  add_schema(app, action);
  add_program(app, action);
  add_goodput(app, action);
  add_simulate(app, action);
  add_compare(app, action);
  add_sweep(app, action);
  add_report(app, action);
  add_diff(app, action);
#endif
  add_run(app, action);
  add_calibrate(app, action);
}

// The error for a word where a subcommand should stand, of which CLI11 only says that one is
// missing; empty: there is no such word.
std::string unknown_subcommand(const CLI::App& app) {
  const CLI::App* where = &app;
  while (!where->get_subcommands().empty()) where = where->get_subcommands().front();
  const std::vector<std::string> words = app.remaining(true);
  std::vector<std::string> allowed;
  for (const CLI::App* known : where->get_subcommands([](const CLI::App*) { return true; })) {
    allowed.push_back(known->get_name());
  }
  return words.empty() || allowed.empty() ? "" : not_among(words.front(), allowed);
}

// Opens /dev/null as stderr if it is closed: otherwise the next file that is opened would take its
// number, and messages would be written into that file.
void keep_stderr_apart() {
  if (::fcntl(STDERR_FILENO, F_GETFD) != -1) return;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere < 0 || nowhere == STDERR_FILENO) return;
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Plans the training of large models: how to split it, how long a step takes, whether "
      "it fits,\nwhat it costs.");
  app.name("trainyard");
  app.set_version_flag("--version", std::string(TRAINYARD_VERSION));
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  app.footer(
      "Exit status: 0 done, 1 the answer is no (does not fit), 2 bad input, 3 the machine "
      "failed,\n130 interrupted with nothing to show.\nExample:\n  trainyard plan "
      "scenarios/examples/llama-3.1-405b-2048-h100.json");
  Action action;
  add_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    if (asked) return app.exit(error);
    const std::string unknown = unknown_subcommand(app);
    return fail({"command line", unknown.empty() ? error.what() : unknown});
  }
  return action();
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  trainyard::keep_stderr_apart();
  try {
    return trainyard::run(argc, argv);
  } catch (const std::bad_alloc&) {
    return trainyard::fail({"", "the answer needs more memory than this machine gives"},
                           trainyard::kMachineFailed);
  } catch (const std::exception& error) {
    return trainyard::fail({"", error.what()}, trainyard::kMachineFailed);
  }
}
