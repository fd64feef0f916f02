#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <system_error>

#include "executor/backend.h"
#include "executor/host/standard_error.h"
#include "scenarios/json/output_file.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kStart = Clock::now();

}  // namespace

void add_scenario(CLI::App& command, std::filesystem::path& file) {
  command.add_option("SCENARIO", file, "scenario document; without `plan` the best is found")
      ->required();
}

void add_format(CLI::App& command, Format& format) {
  static const std::map<std::string, Format> kFormats = {
      {"text", Format::text}, {"json", Format::json}, {"csv", Format::csv}};
  command
      .add_option_function<std::string>(
          "--format", [&format](const std::string& name) { format = kFormats.at(name); },
          "text for people, json (SI units, stable keys), csv")
      ->check(one_name_of({"text", "json", "csv"}))
      ->option_text("text|json|csv=text");
}

void add_backend(CLI::App& command, BackendKind& backend, const std::string& what) {
  command
      .add_option_function<std::string>(
          "--backend",
          [&backend](const std::string& name) {
            backend = name == name_of(BackendKind::cuda) ? BackendKind::cuda : BackendKind::cpu;
          },
          what)
      ->check(one_name_of({"cpu", "cuda"}))
      ->option_text("cpu|cuda=cpu");
}

void add_example(CLI::App& command, std::string_view example) {
  command.footer(fmt::format("Example:\n  {}", example));
}

int print(std::string_view text, int status) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return fail({"stdout", "cannot be written"}, kMachineFailed);
  }
  return status;
}

std::string positive_seconds(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const bool is_number = std::from_chars(text.data(), end, seconds).ptr == end;
  if (is_number && seconds > 0 && std::isfinite(seconds)) return {};
  return fmt::format("found \"{}\", allowed seconds above 0", text);
}

std::string not_among(const std::string& text, const std::vector<std::string>& allowed) {
  return fmt::format("found \"{}\"; allowed: {}", text, fmt::join(allowed, ", "));
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, wrong] = std::from_chars(text.data(), end, number);
    const bool is_number = wrong == std::errc() && rest == end;
    if (is_number && number >= least && number <= most) return "";
    return fmt::format("found \"{}\", allowed whole numbers {} to {}", text, least, most);
  };
  return {check, ""};
}

CLI::Validator one_name_of(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& text) -> std::string {
    return std::ranges::count(names, text) > 0 ? "" : not_among(text, names);
  };
  return {check, ""};
}

std::string names_a_file(const std::string& text) {
  return text.empty() ? "found \"\", allowed the name of a file" : "";
}

int fail(const Error& error, int status) {
  std::string line =
      error.where.empty() ? error.message : fmt::format("{}: {}", error.where, error.message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  to_stderr(fmt::format("trainyard: {}\n", line));
  return status;
}

Expected<void> check_output(const std::filesystem::path& file,
                            const std::vector<std::filesystem::path>& inputs) {
  if (file.empty()) return {};
  std::error_code ignored;
  for (const std::filesystem::path& input : inputs) {
    if (std::filesystem::is_regular_file(file, ignored) &&
        std::filesystem::equivalent(file, input, ignored)) {
      return failure(file.string(), "found a file that is read; allowed: another one");
    }
  }
  return check_writable(file);
}

Seconds elapsed() { return Seconds(std::chrono::duration<double>(Clock::now() - kStart).count()); }

Error in_file(const std::filesystem::path& file, Error error) {
  return {fmt::format("{}: {}", file.string(), error.where), std::move(error.message)};
}

}  // namespace trainyard
