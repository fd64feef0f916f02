// Which ranks are named when a run stands still, from boards written by hand for programs of small
// plans. Operations that meet are found in the lists by their kind, peer and turn.
#include "executor/supervision/diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/program/lower.h"
#include "model/program/view.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

constexpr int kProcess = 1000;  // and the rank: processes that nobody asks the system about

class StandingRun {
 public:
  explicit StandingRun(const PlanRequest& request)
      : setting_(tiny_setting(tiny_llama(false), tiny_training(), request)),
        program_(*lower(setting_.model, setting_.training, setting_.plan)),
        layout_(setting_.plan, setting_.model.kv_heads),
        words_(words_of(program_, layout_)) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "standing";
    std::filesystem::create_directories(folder);
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const auto stage = static_cast<std::size_t>(layout_.coordinates(rank).stage);
      boards_.emplace_back(*Board::create(folder, rank, program_.stages[stage].operations, 9));
      head(rank).state = RankState::running;
      head(rank).process = kProcess + rank;
    }
    std::filesystem::remove_all(folder);
  }

  Board& board(int rank) { return *boards_[static_cast<std::size_t>(rank)]; }
  BoardHead& head(int rank) { return board(rank).head(); }

  // The number of the n-th operation of this kind and phase in a rank's list.
  std::int64_t nth(int rank, OperationKind kind, int n, Phase phase = Phase::forward) const {
    std::int64_t number = 0;
    for (const IssuedOperation issued : operations_of(program_, layout_.coordinates(rank).stage)) {
      if (issued.operation->kind == kind && issued.operation->phase == phase && n-- == 0) {
        return number;
      }
      ++number;
    }
    ADD_FAILURE() << "no such operation";
    return 0;
  }

  // Puts a rank's host at an operation of step 3; it computes unless it is in a call.
  void put(int rank, std::int64_t operation, RankCall call = RankCall::none) {
    head(rank).steps_done = 3;
    head(rank).operation = operation;
    head(rank).call = call;
    for (std::int64_t i = 0; i < head(rank).operations; ++i) {
      board(rank).begun()[i] = i <= operation ? 4 : 3;
    }
  }
  void put_at_end(int rank, RankCall call) { put(rank, head(rank).operations, call); }
  // Puts a rank's device at the operations `at`, the only ones that have begun in this step.
  void put_device(int rank, const std::vector<std::int64_t>& at, bool computes) {
    put(rank, head(rank).operations - 1);
    for (std::int64_t i = 0; i < head(rank).operations; ++i) board(rank).begun()[i] = 3;
    for (std::size_t i = 0; i < at.size(); ++i) {
      head(rank).under_way[i] = at[i];
      board(rank).begun()[at[i]] = 4;
    }
    head(rank).computes = computes;
  }

  void hide(int rank) { boards_[static_cast<std::size_t>(rank)].reset(); }
  Culprits culprits(int stopped = -1) const {
    return culprits_of(boards_, words_,
                       [stopped](int process) { return process == kProcess + stopped; });
  }
  std::string sentence() const { return *standstill_of(boards_, words_, Seconds(4)); }

 private:
  Setting setting_;
  Program program_;
  RankLayout layout_;
  RunWords words_;
  Boards boards_;
};

using Ranks = std::vector<int>;

PlanRequest stages_request(int stages) {
  PlanRequest request;
  request.pipeline_parallel = stages;
  return request;
}
PlanRequest tensor_request(int tensor, int data) {
  PlanRequest request;
  request.tensor_parallel = tensor;
  request.data_parallel = data;
  return request;
}

