#include "gui/presenters/execution/rank_watch.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "gui/presenters/emphasis.h"
#include "gui/presenters/execution/rank_model.h"

namespace trainyard {
namespace {

RankStatus running(int rank, std::int64_t operation, const char* call = "") {
  return {.rank = rank,
          .host = "here",
          .state = "running",
          .steps_done = 4,
          .steps = 10,
          .operation = operation,
          .operations = 100,
          .at = "linear (mlp up), forward",
          .call = call,
          .step_time = Seconds(0.25),
          .peak_memory = Bytes(1 << 30)};
}

// Five looks a second for six seconds, during which the ranks make progress.
template <typename Ranks>
RankWatch watched(const Ranks& ranks_at) {
  RankWatch watch;
  for (int i = 0; i < 30; ++i) watch.look(i * 0.2, ranks_at(i));
  return watch;
}

TEST(RankWatch, NamesTheRankThatTheOthersWaitFor) {
  const RankWatch watch = watched([](int i) {
    return std::vector{running(0, i, "all-reduce"), running(1, i), running(2, i, "all-reduce")};
  });
  EXPECT_EQ(watch.behind(), 1);
  EXPECT_DOUBLE_EQ(watch.share(1), 1);
  EXPECT_DOUBLE_EQ(watch.share(0), 0);
  EXPECT_TRUE(watch.alert().startsWith(QStringLiteral("Rank 1 on here falls behind")))
      << watch.alert().toStdString();
  EXPECT_TRUE(watch.alert().contains(QStringLiteral("step 4, linear (mlp up), forward")));
}

// The stages of a pipeline wait for each other in turn.
TEST(RankWatch, SaysNothingWhereRanksWaitInTurn) {
  const RankWatch watch = watched([](int i) {
    return std::vector{running(0, i, i % 2 == 0 ? "" : "receive"),
                       running(1, i, i % 2 == 0 ? "receive" : "")};
  });
  EXPECT_EQ(watch.behind(), -1);
  EXPECT_TRUE(watch.alert().isEmpty()) << watch.alert().toStdString();
  EXPECT_NEAR(watch.share(0), 0.5, 0.05);
}

TEST(RankWatch, SaysNothingOfRanksThatAllComputeOrHaveNotBegun) {
  const RankWatch together = watched([](int i) {
    return std::vector{running(0, i), running(1, i)};
  });
  EXPECT_TRUE(together.alert().isEmpty());
  const RankWatch alone = watched([](int i) { return std::vector{running(0, i)}; });
  EXPECT_TRUE(alone.alert().isEmpty());
  const RankWatch starting = watched([](int) {
    return std::vector{RankStatus{.rank = 0, .state = "starting"}, running(1, 0)};
  });
  EXPECT_DOUBLE_EQ(starting.share(1), 0);
}

TEST(RankWatch, ForgetsWhatIsLongAgo) {
  RankWatch watch = watched([](int i) {
    return std::vector{running(0, i, "all-reduce"), running(1, i)};
  });
  ASSERT_EQ(watch.behind(), 1);
  for (int i = 30; i < 60; ++i) watch.look(i * 0.2, {running(0, i), running(1, i)});
  EXPECT_EQ(watch.behind(), -1);
  EXPECT_DOUBLE_EQ(watch.share(1), 0);
}

// All ranks wait. The one that has done least is where the others have been before.
TEST(RankWatch, NamesTheRankFurthestBehindWhereNothingGoesOn) {
  const RankWatch watch = watched([](int) {
    return std::vector{running(0, 50, "all-reduce"), running(1, 20, "send")};
  });
  EXPECT_EQ(watch.behind(), 1);
  EXPECT_TRUE(watch.alert().startsWith(QStringLiteral("No rank has begun an operation for ")))
      << watch.alert().toStdString();
  EXPECT_TRUE(watch.alert().endsWith(QStringLiteral(", in send."))) << watch.alert().toStdString();
}

TEST(RankWatch, NamesNobodyWhereAllWaitAtOnePlace) {
  const RankWatch watch = watched([](int) {
    return std::vector{running(0, 50, "all-gather"), running(1, 50, "all-gather")};
  });
  EXPECT_EQ(watch.behind(), -1);
  EXPECT_TRUE(watch.alert().endsWith(
      QStringLiteral("they are at step 4, linear (mlp up), forward, in all-gather.")))
      << watch.alert().toStdString();
}

TEST(RankModel, ShowsARowForEachRank) {
  RankModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  EXPECT_EQ(model.rowCount(), 0);
  const RankWatch watch = watched([](int i) {
    return std::vector{running(0, i, "all-reduce"), running(1, i)};
  });
  model.set_watch(watch);
  ASSERT_EQ(model.rowCount(), 2);
  QStringList cells, heads;
  for (int column = 0; column < model.columnCount(); ++column) {
    heads.append(model.headerData(column, Qt::Horizontal).toString());
    cells.append(model.index(1, column).data().toString());
  }
  EXPECT_EQ(cells[0], QStringLiteral("1"));
  EXPECT_TRUE(cells.contains(QStringLiteral("4 of 10"))) << cells.join('|').toStdString();
  EXPECT_TRUE(cells.contains(QStringLiteral("250.0 ms"))) << cells.join('|').toStdString();
  EXPECT_TRUE(cells.contains(QStringLiteral("100.0 %"))) << cells.join('|').toStdString();
  EXPECT_TRUE(cells.contains(QStringLiteral("30 of 100: linear (mlp up), forward")))
      << cells.join('|').toStdString();
  EXPECT_FALSE(heads.contains(QString()));
  EXPECT_TRUE(model.index(1, 0).data(strong_role).toBool());  // falls behind
  EXPECT_FALSE(model.index(0, 0).data(strong_role).toBool());
  model.set_watch({});
  EXPECT_EQ(model.rowCount(), 0);
}

}  // namespace
}  // namespace trainyard
