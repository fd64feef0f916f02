// A folder for files that are needed only while a run lasts.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "model/expected.h"

namespace trainyard {

// A folder with a name of its own, unique also among containers that share the disk. It is removed
// with everything in it when its owner is destroyed.
class TemporaryFolder {
 public:
  // Makes `trainyard-WHAT-XXXXXX` in `in`; where `in` is empty, in $TMPDIR or else /tmp. The error
  // names the folder in which it cannot be made.
  static Expected<TemporaryFolder> make(std::string_view what, std::filesystem::path in = {});

  ~TemporaryFolder() { remover()(); }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }

  const std::filesystem::path& path() const { return path_; }
  // A function that removes the folder even after this object is gone: for a thread that ends the
  // process.
  std::function<void()> remover() const;
  // Gives the folder away: whoever takes the path removes it.
  std::filesystem::path release() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: given away
};

}  // namespace trainyard
