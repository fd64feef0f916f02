// Presenters that ask the core for more than an estimate: measured runs, the planner's search,
// lives of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/plan/plan_search.h"
#include "gui/presenters/run_lives.h"
#include "model/program/profile.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "scenarios/text/readable.h"
#include "scenarios/validation.h"
#include "scenarios/write/profile.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

std::string measured_run(const std::string& name, const std::string& seconds) {
  return R"({"trainyard": "scenario/1", "name": ")" + name + R"(", "model": "llama-3.1-8b",
    "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
    "training": {"global_batch": 16, "sequence_length": 4096},
    "plan": {"tensor_parallel": 2}, "measured": {"step_time": ")" +
         seconds + R"( s", "source": "made up"}})";
}

TEST(AccuracyCheck, ShowsTheWorstRunFirst) {
  const auto file = written(
      "runs.json", "[" + measured_run("near", "1") + ", " + measured_run("far", "1000") + "]");
  AccuracyCheck check;
  check.start({file});
  ASSERT_TRUE(wait_until([&] { return check.report() != nullptr; }))
      << check.problem().toStdString();
  AccuracyModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.set_report(check.report(), check.measured());
  ASSERT_EQ(model.rowCount(), 2);
  // Both runs are of the same job, but one took 1000 times as long, so their errors differ.
  const double first = std::abs(*model.at(0).error);
  EXPECT_GE(first, std::abs(*model.at(1).error));
  EXPECT_DOUBLE_EQ(*model.at(0).error, *model.at(0).predicted / *model.at(0).measured - 1);
}

TEST(AccuracyCheck, NamesTheFileThatIsNoDocument) {
  AccuracyCheck check;
  check.start({written("no.json", "{\n oops")});
  ASSERT_TRUE(wait_until([&] { return !check.problem().isEmpty(); }));
  EXPECT_TRUE(check.summary().contains(QStringLiteral("no.json: line 2")));
}

TEST(AccuracyCheck, SaysOfHowManyRunsItWasCancelled) {
  std::string runs = "[" + measured_run("0", "1");
  for (int i = 1; i < 400; ++i) runs += ", " + measured_run(std::to_string(i), "1");
  AccuracyCheck check;
  check.start({written("many-runs.json", runs + "]")});
  check.cancel();
  ASSERT_TRUE(wait_until([&] { return check.report() != nullptr; }));
  const std::size_t priced = check.report()->rows.size();
  ASSERT_LT(priced, 400u);
  EXPECT_TRUE(
      check.summary().startsWith(QStringLiteral("Cancelled after %1 of 400 runs").arg(priced)))
      << check.summary().toStdString();
}

// The two operations have larger errors than the step, but the step comes first.
TEST(AccuracyCheck, HasTheStepOfAProfileBeforeItsOperations) {
  Profile profile{.name = "two ranks", .backend = "cpu"};
  profile.steps = {{.time = Seconds(2)}};
  profile.predicted_step_time = Seconds(2.2);
  profile.operations = {
      {.operation = "norm", .tasks = 1, .measured = Seconds(1), .predicted = Seconds(3)},
      {.operation = "linear", .tasks = 1, .measured = Seconds(1), .predicted = Seconds(0.5)}};
  AccuracyCheck check;
  check.start({written("of-a-run.json", profile_document(profile))});
  ASSERT_TRUE(wait_until([&] { return !check.busy(); }));
  ASSERT_NE(check.report(), nullptr) << check.problem().toStdString();
  AccuracyModel model;
  model.set_report(check.report(), check.measured());
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.at(0).name, "step of two ranks");
  EXPECT_EQ(model.at(1).name, "stage 0: norm");
  // (3 − 1) / 1 and (0.5 − 1) / 1.
  EXPECT_EQ(check.summary(),
            "step of two ranks: measured 2.000 s, predicted 2.200 s (+10.0 %). "
            "2 operations: mean error 125.0 %, median 125.0 %, bias +75.0 %");
}

