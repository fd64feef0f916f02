// The result file: its contents do not depend on threads or interruptions.
#include "scenarios/sweep/results/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/sweep/results/database.h"
#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/workers/lease_queue.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGrid = R"("vary": [
    { "key": "cluster.nodes", "values": [1, 2, 4, 8] },
    { "key": "plan.tensor_parallel", "values": [1, 2, 3, 4, 8] },
    { "key": "plan.micro_batch", "values": [1, 2, 4] } ],
    "where": ["plan.micro_batch * plan.tensor_parallel < 32"])";

TEST(SweepStore, HoldsTheSamePointsFromAnyNumberOfThreads) {
  const auto sweep = sweep_from(kGrid);
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  const fs::path one = sweep_folder() / "one.sqlite";
  const fs::path four = sweep_folder() / "four.sqlite";
  EXPECT_TRUE(run(*sweep, one, {.workers = 1}).complete());
  EXPECT_TRUE(run(*sweep, four, {.workers = 4}).complete());
  const std::string text = dump(one);
  EXPECT_EQ(std::ranges::count(text, '\n'), 60 - 4);  // 8 · 4 = 32 on four sizes of cluster
  EXPECT_EQ(text, dump(four));
}

TEST(SweepStore, IsContinuedWhereItWasInterrupted) {
  const auto sweep = sweep_from(kGrid);
  ASSERT_TRUE(sweep.has_value());
  const fs::path whole = sweep_folder() / "whole.sqlite";
  const fs::path parts = sweep_folder() / "parts.sqlite";
  run(*sweep, whole, {.workers = 1});
  std::atomic<bool> interrupted = false;
  const auto first =
      run(*sweep, parts,
          {.workers = 2, .interrupted = &interrupted, .progress = [&interrupted](double) {
             interrupted = true;
           }});
  EXPECT_FALSE(first.complete());
  EXPECT_GT(first.answered, 0);
  const auto second = run(*sweep, parts, {.workers = 2});
  EXPECT_TRUE(second.complete());
  EXPECT_EQ(second.found, first.answered);
  EXPECT_EQ(dump(whole), dump(parts));
  EXPECT_EQ(run(*sweep, parts, {.workers = 2}).answered, 0);
}

TEST(SweepStore, RefusesAnotherSweepAnotherVersionAndOtherFiles) {
  const auto sweep = sweep_from(kGrid);
  const auto other =
      sweep_from(R"("vary": [ { "key": "cluster.nodes", "values": [1, 2, 4, 16] } ])");
  ASSERT_TRUE(sweep.has_value() && other.has_value());
  const fs::path file = sweep_folder() / "results.sqlite";
  run(*sweep, file, {.workers = 1});
  const std::string before = dump(file);
  EXPECT_THAT(SweepStore::open(file, *other, kSession).error().message,
              HasSubstr("found the results of another sweep"));
  Session later = kSession;
  later.version = "1.1";
  EXPECT_THAT(SweepStore::open(file, *sweep, later).error().message,
              HasSubstr("found the results of another sweep"));
  EXPECT_EQ(dump(file), before);
  const fs::path text = write_sweep_file("notes.txt", "not a database, by any means\n");
  EXPECT_THAT(SweepStore::open(text, *sweep, kSession).error().message,
              HasSubstr("file is not a database"));
  EXPECT_THAT(ResultFile::open(text).error().message, HasSubstr("is no result file"));
  EXPECT_THAT(ResultFile::open(sweep_folder() / "none").error().message,
              HasSubstr("does not exist"));
}

// A folder stands where SQLite has its log, so the results exist but cannot be read now.
TEST(SweepStore, SaysWhyResultsCannotBeRead) {
  const auto sweep = sweep_from(kGrid);
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  const fs::path file = sweep_folder() / "results.sqlite";
  run(*sweep, file);
  const fs::path log = file.string() + "-wal";
  fs::create_directory(log);
  const auto results = ResultFile::open(file);
  ASSERT_FALSE(results.has_value());
  EXPECT_EQ(results.error().where, file.string());
  EXPECT_EQ(results.error().message, "unable to open database file");
  fs::remove(log);
  EXPECT_TRUE(ResultFile::open(file).has_value());
  const fs::path other = sweep_folder() / "other.sqlite";
  auto database = Database::open(other, Database::Access::write);
  ASSERT_TRUE(database.and_then([](Database& opened) { return opened.run("CREATE TABLE t (i)"); }));
  EXPECT_EQ(ResultFile::open(other).error().message, "is no result file of a sweep");
}

