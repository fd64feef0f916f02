#include "cli/sweep/sweep_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "executor/host/temporary_folder.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"
#include "scenarios/write/profile.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// Becomes the program; it ends when this process ends. Does not return.
[[noreturn]] void become(std::vector<char*>& arguments, const fs::path& said) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int output = ::open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(127);
}

// Runs the program; returns its exit status.
int run_program(std::vector<std::string> words, const fs::path& said) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) become(arguments, said);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

// The last line that the program wrote, without the name of the scenario's temporary file.
std::string complaint(const fs::path& said, const fs::path& scenario) {
  std::string text = read_file(said).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  if (const auto at = text.find(scenario.string()); at != std::string::npos) {
    text.replace(at, scenario.string().size(), "the point's scenario");
  }
  return text.empty() ? "the run ended without a word" : text;
}

Expected<HardwareRun> measured_in(const fs::path& file) {
  const auto profile = read_profile(file);
  if (!profile) return tl::unexpected(profile.error());
  HardwareRun measured{.step_time = mean_step_time(*profile)};
  for (const ProfiledRank& rank : profile->ranks) {
    measured.peak_memory = std::max(measured.peak_memory, rank.peak_memory);
  }
  return measured;
}

}  // namespace

Expected<HardwareRun> run_in_a_process(const std::string& scenario) {
  const auto folder = TemporaryFolder::make("sweep");
  if (!folder) return tl::unexpected(folder.error());
  const fs::path document = folder->path() / "scenario.json";
  const fs::path profile = folder->path() / "profile.json";
  const fs::path said = folder->path() / "stderr";
  if (auto written = write_file(document, scenario); !written) {
    return tl::unexpected(written.error());
  }
  const int status =
      run_program({"trainyard", "run", document.string(), "-o", profile.string()}, said);
  if (status != 0) return failure("", complaint(said, document));
  return measured_in(profile);
}

}  // namespace trainyard
