// Where a rank is and what it has measured, in a mapped file of fixed layout that other processes
// can read at any time. So the measurements of a rank that is killed are not lost, and a rank that
// hangs can be told from those that wait for it.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/rank_executor.h"
#include "executor/transport/transport.h"

namespace trainyard {

enum class RankState : std::int32_t {
  absent,
  starting,
  unsharded,
  running,
  comparing,
  done,
  failed,
  terminated
};

// The head of the file; plain data only.
struct BoardHead {
  std::atomic<RankState> state{RankState::absent};
  std::atomic<RankCall> call{RankCall::none};
  // Operation that was handed over last, by its number in the rank's list; equal to `operations`:
  // all of the step were handed over; below 0: the step has not begun.
  std::atomic<std::int64_t> operation{-1};
  // For a device, which runs behind the host: the operations under way, at most one of each stream,
  // in ascending order; −1: none.
  std::array<std::atomic<std::int64_t>, 4> under_way{-1, -1, -1, -1};
  std::atomic<bool> computes{false};        // at least one operation under way is not communication
  std::atomic<std::int64_t> beats{0};       // grows with every sign of progress
  std::atomic<std::int64_t> steps_done{0};  // warm-up included
  std::int32_t rank = 0, process = 0;
  std::int64_t operations = 0, steps = 0;
  double peak_bytes = 0;
  double reserved_bytes = 0;  // kept from the device by its memory pool
  std::array<char, 64> host{};
  std::array<char, 256> message{};  // why the rank failed
  // Verification: tensors and numbers compared, and how many of them differ too much.
  std::int32_t compared = 0, differ = 0;
  double worst_share = 0;  // largest error as a share of what is allowed …
  // … and what it was found in.
  std::array<char, 128> worst{};
};

struct StepRecord {
  // Loss and norm are NaN for a rank that runs alone. A norm of 0 means that the gradient
  // overflowed and the update was left out.
  double loss = 0, gradient_norm = 0;
  double time = 0;  // s
};
struct OperationRecord {
  double begin = 0, end = 0;  // s, of the last step
  double total = 0;           // s, over the measured steps
};
// For one operation: the number of steps in which the rank, or its device, has begun it. It tells
// the members of a collective, or the peer of a message, whether this rank has come.
using Begun = std::atomic<std::int64_t>;

class Board {
 public:
  // Makes the board of a rank in `folder`, with room for so many operations and steps. The error
  // says why the file cannot be written.
  static Expected<Board> create(const std::filesystem::path& folder, int rank,
                                std::int64_t operations, std::int64_t steps);
  static std::filesystem::path file_in(const std::filesystem::path& folder, int rank);
  // Nothing: the board does not exist or is not complete yet.
  static std::optional<Board> open(const std::filesystem::path& folder, int rank);

  // A copy of another process's board, from its `bytes`; that process may be on another host.
  // Requires: made by this program.
  static Expected<Board> copied(std::string_view bytes);

  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  BoardHead& head() { return *static_cast<BoardHead*>(memory_); }
  const BoardHead& head() const { return *static_cast<const BoardHead*>(memory_); }
  StepRecord* steps() { return at<StepRecord>(sizeof(BoardHead)); }
  OperationRecord* operations() { return at<OperationRecord>(operations_offset()); }
  // The memory of `operations`, for other use by ranks that run no program.
  std::span<char> room() {
    return {at<char>(operations_offset()), begun_offset() - operations_offset()};
  }
  // By operation, as operations().
  Begun* begun() { return at<Begun>(begun_offset()); }
  const Begun* begun() const { return at<Begun>(begun_offset()); }
  std::string_view bytes() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  Board(void* memory, std::size_t size) : memory_(memory), size_(size) {}
  template <typename T>
  T* at(std::size_t offset) const {
    return static_cast<T*>(static_cast<void*>(static_cast<char*>(memory_) + offset));
  }
  std::size_t operations_offset() const;
  std::size_t begun_offset() const;

  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

// Boards by rank; nothing where a rank has not started or runs on another host.
using Boards = std::vector<std::optional<Board>>;

// The message of a rank that stops because another one failed.
inline constexpr std::string_view kAnotherRank = "another rank failed";

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), N - 1);
}

}  // namespace trainyard
