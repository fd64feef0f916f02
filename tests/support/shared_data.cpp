#include "tests/support/shared_data.h"

#include <cstdlib>
#include <string_view>

namespace trainyard {
namespace {

std::filesystem::path expected_folder() {
  const char* named = std::getenv("TRAINYARD_SHARED");
  if (named != nullptr) return named;
  return std::filesystem::path(TRAINYARD_SOURCE_DIR).parent_path() / "shared";
}

}  // namespace

std::optional<std::filesystem::path> shared_data() {
  const std::filesystem::path folder = expected_folder();
  if (!std::filesystem::is_directory(folder / "measured")) return std::nullopt;
  return folder;
}

std::string shared_data_absent() {
  return "no measured data in " + expected_folder().string() + " (set TRAINYARD_SHARED)";
}

bool shared_data_required() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

}  // namespace trainyard
