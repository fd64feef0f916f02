#include "executor/supervision/board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace trainyard {
namespace {

std::size_t size_for(std::int64_t operations, std::int64_t steps) {
  return sizeof(BoardHead) + static_cast<std::size_t>(steps) * sizeof(StepRecord) +
         static_cast<std::size_t>(operations) * (sizeof(OperationRecord) + sizeof(Begun));
}

void* mapped(int file, std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::filesystem::path Board::file_in(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank-{}", rank);
}

Expected<Board> Board::create(const std::filesystem::path& folder, int rank,
                              std::int64_t operations, std::int64_t steps) {
  const std::filesystem::path file = file_in(folder, rank);
  const std::filesystem::path temporary = file.string() + ".tmp";
  const std::size_t size = size_for(operations, steps);
  const int descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  // Reserves the space, so that a full disk is an error here and not a signal later.
  int error = descriptor < 0 ? errno : posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  void* memory = error == 0 ? mapped(descriptor, size) : nullptr;
  if (error == 0 && memory == nullptr) error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (memory == nullptr) {
    return failure(temporary.string(), fmt::format("cannot be written: {}", std::strerror(error)));
  }
  Board board(memory, size);
  auto* head = new (memory) BoardHead;
  head->state = RankState::starting;
  head->rank = rank;
  head->process = getpid();
  head->operations = operations;
  head->steps = steps;
  std::uninitialized_value_construct_n(board.begun(), operations);
  gethostname(head->host.data(), head->host.size() - 1);
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    return failure(file.string(), fmt::format("cannot be written: {}", std::strerror(errno)));
  }
  return board;
}

std::optional<Board> Board::open(const std::filesystem::path& folder, int rank) {
  const int descriptor = ::open(file_in(folder, rank).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  void* memory = nullptr;
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
    memory = mapped(descriptor, static_cast<std::size_t>(status.st_size));
  }
  ::close(descriptor);
  if (memory == nullptr) return std::nullopt;
  return Board(memory, static_cast<std::size_t>(status.st_size));
}

Expected<Board> Board::copied(std::string_view bytes) {
  if (bytes.size() < sizeof(BoardHead)) {
    return failure("", fmt::format("the board of a rank came as {} bytes, its head has {}",
                                   bytes.size(), sizeof(BoardHead)));
  }
  void* memory =
      mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failure("", "no memory for the board of a rank");
  std::memcpy(memory, bytes.data(), bytes.size());
  return Board(memory, bytes.size());
}

Board::Board(Board&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

Board::~Board() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

std::size_t Board::operations_offset() const {
  return sizeof(BoardHead) + static_cast<std::size_t>(head().steps) * sizeof(StepRecord);
}

std::size_t Board::begun_offset() const {
  return operations_offset() +
         static_cast<std::size_t>(head().operations) * sizeof(OperationRecord);
}

}  // namespace trainyard
