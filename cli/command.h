// What the subcommands share: how one is added to the program, options that several have, how an
// answer or an error is printed, and the exit statuses.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/units.h"

namespace trainyard {

enum class BackendKind : std::uint8_t;

// Exit statuses.
inline constexpr int kDone = 0;
// for example no plan fits; the answer is printed all the same
inline constexpr int kAnswerIsNo = 1;
inline constexpr int kBadInput = 2;       // one line on stderr, nothing written
inline constexpr int kMachineFailed = 3;  // a full disk, no memory
// stopped by a signal or a limit with nothing to show, or not verified
inline constexpr int kInterrupted = 130;

enum class Format { text, json, csv };

// The work that the command line selected; returns the exit status. A subcommand's callback sets
// it, and it runs after parsing, so that errors of parsing and of the work never mix.
using Action = std::function<int()>;

void add_estimate(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_fit(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_program(CLI::App& app, Action& action);
void add_goodput(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);

// Adds the scenario document as argument; without a plan in it, the planner finds one.
void add_scenario(CLI::App& command, std::filesystem::path& file);
// Adds `--format text|json|csv`.
void add_format(CLI::App& command, Format& format);
// Adds `--backend cpu|cuda`; `what` is its help.
void add_backend(CLI::App& command, BackendKind& backend, const std::string& what);
// Checks an option's text: finite seconds above 0; empty: it is right. CLI11's PositiveNumber lets
// "nan" through, and prints the largest double as its bound.
std::string positive_seconds(const std::string& text);
// Checks an option's text: a file name to write to; empty: it is right.
std::string names_a_file(const std::string& text);
// Checks an option's text: a whole number from `least` to `most`.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
// Checks an option's text: one of these names.
CLI::Validator one_name_of(const std::vector<std::string>& names);
// The error for an option's text that is not among the allowed ones.
std::string not_among(const std::string& text, const std::vector<std::string>& allowed);
// The names that a map has values for.
template <typename Value>
std::vector<std::string> names_in(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}
// Turns an option's text from a name into the number of its value. CLI11's CheckedTransformer would
// also take the numbers themselves, and list them.
template <typename Value>
CLI::Validator one_of(const std::map<std::string, Value>& values) {
  const auto number_of = [values](std::string& text) -> std::string {
    const auto found = values.find(text);
    if (found == values.end()) return not_among(text, names_in(values));
    text = std::to_string(static_cast<int>(found->second));
    return "";
  };
  return {number_of, ""};
}
// Adds an example to the footer of a subcommand's help.
void add_example(CLI::App& command, std::string_view example);

// Writes `text` to stdout; returns `status`, or kMachineFailed if that fails.
int print(std::string_view text, int status);
// Writes the error to stderr in one line; returns `status`.
int fail(const Error& error, int status = kBadInput);
// Checks before the work, whose result would else be lost, that `file` can be written and is not
// one of the `inputs`. An empty name passes: nothing is written then.
Expected<void> check_output(const std::filesystem::path& file,
                            const std::vector<std::filesystem::path>& inputs = {});
// Time since the program was started.
Seconds elapsed();
// The same error, with the name of the document before its place.
Error in_file(const std::filesystem::path& file, Error error);

}  // namespace trainyard
