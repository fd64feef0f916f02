// What the program does where its streams and the files that it is to write are closed, full, or
// something else than files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

fs::path unread_pipe() {
  const fs::path pipe = scratch_folder() / "pipe";
  EXPECT_EQ(std::system(("mkfifo " + quoted(pipe)).c_str()), 0);
  return pipe;
}

// Not at once: the reader may be on its way. `timeout` would end what waits for it for ever.
TEST(Streams, GiveUpAPipeThatNobodyReads) {
  const std::string pipe = quoted(unread_pipe());
  for (const std::string& command : {"plan --out " + pipe, "simulate --trace " + pipe}) {
    const Ran ran = run_trainyard(command + " " + quoted(small_scenario()), "timeout -s KILL 60");
    EXPECT_EQ(ran.status, 3) << command;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("pipe: cannot be written: nobody reads it"));
  }
}

}  // namespace
}  // namespace trainyard