// Each rank waits for a message that the other sends later, as a wrong order of passes would cause.
TEST(Standstill, NamesAllWhereEachWaitsForTheOther) {
  StandingRun run(stages_request(2));
  run.put(0, run.nth(0, OperationKind::receive, 0, Phase::input_gradient), RankCall::receive);
  run.put(1, run.nth(1, OperationKind::receive, 0), RankCall::receive);
  for (std::int64_t i = 0; i < run.head(0).operations; ++i) run.board(0).begun()[i] = 3;
  run.board(0).begun()[run.head(0).operation] = 4;
  EXPECT_EQ(run.culprits().ranks, (Ranks{0, 1}));
  EXPECT_TRUE(run.culprits().waiting.empty());
  EXPECT_NE(run.sentence().find("rank 0 on"), std::string::npos);
  EXPECT_NE(run.sentence().find("; rank 1 on"), std::string::npos);
}

// The last stage is in a receive early in its list. The first stage is far down its own list and
// computes.
TEST(Standstill, IsOfTheStageThatComputesHoweverFarDownItsListItIs) {
  StandingRun run(stages_request(2));
  run.put(0, run.nth(0, OperationKind::linear, 3));
  run.put(1, run.nth(1, OperationKind::receive, 0), RankCall::receive);
  EXPECT_EQ(run.culprits().ranks, Ranks{0});
  EXPECT_EQ(run.culprits().waiting, Ranks{1});
}

// 1F1B on four stages. Each stage waits for the one before it, and stage 1 has not sent its second
// message. Stage 0 waits for a gradient that stage 1 cannot have yet.
TEST(Standstill, IsFollowedFromStageToStage) {
  StandingRun run(stages_request(4));
  run.put(0, run.nth(0, OperationKind::receive, 0, Phase::input_gradient), RankCall::receive);
  run.put(1, run.nth(1, OperationKind::send, 1) - 1);
  run.put(2, run.nth(2, OperationKind::receive, 1), RankCall::receive);
  run.put(3, run.nth(3, OperationKind::receive, 1), RankCall::receive);
  EXPECT_EQ(run.culprits().ranks, Ranks{1});
  EXPECT_EQ(run.culprits().waiting, (Ranks{0, 2}));
}

// Both stages are in a receive. The message for stage 1 was sent, so stage 1 is to blame, and stage
// 0 waits for it; unless stage 0, which must move the message, is stopped.
TEST(Standstill, IsOfTheReceiverWhoseMessageWasSentUnlessItsSenderIsStopped) {
  StandingRun run(stages_request(2));
  run.put(0, run.nth(0, OperationKind::receive, 0, Phase::input_gradient), RankCall::receive);
  run.put(1, run.nth(1, OperationKind::receive, 0), RankCall::receive);
  EXPECT_EQ(run.culprits().ranks, Ranks{1});
  EXPECT_FALSE(run.culprits().is_tie);
  EXPECT_EQ(run.culprits(0).ranks, Ranks{0});
  EXPECT_EQ(run.culprits(0).waiting, Ranks{1});
}

// Ranks 0 and 1, and ranks 2 and 3, are tensor groups. Rank 0 has come to the next collective; rank
// 1 is still in the previous one, where nobody is missing. Ranks 2 and 3 wait for both in the sum
// over data.
TEST(Standstill, IsOfWhoIsBehindInACollectiveThatOthersHaveLeft) {
  StandingRun run(tensor_request(2, 2));
  const std::int64_t first = run.nth(0, OperationKind::reduce_scatter, 0);
  run.put(0, run.nth(0, OperationKind::all_gather, 2), RankCall::all_gather);
  run.put(1, first, RankCall::reduce_scatter);
  ASSERT_LT(first, run.head(0).operation);
  for (const int rank : {2, 3}) run.put_at_end(rank, RankCall::all_reduce);
  EXPECT_EQ(run.culprits().ranks, Ranks{1});
  EXPECT_EQ(run.culprits().waiting, (Ranks{0, 2, 3}));
}

