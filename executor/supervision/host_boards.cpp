#include "executor/supervision/host_boards.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "executor/host/temporary_folder.h"
#include "executor/supervision/process_state.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// A folder that the last rank to leave removes; empty: none can be made.
std::string new_folder() {
  auto made = TemporaryFolder::make("ranks");
  return made ? made->release().string() : "";
}

// Gives a file another name, on the same disk or not.
void link(const fs::path& file, const fs::path& name) {
  std::error_code error;  // ignored: nobody else sees this board then
  fs::create_hard_link(file, name, error);
  if (error) fs::create_symlink(file, name, error);
}

}  // namespace

Expected<void> HostBoards::join(Transport& transport, const fs::path& own) {
  std::string name = transport.rank() == 0 ? new_folder() : "";
  if (auto told = transport.broadcast(name, 0); !told) return told;
  if (name.empty()) return {};
  std::error_code ignored;
  fs::create_directories(name, ignored);
  link(own, Board::file_in(name, transport.rank()));
  const std::lock_guard lock(mutex_);
  folder_ = name;
  rank_ = transport.rank();
  boards_.resize(static_cast<std::size_t>(transport.ranks()));
  return {};
}

void HostBoards::look() {
  for (int rank = 0; rank < static_cast<int>(boards_.size()); ++rank) {
    auto& board = boards_[static_cast<std::size_t>(rank)];
    if (!board) board = Board::open(folder_, rank);
  }
}

std::int64_t HostBoards::beats() {
  const std::lock_guard lock(mutex_);
  look();
  std::int64_t beats = 0;
  for (const auto& board : boards_) {
    if (!board) continue;
    beats += 1 + board->head().beats + static_cast<std::int64_t>(board->head().state.load());
  }
  return beats;
}

std::string HostBoards::said_of(const std::function<std::string(const Boards& boards)>& say) {
  const std::lock_guard lock(mutex_);
  look();
  return say(boards_);
}

Verdict HostBoards::agree_on(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (folder_.empty()) return {sentence};
  const fs::path verdict = folder_ / "verdict";
  const fs::path own = verdict.string() + fmt::format("-{}", rank_);
  std::ofstream(own) << sentence;
  std::error_code error;
  fs::create_hard_link(own, verdict, error);  // appears with its whole text, and only once
  if (error != std::errc::file_exists) return {sentence};
  std::ostringstream text;
  text << std::ifstream(verdict).rdbuf();
  return {text.str(), false};
}

void HostBoards::leave() {
  const std::lock_guard lock(mutex_);
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove(Board::file_in(folder_, rank_), ignored);
  for (int rank = 0; rank < static_cast<int>(boards_.size()); ++rank) {
    const auto board = Board::open(folder_, rank);
    if (board && is_alive(board->head().process)) return;
  }
  fs::remove_all(folder_, ignored);
}

}  // namespace trainyard
