// Where a rank is and what it has measured, in memory that another process can look into at any
// time: a file of fixed layout, mapped. So nothing is lost with a rank that is killed, and a rank
// that hangs can be told from those that wait for it.
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

// Plain numbers only: it lies in a file.
struct BoardHead {
  std::atomic<RankState> state{RankState::absent};
  std::atomic<RankCall> call{RankCall::none};
  // Of the rank's list: handed over last; as many as there are: the step's end. Below 0: the step
  // has not begun.
  std::atomic<std::int64_t> operation{-1};
  // Of a device, which works on when it was given more: what it is at, one of each stream, the
  // first ones first; −1: none.
  std::array<std::atomic<std::int64_t>, 4> under_way{-1, -1, -1, -1};
  std::atomic<bool> computes{false};        // one of those is no communication
  std::atomic<std::int64_t> beats{0};       // operations begun and, of a device, done
  std::atomic<std::int64_t> steps_done{0};  // warm-up included
  std::int32_t rank = 0, process = 0;
  std::int64_t operations = 0, steps = 0;
  double peak_bytes = 0;
  double reserved_bytes = 0;  // by a device's pool
  std::array<char, 64> host{};
  std::array<char, 256> message{};  // of a failure
  // Of the verification: rank 0.
  std::int32_t compared = 0, differ = 0;
  double worst_share = 0;  // of what is allowed
  std::array<char, 128> worst{};
};

struct StepRecord {
  // Norm 0: the gradient overflowed, the step was left out. Of a rank alone no numbers.
  double loss = 0, gradient_norm = 0;
  double time = 0;  // s
};
struct OperationRecord {
  double begin = 0, end = 0;  // s, of the last step
  double total = 0;           // s, over the measured steps
};
// Of an operation: steps in which the rank, or its device, has begun it. Whoever is to meet the
// rank there knows by this whether it has come.
using Begun = std::atomic<std::int64_t>;

class Board {
 public:
  // Of a rank in `folder`; the error says what the folder lacks.
  static Expected<Board> create(const std::filesystem::path& folder, int rank,
                                std::int64_t operations, std::int64_t steps);
  static std::filesystem::path file_in(const std::filesystem::path& folder, int rank);
  // Nothing yet: not found, or not written in full.
  static std::optional<Board> open(const std::filesystem::path& folder, int rank);

  // Of another process on any host, from its `bytes`. Requires: made by this program.
  static Expected<Board> copied(std::string_view bytes);

  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  BoardHead& head() { return *static_cast<BoardHead*>(memory_); }
  const BoardHead& head() const { return *static_cast<const BoardHead*>(memory_); }
  StepRecord* steps() { return at<StepRecord>(sizeof(BoardHead)); }
  OperationRecord* operations() { return at<OperationRecord>(operations_offset()); }
  // The memory of operations, for ranks that run no program.
  std::span<char> room() {
    return {at<char>(operations_offset()), begun_offset() - operations_offset()};
  }
  // By operation too.
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

// By rank. Nothing: it has not started, or lies on another host.
using Boards = std::vector<std::optional<Board>>;

// The message of a rank that stops because another one failed.
inline constexpr std::string_view kAnotherRank = "another rank failed";

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), N - 1);
}

}  // namespace trainyard
