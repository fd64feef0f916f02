// Where files lie that are needed only while something runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "model/expected.h"

namespace trainyard {

// A folder whose name nobody else has, also in another container with the same disk; removed with
// everything in it when its owner ends.
class TemporaryFolder {
 public:
  // `trainyard-WHAT-XXXXXX` in `in`; empty: in the environment's TMPDIR, else in /tmp. The error
  // names the folder in which none can be made.
  static Expected<TemporaryFolder> make(std::string_view what, std::filesystem::path in = {});

  ~TemporaryFolder() { remover()(); }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }

  const std::filesystem::path& path() const { return path_; }
  // Removes it, also when this object is gone: for what ends the process in another thread.
  std::function<void()> remover() const;
  // From now on others have it, and remove it.
  std::filesystem::path release() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: it is another's
};

}  // namespace trainyard
