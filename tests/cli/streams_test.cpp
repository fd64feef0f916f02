// What the program does if its streams, or the files that it writes, are closed, full, or not
// regular files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kTiny = fs::path(TRAINYARD_SOURCE) / "scenarios/examples/tiny-llama-1-rank.json";

// A prefix that makes stdout a pipe, which has no path.
constexpr const char* kThroughAPipe = R"(sh -c '"$@" | cat' run)";

TEST(Streams, EndAsEverWhereNobodyCanReadTheErrors) {
  for (const char* nowhere : {" 2>&-", " 2>/dev/full"}) {
    EXPECT_EQ(run_trainyard(std::string("estimate /absent.json") + nowhere).status, 2) << nowhere;
    const Ran ran = run_trainyard("run --watch --steps 1 " + quoted(kTiny) + nowhere);
    EXPECT_EQ(ran.status, 0) << nowhere << ran.out;
  }
}

// The reader of stderr ends before there are any errors.
TEST(Streams, EndAsEverWhereTheReaderOfTheErrorsIsGone) {
  const std::string program = quoted(TRAINYARD_PROGRAM);
  const fs::path status = scratch_folder() / "status";
  const std::string late = "{ sleep 0.3; " + program + " estimate /absent.json; echo $? > " +
                           quoted(status) + "; } 2>&1 | :; sleep 1";
  EXPECT_EQ(std::system(late.c_str()), 0);
  EXPECT_EQ(read_text(status), "2\n");
}

// The input is bad as well, but the output is refused first, because it is checked before any work.
TEST(Streams, RefuseAnOutputInNoFolder) {
  const std::string out = quoted(scratch_folder() / "absent" / "out");
  const std::string config = quoted(write_scratch("config.json", "{}"));
  const std::string scenario = quoted(small_scenario());
  for (const std::string& command :
       {"plan " + scenario + " --out " + out, "import huggingface " + config + " -o " + out,
        "fit --stack megatron-core " + config + " -o " + out,
        "fit --check --device h100-sxm-80gb " + config + " --plot " + out,
        "validate " + config + " --plot " + out, "simulate " + scenario + " --trace " + out,
        "run " + quoted(kTiny) + " -o " + out}) {
    const Ran ran = run_trainyard(command);
    EXPECT_EQ(ran.status, 2) << command;
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("absent/out: cannot be written: No such file")) << command;
  }
}

TEST(Streams, RefuseAnOutputWhoseNameIsTooLong) {
  const std::string out = quoted(scratch_folder() / std::string(300, 'x'));
  const Ran ran = run_trainyard("plan " + quoted(small_scenario()) + " --out " + out);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("xxx: cannot be written: File name too long"));
}

fs::path unread_pipe() {
  const fs::path pipe = scratch_folder() / "pipe";
  EXPECT_EQ(std::system(("mkfifo " + quoted(pipe)).c_str()), 0);
  return pipe;
}

// The program waits a while, because the reader may still come. `timeout` would end an endless
// wait.
TEST(Streams, GiveUpAPipeThatNobodyReads) {
  const std::string pipe = quoted(unread_pipe());
  for (const std::string& command : {"plan --out " + pipe, "simulate --trace " + pipe}) {
    const Ran ran = run_trainyard(command + " " + quoted(small_scenario()), "timeout -s KILL 60");
    EXPECT_EQ(ran.status, 3) << command;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("pipe: cannot be written: nobody reads it"));
  }
}

// A document from a pipe has no folder for relative file names.
TEST(Streams, TakeAPlanThatNamesItsFilesInFull) {
  const fs::path model = write_scratch("model.json", R"({ "trainyard": "model/1", "name": "small",
    "layers": 4, "hidden_size": 512, "attention_heads": 8, "vocabulary": 1024 })");
  const fs::path scenario = write_scratch("scenario.json", R"({ "trainyard": "scenario/1",
    "model": "model.json", "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 8, "sequence_length": 128 } })");
  const Ran ran =
      run_trainyard("plan --format csv --out /dev/stdout " + quoted(scenario), kThroughAPipe);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("\"model\": \"" + model.string() + "\""));
}

TEST(Streams, TakeTheProfileOfARun) {
  const Ran ran = run_trainyard("run --steps 1 -o /dev/stdout --trace /dev/null " + quoted(kTiny),
                                kThroughAPipe);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("profile/1"));
}

}  // namespace
}  // namespace trainyard
