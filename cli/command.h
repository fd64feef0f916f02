// What the subcommands share: how one is added to the program, how it answers, and the ways in
// which it ends.
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
inline constexpr int kAnswerIsNo = 1;     // does not fit; everything is printed all the same
inline constexpr int kBadInput = 2;       // one line on stderr, nothing written
inline constexpr int kMachineFailed = 3;  // a full disk, no memory
inline constexpr int kInterrupted = 130;  // with nothing to show, or nothing verified

enum class Format { text, json, csv };

// What the command line selected: returns the exit status. Set by a subcommand's callback, run
// after parsing, so that parse errors and errors of the work never mix.
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

// The document that the subcommand is about, where its plan may be left to the planner.
void add_scenario(CLI::App& command, std::filesystem::path& file);
// `--format text|json|csv`.
void add_format(CLI::App& command, Format& format);
// `--backend cpu|cuda`.
void add_backend(CLI::App& command, BackendKind& backend, const std::string& what);
// A check of an option: seconds above 0. CLI11's PositiveNumber lets "nan" through, and prints the
// largest double as its bound.
std::string positive_seconds(const std::string& text);
// A check of an option: the name of a file that is to be written.
std::string names_a_file(const std::string& text);
// What an option's text is refused with where it is none of these.
std::string not_among(const std::string& text, const std::vector<std::string>& allowed);
// A transform of an option: what a name stands for. CLI11's CheckedTransformer also takes the
// numbers behind the names, and lists them.
template <typename Value>
CLI::Validator one_of(const std::map<std::string, Value>& values) {
  const auto number_of = [values](std::string& text) -> std::string {
    const auto found = values.find(text);
    if (found == values.end()) {
      std::vector<std::string> names;
      names.reserve(values.size());
      for (const auto& [name, value] : values) names.push_back(name);
      return not_among(text, names);
    }
    text = std::to_string(static_cast<int>(found->second));
    return "";
  };
  return {number_of, ""};
}
// The footer of a subcommand's help.
void add_example(CLI::App& command, std::string_view example);

// To stdout, all of it; the status is `status` or kMachineFailed.
int print(std::string_view text, int status);
// One line on stderr; returns `status`.
int fail(const Error& error, int status = kBadInput);
// Before the work, that it may not be lost: whether `file` can be written and is none of what is
// read. Without a name nothing is written.
Expected<void> check_output(const std::filesystem::path& file,
                            const std::vector<std::filesystem::path>& inputs = {});
// Since the program was started.
Seconds elapsed();
// The error of a plan, with the document that asked for it.
Error in_file(const std::filesystem::path& file, Error error);

}  // namespace trainyard