// The results are equal to the bit, since both searches use the same evaluator.
TEST(PlanSearch, FindsWhatTheCommandFinds) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}})",
                                                          "a.json"));
  PlanSearch presenter;
  presenter.start(question, Objective::step_time, 5);
  ASSERT_TRUE(wait_until([&] { return !presenter.busy(); }));
  ASSERT_NE(presenter.answer(), nullptr) << presenter.problem().toStdString();
  SearchOptions options = search_options(question->scenario);
  options.top = 5;
  const SearchResult expected = search(question->job, options, analytic_evaluator(question->job));
  const SearchResult& found = presenter.answer()->result;
  EXPECT_TRUE(found.optimal);
  ASSERT_EQ(expected.plans.size(), 5u);
  ASSERT_EQ(found.plans.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(found.plans[i].estimate.step_time, expected.plans[i].estimate.step_time);
  }
}

TEST(RunLives, BooksEverySecondOfTheRun) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "run": {"work": "2 days", "runs": 8}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan)});
  ASSERT_TRUE(wait_until([&] { return lives.answer() != nullptr; }))
      << lives.problem().toStdString();
  ASSERT_EQ(lives.answer()->days.size(), 8u);
  double booked = 0;
  for (const BarPart& part : lives.answer()->parts) booked += part.value / 86400;
  double mean = 0;
  for (const double days : lives.answer()->days) mean += days / 8;
  EXPECT_NEAR(booked, mean, 1e-6);
  EXPECT_GE(mean, 2);
}

// A run that loses half of its time. Failures are below the run, restarts below failures.
TEST(LossTree, AddsUpFromTheLeavesToTheRun) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "reliability": {"device_mtbf": "20 days"},
    "run": {"work": "5 days", "runs": 8}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan)});
  ASSERT_TRUE(wait_until([&] { return lives.answer() != nullptr; }))
      << lives.problem().toStdString();
  const std::vector<LossNode>& nodes = lives.answer()->losses;
  std::vector<double> below(nodes.size());
  for (const LossNode& node : nodes) {
    if (node.parent >= 0) below[static_cast<std::size_t>(node.parent)] += node.seconds;
  }
  int deepest = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (below[i] > 0) {
      EXPECT_NEAR(below[i], nodes[i].seconds, 1e-6 * nodes[i].seconds);
    }
    int depth = 0;
    for (int at = nodes[i].parent; at >= 0; at = nodes[static_cast<std::size_t>(at)].parent)
      ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_EQ(deepest, 3);
  double mean = 0;
  for (const double days : lives.answer()->days) mean += days * 86400 / 8;
  EXPECT_NEAR(nodes.front().seconds / mean, 1, 1e-6);

  LossModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.set_nodes(nodes);
  ASSERT_EQ(model.rowCount(), 1);
  const QModelIndex run = model.index(0, LossModel::label_column);
  EXPECT_EQ(run.siblingAtColumn(LossModel::share_column).data().toString(),
            QStringLiteral("100.0 %"));
  EXPECT_GE(model.rowCount(run), 3);
}

TEST(LossTree, SaysHoursOrMinutesOfWhatIsLessThanADay) {
  LossModel model;
  model.set_nodes({{-1, QStringLiteral("a"), 2 * 86400, 1},
                   {0, QStringLiteral("b"), 49159, 0.5},
                   {0, QStringLiteral("c"), 90, 0.5}});
  const QModelIndex run = model.index(0, LossModel::label_column);
  const auto time = [&](int row) {
    return model.index(row, LossModel::time_column, run).data().toString();
  };
  EXPECT_EQ(time(0), "13.66 h");  // 49,159 / 3,600
  EXPECT_EQ(time(1), "1.500 min");
}

// Every life ends after the same given duration, so there is one time and no range.
TEST(RunLives, SaysOneTimeWhereAllLivesTakeAsLong) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "run": {"duration": "5 days", "runs": 8}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan), {}});
  ASSERT_TRUE(wait_until([&] { return lives.answer() != nullptr; }));
  EXPECT_TRUE(lives.answer()->summary.contains(QStringLiteral("the run takes 5.00 days; ")))
      << lives.answer()->summary.toStdString();
}

