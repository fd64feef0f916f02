#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

// Finds the measured data that is not part of the repository: published runs, kernel tables and
// Hugging Face configs. The folder is TRAINYARD_SHARED, or `shared` beside the checkout. A test
// that needs the data opens with TRAINYARD_NEEDS_SHARED_DATA(folder).

namespace trainyard {

// The folder of the data, or nothing if it does not exist.
std::optional<std::filesystem::path> shared_data();

// One line that says where the data was looked for.
std::string shared_data_absent();

// Whether a missing folder is an error instead of a reason to skip: it is if CI is "true".
bool shared_data_required();

}  // namespace trainyard

// Declares `folder`, the path of the data. If the data is missing, the test is skipped, or fails if
// CI says that the data must be there.
#define TRAINYARD_NEEDS_SHARED_DATA(folder)                                           \
  if (!trainyard::shared_data()) {                                                    \
    if (trainyard::shared_data_required()) FAIL() << trainyard::shared_data_absent(); \
    GTEST_SKIP() << trainyard::shared_data_absent();                                  \
  }                                                                                   \
  const std::filesystem::path folder = *trainyard::shared_data()
