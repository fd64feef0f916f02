#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

// Measured data that is not part of the repository: published runs, kernel tables and Hugging Face
// configs. The folder is TRAINYARD_SHARED, or `shared` beside the checkout. A test that needs it
// opens with TRAINYARD_NEEDS_SHARED_DATA(folder).

namespace trainyard {

// The folder, or nothing where there is none.
std::optional<std::filesystem::path> shared_data();

// One line that says where the data was looked for.
std::string shared_data_absent();

// Whether an absence is an error rather than a reason to skip: CI=true says the data must be there.
bool shared_data_required();

}  // namespace trainyard

// Declares `folder`, the path of the data; skips the test where it is absent, fails where CI says
// it must be there.
#define TRAINYARD_NEEDS_SHARED_DATA(folder)                                           \
  if (!trainyard::shared_data()) {                                                    \
    if (trainyard::shared_data_required()) FAIL() << trainyard::shared_data_absent(); \
    GTEST_SKIP() << trainyard::shared_data_absent();                                  \
  }                                                                                   \
  const std::filesystem::path folder = *trainyard::shared_data()