// Like the command: the simulated lives of a plan that does not fit are no answer.
TEST(RunLives, SaysThatThePlanDoesNotFit) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-405b", "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 8},
    "run": {"work": "2 days", "runs": 4}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan), {}});
  ASSERT_TRUE(wait_until([&] { return !lives.busy(); }));
  ASSERT_NE(lives.answer(), nullptr) << lives.problem().toStdString();
  EXPECT_TRUE(lives.answer()->misfits);
  EXPECT_TRUE(lives.answer()->summary.contains(
      QStringLiteral("; the plan does not fit: stage 0 needs 910.7 GiB of 80.00 GiB")))
      << lives.answer()->summary.toStdString();
}

// Lives that are given up do not tell how long the run takes or what it costs.
TEST(RunLives, SaysThatRunsAreGivenUp) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "reliability": {"device_mtbf": "1 h"}, "price": "2 USD/h",
    "run": {"work": "2 days", "runs": 4}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan), {}});
  ASSERT_TRUE(wait_until([&] { return !lives.busy(); }));
  ASSERT_NE(lives.answer(), nullptr) << lives.problem().toStdString();
  const QString& summary = lives.answer()->summary;
  EXPECT_TRUE(summary.contains(QStringLiteral("; how long the run takes is not known; ")))
      << summary.toStdString();
  EXPECT_TRUE(summary.contains(QStringLiteral("the others are given up"))) << summary.toStdString();
  EXPECT_FALSE(summary.contains(QStringLiteral("USD"))) << summary.toStdString();
}

TEST(RunLives, SaysAfterHowManyRunsItWasCancelled) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "reliability": {"device_mtbf": "20 days"},
    "run": {"work": "100 days", "runs": 100000}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  QObject::connect(&lives, &RunLives::progressed, &lives, &RunLives::cancel);
  lives.start(question, {plan, estimate(question->job, plan)});
  ASSERT_TRUE(wait_until([&] { return lives.answer() != nullptr; }))
      << lives.problem().toStdString();
  const QString head = QStringLiteral("Cancelled after %1 of 100,000 runs. Goodput")
                           .arg(QString::fromStdString(count(std::ssize(lives.answer()->days))));
  EXPECT_TRUE(lives.answer()->summary.startsWith(head)) << lives.answer()->summary.toStdString();
  EXPECT_EQ(lives.answer()->question, question);
}

TEST(RunLives, KeepsTheAnswerBeforeWhereItIsCancelledBeforeTheFirstRun) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2},
    "run": {"work": "2 days", "runs": 8}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  const Candidate candidate{plan, estimate(question->job, plan)};
  RunLives lives;
  lives.start(question, candidate);
  ASSERT_TRUE(wait_until([&] { return !lives.busy(); }));
  const auto before = lives.answer();
  ASSERT_NE(before, nullptr);
  question = std::make_shared<Question>(*question);
  question->scenario.run.work = Seconds(3e9);  // a century: no life ends before the cancel
  question->scenario.reliability.device_mtbf = Seconds(1e6);
  lives.start(question, candidate);
  lives.cancel();
  ASSERT_TRUE(wait_until([&] { return !lives.busy(); }));
  EXPECT_EQ(lives.answer(), before);
  EXPECT_EQ(lives.problem(), QStringLiteral("Cancelled before the first run."));
  lives.start(std::make_shared<Question>(*before->question), candidate);
  ASSERT_TRUE(wait_until([&] { return !lives.busy(); }));
  EXPECT_NE(lives.answer(), before);
  EXPECT_TRUE(lives.problem().isEmpty());
}

TEST(RunLives, SaysWhatTheScenarioMustHave) {
  auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
    "training": {"global_batch": 64, "sequence_length": 4096}, "plan": {"tensor_parallel": 2}})",
                                                          "a.json"));
  const Plan plan = *requested_plan(question->scenario, question->job);
  RunLives lives;
  lives.start(question, {plan, estimate(question->job, plan)});
  ASSERT_TRUE(wait_until([&] { return !lives.problem().isEmpty(); }));
  EXPECT_TRUE(lives.problem().contains(QStringLiteral("length of the run")));
}

}  // namespace
}  // namespace trainyard