TEST(Standstill, IsATieWhereAllAreInTheSameCollectiveUnlessOneIsStopped) {
  StandingRun run(tensor_request(2, 2));
  const std::int64_t where = run.nth(0, OperationKind::all_gather, 1);
  for (const int rank : {0, 1}) run.put(rank, where, RankCall::all_gather);
  for (const int rank : {2, 3}) run.put_at_end(rank, RankCall::all_reduce);
  EXPECT_EQ(run.culprits().ranks, (Ranks{0, 1}));
  EXPECT_TRUE(run.culprits().is_tie);
  EXPECT_TRUE(run.sentence().starts_with("ranks 0 and 1 on ")) << run.sentence();
  EXPECT_NE(run.sentence().find("all of them have come there"), std::string::npos);
  EXPECT_EQ(run.culprits(1).ranks, Ranks{1});
  EXPECT_FALSE(run.culprits(1).is_tie);
  EXPECT_EQ(run.culprits(1).waiting, (Ranks{0, 2, 3}));
  // Rank 3 is stopped, but the others are waited for first.
  EXPECT_EQ(run.culprits(3).ranks, (Ranks{0, 1}));
}

// Rank 2 is in the same operation as the others, but a step behind.
TEST(Standstill, CountsSteps) {
  StandingRun run(tensor_request(4, 1));
  const std::int64_t where = run.nth(0, OperationKind::all_gather, 0);
  for (const int rank : {0, 1, 2, 3}) run.put(rank, where, RankCall::all_gather);
  run.head(2).steps_done = 2;
  for (std::int64_t i = 0; i < run.head(2).operations; ++i) {
    run.board(2).begun()[i] = i <= where ? 3 : 2;
  }
  EXPECT_EQ(run.culprits().ranks, Ranks{2});
  EXPECT_EQ(run.culprits().waiting, (Ranks{0, 1, 3}));
}

// Ranks with devices, whose hosts have enqueued the whole step. Stage 0 waits for a gradient while
// it sends its second message, for which stage 1 has not come, because stage 1 computes.
TEST(Standstill, LooksAtWhatDevicesAreInAndNotAtWhatWasHandedOver) {
  StandingRun run(stages_request(2));
  run.put_device(0,
                 {run.nth(0, OperationKind::send, 1),
                  run.nth(0, OperationKind::receive, 0, Phase::input_gradient)},
                 false);
  run.put_device(1, {run.nth(1, OperationKind::linear, 1)}, true);
  EXPECT_EQ(run.culprits().ranks, Ranks{1});
  EXPECT_EQ(run.culprits().waiting, Ranks{0});
}

TEST(Standstill, IsOfRankZeroWhileItTrainsTheNetworkAlone) {
  StandingRun run(tensor_request(2, 1));
  for (const int rank : {0, 1}) run.head(rank).state = RankState::unsharded;
  run.head(1).call = RankCall::broadcast;
  EXPECT_EQ(run.culprits().ranks, Ranks{0});
  EXPECT_EQ(run.culprits().waiting, Ranks{1});
}

TEST(Standstill, SaysWhoCannotBeSeen) {
  StandingRun run(tensor_request(2, 1));
  run.put(0, run.nth(0, OperationKind::all_gather, 1), RankCall::all_gather);
  run.hide(1);
  EXPECT_TRUE(run.culprits().ranks.empty());
  EXPECT_EQ(run.culprits().unseen, Ranks{1});
  EXPECT_TRUE(run.sentence().ends_with("; it waits for rank 1 on another host")) << run.sentence();
}

TEST(Standstill, NamesThreeOfManyAndListsTheOthers) {
  StandingRun run(tensor_request(2, 4));
  for (int rank = 0; rank < 8; ++rank) run.put(rank, 1);
  run.put(6, run.nth(0, OperationKind::all_gather, 1), RankCall::all_gather);
  const std::string sentence = run.sentence();
  EXPECT_NE(sentence.find("; rank 1 on "), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with("; and so it is with ranks 3 to 5 and 7; rank 6 waits for them"))
      << sentence;
}

}  // namespace
}  // namespace trainyard
