#include "executor/host/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// Unlike std::filesystem's it says which one, where there is none.
fs::path of_the_environment() {
  const char* named = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace

Expected<TemporaryFolder> TemporaryFolder::make(std::string_view what, fs::path in) {
  if (in.empty()) in = of_the_environment();
  std::string name = (in / fmt::format("trainyard-{}-XXXXXX", what)).string();
  if (::mkdtemp(name.data()) != nullptr) return TemporaryFolder(name);
  return failure(in.string(),
                 fmt::format("no temporary folder can be made there: {}", std::strerror(errno)));
}

std::function<void()> TemporaryFolder::remover() const {
  return [path = path_] {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  };
}

}  // namespace trainyard
