// What the program does where its streams and the files that it is to write are closed, full, or
// something else than files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kTiny = fs::path(TRAINYARD_SOURCE) / "scenarios/examples/tiny-llama-1-rank.json";

TEST(Streams, EndAsEverWhereNobodyCanReadTheErrors) {
  for (const char* nowhere : {" 2>&-", " 2>/dev/full"}) {
    EXPECT_EQ(run_trainyard(std::string("estimate /absent.json") + nowhere).status, 2) << nowhere;
    const Ran ran = run_trainyard("run --watch --steps 1 " + quoted(kTiny) + nowhere);
    EXPECT_EQ(ran.status, 0) << nowhere << ran.out;
  }
}

}  // namespace
}  // namespace trainyard