TEST(SweepStore, SaysWhatIsWrongWithADatabaseInOneLine) {
  auto database = Database::open(sweep_folder() / "lines.sqlite", Database::Access::write);
  ASSERT_TRUE(database.has_value()) << database.error().message;
  const std::string name(5000, 'x');
  EXPECT_EQ(database->run("SELECT 1 FROM \"no\nsuch\ttable\"").error().message,
            "no such table: no?such?table");
  EXPECT_EQ(database->run("SELECT 1 FROM " + name).error().message.size(), 200U);
}

TEST(SweepStore, IsWrittenByOneSweepAtATime) {
  const auto sweep = sweep_from(kGrid);
  const fs::path file = sweep_folder() / "results.sqlite";
  const auto store = SweepStore::open(file, *sweep, kSession);
  ASSERT_TRUE(store.has_value());
  EXPECT_THAT(SweepStore::open(file, *sweep, kSession).error().message,
              HasSubstr("is being written by another sweep"));
}

TEST(SweepStore, SaysWhatItsPointsWereComputedFrom) {
  const auto sweep = sweep_from(kGrid);
  const fs::path file = sweep_folder() / "results.sqlite";
  run(*sweep, file, {.workers = 3});
  auto results = ResultFile::open(file);
  ASSERT_TRUE(results.has_value());
  std::vector<std::string> names;
  const auto inputs = results->inputs();
  ASSERT_TRUE(inputs.has_value());
  for (const SweepInput& input : *inputs) names.push_back(input.name);
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"catalog model llama-3.1-8b", "catalog node dgx-h100-80gb",
                                       "catalog stack megatron-core"}));
  const auto sessions = results->sessions();
  ASSERT_EQ(sessions->size(), 1u);
  EXPECT_EQ(sessions->front().host, "host");
  EXPECT_EQ(sessions->front().points, 60);
  // What was kept gives the same points again.
  const auto again =
      sweep_of_text(results->said("document"), results->said("csv"), results->said("file"));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(all_overrides(*again), all_overrides(*sweep));
}

// One row exists already. So no part of the lease is kept, and the next run answers all of it.
TEST(SweepStore, ForgetsALeaseThatCannotBeWrittenWhole) {
  const auto sweep = sweep_from(kGrid);
  ASSERT_TRUE(sweep.has_value());
  const fs::path whole = sweep_folder() / "whole.sqlite";
  const fs::path file = sweep_folder() / "results.sqlite";
  run(*sweep, whole);
  const PointRow first{.point = 0, .overrides = "{}"};
  const PointRow second{.point = 1, .overrides = "{}"};
  {
    auto store = SweepStore::open(file, *sweep, kSession);
    ASSERT_TRUE(store.has_value());
    EXPECT_FALSE(store->add({{0, 3}, {first, second, second}}).has_value());
    EXPECT_TRUE(store->commit().has_value());
    EXPECT_THAT(*store->missing(sweep->points), ElementsAre(Lease{0, 60}));
  }
  EXPECT_EQ(dump(file), "");
  EXPECT_TRUE(run(*sweep, file).complete());
  EXPECT_EQ(dump(file), dump(whole));
}

TEST(LeaseQueue, HandsOutEveryPointOnceAndWhatCameBackFirst) {
  LeaseQueue queue({{0, 5}, {9, 1}}, 3);
  EXPECT_EQ(queue.next(), (Lease{0, 3}));
  EXPECT_EQ(queue.next(), (Lease{3, 2}));
  queue.give_back({0, 3});
  EXPECT_EQ(queue.next(), (Lease{0, 3}));
  EXPECT_EQ(queue.next(), (Lease{9, 1}));
  EXPECT_EQ(queue.next(), std::nullopt);
}

}  // namespace
}  // namespace trainyard
