#include "executor/launcher.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace trainyard {
namespace {

// A launcher is recognised where both variables are set.
struct LauncherNames {
  LauncherKind kind;
  const char *rank, *ranks;
  bool of_several = false;  // does not count where it started one process
};
// In this order: Open MPI; MPICH and srun --mpi=pmi2; srun --mpi=pmix; torchrun; srun without PMI.
// The last one comes after torchrun, because its tasks may have set RANK and WORLD_SIZE themselves.
constexpr std::array kLaunchers = {
    LauncherNames{LauncherKind::mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    LauncherNames{LauncherKind::mpi, "PMI_RANK", "PMI_SIZE"},
    LauncherNames{LauncherKind::mpi, "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
    LauncherNames{LauncherKind::torchrun, "RANK", "WORLD_SIZE"},
    LauncherNames{LauncherKind::mpi, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true}};
// Open MPI, MPICH, Slurm, torchrun.
constexpr std::array kLocalRanks = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                    "SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE"};

// NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread, and nobody sets one
const char* variable(const char* name) { return std::getenv(name); }

// The number that the whole text is; nothing: it is none.
std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

// "4" of Slurm's "4(x2)": two nodes with as many each.
std::string_view without_nodes(std::string_view text) {
  const auto open = text.find("(x");
  if (open == std::string_view::npos || !text.ends_with(')')) return text;
  const auto nodes = number_of(text.substr(open + 2, text.size() - open - 3));
  return nodes ? text.substr(0, open) : text;
}

Expected<int> local_ranks() {
  for (const char* name : kLocalRanks) {
    if (variable(name) == nullptr) continue;
    const std::string_view text = variable(name);
    // nodes with different numbers of tasks
    if (text.find(',') != std::string_view::npos) continue;
    const auto count = number_of(without_nodes(text));
    if (count && *count > 0) return *count;
    return failure(name, fmt::format("found \"{}\"; allowed: 1 or more", text));
  }
  return 1;
}

Expected<Launcher> completed(Launcher launcher) {
  const auto here = local_ranks();
  if (!here) return tl::unexpected(here.error());
  launcher.local_ranks = *here;
  if (launcher.kind != LauncherKind::torchrun || !launcher.has_started_several()) return launcher;
  if (const char* address = variable("MASTER_ADDR")) launcher.address = address;
  if (const char* port = variable("MASTER_PORT")) launcher.port = port;
  const auto port = number_of(launcher.port);
  if (port && *port >= 1 && *port <= 65535) return launcher;
  return failure("MASTER_PORT", fmt::format("found \"{}\"; allowed: 1 to 65535", launcher.port));
}

}  // namespace

Expected<Launcher> launcher_in_environment() {
  for (const LauncherNames& names : kLaunchers) {
    const char *rank_text = variable(names.rank), *ranks_text = variable(names.ranks);
    if (rank_text == nullptr || ranks_text == nullptr) continue;
    const auto rank = number_of(rank_text), ranks = number_of(ranks_text);
    if (!rank || !ranks || *rank < 0 || *rank >= *ranks) {
      return failure(names.rank,
                     fmt::format("found \"{}\" with {} \"{}\"; allowed: 0 to {} - 1, or neither of "
                                 "them",
                                 rank_text, names.ranks, ranks_text, names.ranks));
    }
    if (names.of_several && *ranks == 1) continue;
    return completed({.kind = names.kind, .rank = *rank, .ranks = *ranks});
  }
  return Launcher{};
}

std::optional<Error> not_by_mpi(const Launcher& launcher) {
  if (launcher.kind != LauncherKind::torchrun || !launcher.has_started_several()) {
    return std::nullopt;
  }
  return Error{"RANK", "found a launcher that sets it; allowed: mpirun, srun, or none of them"};
}

Error strangers(int ranks) {
  return {"", fmt::format("{} processes were started and do not know each other; allowed: mpirun, "
                          "or srun with --mpi=pmix",
                          ranks)};
}

}  // namespace trainyard
