#include "scenarios/json/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "scenarios/json/file.h"

namespace trainyard {

namespace fs = std::filesystem;

namespace {

// How long to wait for the reader of a pipe, which may start later than this program. A plain open
// would wait for ever, and would go on waiting after Ctrl-C.
constexpr std::chrono::seconds kReaderComes(5);
constexpr std::chrono::milliseconds kLookEach(10);

std::FILE* open_pipe(const fs::path& pipe) {
  const auto end = std::chrono::steady_clock::now() + kReaderComes;
  int opened = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  while (opened < 0 && errno == ENXIO && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookEach);
    opened = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  }
  if (opened < 0) return nullptr;
  ::fcntl(opened, F_SETFL, ::fcntl(opened, F_GETFL) & ~O_NONBLOCK);
  return ::fdopen(opened, "wb");
}

// Whether the bytes are on disk; if the file system has no fsync, as far as that can be known.
bool reached_disk(int descriptor) {
  int failed = 0;
  do {
    failed = ::fsync(descriptor) == 0 ? 0 : errno;
  } while (failed == EINTR);
  return failed == 0 || failed == EINVAL || failed == ENOSYS || failed == EOPNOTSUPP;
}

tl::unexpected<Error> not_written(const fs::path& file, std::string_view why) {
  return failure(file.string(), fmt::format("cannot be written: {}", why));
}

}  // namespace

OutputFile::OutputFile(fs::path file, fs::path temporary)
    : file_(std::move(file)), temporary_(std::move(temporary)) {
  std::error_code ignored;
  const fs::path& written = temporary_.empty() ? file_ : temporary_;
  stream_.reset(fs::is_fifo(written, ignored) ? open_pipe(written)
                                              : std::fopen(written.c_str(), "wb"));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(std::move(other.file_)),
      temporary_(std::exchange(other.temporary_, {})),
      stream_(std::move(other.stream_)),
      failed_(other.failed_) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  stream_.reset();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

// Replaces the file that a link names, and keeps the link. Devices and pipes, which a file cannot
// replace, are written directly.
Expected<OutputFile> OutputFile::open(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  const bool replaced = !fs::exists(there) || fs::is_regular_file(there);
  const bool linked =
      fs::is_regular_file(there) && fs::is_symlink(fs::symlink_status(file, ignored));
  const fs::path target = linked ? fs::canonical(file, ignored) : file;
  OutputFile output(
      target, replaced ? fmt::format("{}.{}.tmp", target.string(), ::getpid()) : std::string());
  if (output.stream_) {
    if (replaced && fs::exists(there)) output.keep_mode_of(there);
    return output;
  }
  const bool unread = fs::is_fifo(there) && errno == ENXIO;
  return not_written(file, unread ? "nobody reads it" : reason_of(errno));
}

// Keeps the permissions that the file's owner chose, whatever the umask. Some file systems have no
// permissions.
void OutputFile::keep_mode_of(const fs::file_status& replaced) {
  const auto mode = static_cast<::mode_t>(replaced.permissions() & fs::perms::all);
  static_cast<void>(::fchmod(::fileno(stream_.get()), mode));
}

// The bytes must be on disk before the file is renamed, or a loss of power can leave an empty file
// of that name.
void OutputFile::flush() {
  const bool whole = std::fflush(stream_.get()) == 0 &&
                     (temporary_.empty() || reached_disk(::fileno(stream_.get())));
  if (!whole && failed_ == 0) failed_ = errno;
}

Expected<void> OutputFile::finish() {
  flush();
  const bool closed = std::fclose(stream_.release()) == 0;
  if (!closed && failed_ == 0) failed_ = errno;
  if (failed_ != 0) return not_written(file_, reason_of(failed_));
  if (temporary_.empty()) return {};
  std::error_code error;
  fs::rename(temporary_, file_, error);
  if (error) return not_written(file_, error.message());
  temporary_.clear();
  return {};
}

Expected<void> check_writable(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  if (fs::is_fifo(there) || fs::is_character_file(there)) {
    if (::access(file.c_str(), W_OK) == 0) return {};
    return not_written(file, reason_of(errno));
  }
  return OutputFile::open(file).map([](const OutputFile&) {});
}

Expected<void> write_file(const fs::path& file, std::string_view content) {
  auto output = OutputFile::open(file);
  if (!output) return tl::unexpected(output.error());
  output->write(content);
  return output->finish();
}

}  // namespace trainyard
