// The commands that README.md and docs/first-steps.md show print what is shown there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

TEST(ShownCommands, PrintWhatTheDocumentsShow) {
  if (kSanitized) GTEST_SKIP() << "under a sanitizer: other tests run every command there";
  const std::string command = "/usr/bin/python3 '" TRAINYARD_SOURCE
                              "/scripts/shown-commands' --check '" TRAINYARD_PROGRAM "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << "not current: scripts/shown-commands";
}

}  // namespace
}  // namespace trainyard
