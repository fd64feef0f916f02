// Every model under Qt's own tester, which checks indices, parents and signals at each change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <array>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/document/form_model.h"
#include "gui/presenters/emphasis.h"
#include "gui/presenters/plan/candidate_model.h"
#include "gui/presenters/plan/plan_search.h"
#include "gui/presenters/plan/variants_model.h"
#include "gui/presenters/text.h"
#include "model/cost/estimate.h"
#include "planner/passes/auto_schedule.h"
#include "scenarios/editing.h"
#include "scenarios/form.h"
#include "scenarios/json/file.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

using Mode = QAbstractItemModelTester::FailureReportingMode;

std::string small_scenario() {
  return R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
             "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
             "training": {"global_batch": 64, "sequence_length": 4096}})";
}

TEST(Text, KeepsANumberAndItsUnitOnOneLine) {
  const auto shown = [](const char* text) {
    return unbroken(QString::fromUtf8(text)).replace(QChar::Nbsp, QLatin1Char('_')).toStdString();
  };
  EXPECT_EQ(shown("4.468 s (25.1 %). 3 stages"), "4.468_s (25.1_%). 3 stages");
  EXPECT_EQ(shown("80.00 GiB of 2.3 TiB, 0 µs, 2 days"), "80.00_GiB of 2.3_TiB, 0_µs, 2_days");
  EXPECT_EQ(shown("450.0 GB/s, 1 MB/step"), "450.0_GB/\u2060s, 1_MB/step");
  EXPECT_EQ(shown("launch (80 ×, predicted 96.47 µs)"), "launch (80_×, predicted 96.47_µs)");
  EXPECT_EQ(shown("TP 8 · micro-batch 1 · 2 sorts"), "TP 8 · micro-batch 1 · 2 sorts");
}

// The tester aborts through qFatal where a model breaks a rule.
TEST(FormModel, KeepsTheRulesOfAModelWhileTheDocumentChanges) {
  FormModel model;
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  model.set_form(*form_of(small_scenario()));
  const QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
  model.set_form(*form_of(*with_typed(small_scenario(), "/cluster/nodes", "4")));
  EXPECT_EQ(resets.count(), 0);  // so that unfolded rows stay unfolded
  EXPECT_EQ(model.index_of("/cluster/nodes").siblingAtColumn(1).data().toString(), "4");
  model.set_form(*form_of(*with_value(small_scenario(), "/model", R"({"layers": 2})")));
  EXPECT_EQ(resets.count(), 1);
  EXPECT_TRUE(model.index_of("/model/layers").isValid());
}

TEST(FormModel, SendsOutWhatIsTyped) {
  FormModel model;
  model.set_form(*form_of(small_scenario()));
  std::string typed;
  QObject::connect(
      &model, &FormModel::typed,
      [&](const std::string& pointer, const std::string& text) { typed = pointer + "=" + text; });
  const QModelIndex price = model.index_of("/price").siblingAtColumn(FormModel::value_column);
  EXPECT_TRUE(model.setData(price, QStringLiteral("2.99 USD/h")));
  EXPECT_EQ(typed, "/price=2.99 USD/h");
}

TEST(FormModel, MarksTheRowOfAProblem) {
  FormModel model;
  model.set_form(*form_of(small_scenario()));
  model.set_problem("/training/global_batch/0", QStringLiteral("wrong"));
  EXPECT_TRUE(model.index_of("/training/global_batch").data(problem_role).toBool());
  model.set_problem("", {});
  EXPECT_FALSE(model.index_of("/training/global_batch").data(problem_role).toBool());
}

class Candidates : public testing::Test {
 protected:
  void SetUp() override {
    auto question = std::make_shared<Question>(*question_of(small_scenario(), "a.json"));
    search_.start(question, Objective::step_time, 20);
    ASSERT_TRUE(wait_until([this] { return search_.answer() != nullptr; }));
  }
  PlanSearch search_;
};

TEST_F(Candidates, AreThePlansOfTheSearchBestFirst) {
  CandidateModel model;
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  model.set_answer(search_.answer());
  ASSERT_EQ(model.rowCount(), 20);
  for (int row = 1; row < model.rowCount(); ++row) {
    EXPECT_LE(model.axis_value(row - 1, 0), model.axis_value(row, 0));
  }
  EXPECT_TRUE(model.pareto(0, 1)[0]);  // nothing is faster than the fastest
}

// A plan without a pipeline has neither a schedule nor a bubble. The command shows "–" for the
// schedule and leaves the bubble out.
TEST_F(Candidates, OfOneStageHaveNoScheduleAndNoBubble) {
  CandidateModel model;
  model.set_answer(search_.answer());
  const auto column = [&](const QString& name) {
    for (int at = 0; at < model.columnCount(); ++at) {
      if (model.headerData(at, Qt::Horizontal).toString() == name) return at;
    }
    return -1;
  };
  const int bubble = column(QStringLiteral("Bubble"));
  const int schedule = column(QStringLiteral("Schedule"));
  ASSERT_GE(bubble, 0);
  int of_one_stage = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.at(row).plan.pipeline_parallel > 1) continue;
    ++of_one_stage;
    EXPECT_EQ(model.index(row, bubble).data().toString(), QStringLiteral("–"));
    if (schedule < 0) continue;  // no column: all plans have the same schedule
    EXPECT_EQ(model.index(row, schedule).data().toString(), QStringLiteral("–"));
  }
  EXPECT_GT(of_one_stage, 0);
}

// Checks the definition of the Pareto front by comparing each pair of plans.
TEST_F(Candidates, OnTheFrontAreThoseThatNoOtherBeatsInBoth) {
  CandidateModel model;
  model.set_answer(search_.answer());
  const std::vector<bool> front = model.pareto(0, 1);
  for (int row = 0; row < model.rowCount(); ++row) {
    bool beaten = false;
    for (int other = 0; other < model.rowCount(); ++other) {
      const double time = model.axis_value(other, 0) - model.axis_value(row, 0);
      const double memory = model.axis_value(other, 1) - model.axis_value(row, 1);
      beaten = beaten || (time <= 0 && memory <= 0 && (time < 0 || memory < 0));
    }
    if (front[static_cast<std::size_t>(row)]) {
      EXPECT_FALSE(beaten) << row;
    }
  }
}

TEST_F(Candidates, AreFilteredByColumnAndSortedByValue) {
  CandidateModel model;
  CandidateFilter filter;
  filter.setSourceModel(&model);
  const QAbstractItemModelTester tester(&filter, Mode::Fatal);
  model.set_answer(search_.answer());
  int with_zero_one = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    with_zero_one += model.at(row).plan.zero_stage == 1 ? 1 : 0;
  }
  filter.set_filter(QStringLiteral("zero=1"));
  EXPECT_EQ(filter.rowCount(), with_zero_one);
  filter.set_filter({});
  filter.sort(1, Qt::DescendingOrder);
  const auto memory = [&](int row) {
    return filter.index(row, 1).data(CandidateModel::sort_role).toDouble();
  };
  for (int row = 1; row < filter.rowCount(); ++row) EXPECT_GE(memory(row - 1), memory(row));
}

TEST_F(Candidates, ArePinnedAndComparedWithTheFirst) {
  VariantsModel variants;
  const QAbstractItemModelTester tester(&variants, Mode::Fatal);
  const std::vector<Candidate>& plans = search_.answer()->candidates();
  variants.set_now(plans[0]);
  variants.pin();
  variants.set_now(plans[5]);
  variants.pin();
  EXPECT_EQ(variants.columnCount(), 3);
  EXPECT_EQ(variants.headerData(1, Qt::Horizontal).toString(), "B");
  EXPECT_FALSE(variants.index(0, 0).data().toString().contains(QLatin1Char('(')));
  const double slower = plans[5].estimate.step_time / plans[0].estimate.step_time;
  EXPECT_EQ(variants.index(0, 1).data().toString().contains(QLatin1Char('+')), slower > 1.0);
  variants.unpin(0);
  EXPECT_EQ(variants.headerData(0, Qt::Horizontal).toString(), "B");
}

// 42 % beside 40 % are 2 points more, not 5 %.
TEST_F(Candidates, DifferInPointsOfTheirMfu) {
  VariantsModel variants;
  Candidate first = search_.answer()->candidates()[0];
  first.estimate.mfu = 0.40;
  Candidate second = first;
  second.estimate.mfu = 0.42;
  variants.set_now(first);
  variants.pin();
  variants.set_now(second);
  int row = 0;
  while (variants.headerData(row, Qt::Vertical).toString() != QStringLiteral("MFU")) ++row;
  EXPECT_EQ(variants.index(row, 1).data().toString(), "42.0 % (+2.0 points)");
}

TEST_F(Candidates, ArePinnedWithTheirScenario) {
  VariantsModel variants;
  const auto question = search_.answer()->question;
  variants.set_now(search_.answer()->candidates()[0], question);
  variants.pin();
  using Age = VariantsModel::Age;
  variants.mark(
      [&](const auto& of) { return of == question ? Age::present : Age::before_a_change; });
  EXPECT_EQ(variants.headerData(0, Qt::Horizontal).toString(), "A");
  variants.mark([](const auto&) { return Age::before_a_change; });
  EXPECT_EQ(variants.headerData(0, Qt::Horizontal).toString(), "A, before the last change");
  variants.mark([](const auto&) { return Age::of_another_document; });
  EXPECT_EQ(variants.headerData(0, Qt::Horizontal).toString(), "A, of another scenario");
}

// Each choice that tells two plans apart is in the text of one and in a column of its own.
TEST_F(Candidates, ThatDifferInOneChoiceLookDifferent) {
  auto answer = std::make_shared<SearchAnswer>(*search_.answer());
  Candidate plain = answer->result.plans.front();
  plain.plan.context_parallel = 2;
  plain.plan.zero_stage = 1;
  plain.plan.sharding_group = plain.plan.data_parallel * plain.plan.context_parallel;
  std::vector<Candidate> others(4, plain);
  others[0].plan.context_parallel_algorithm = ContextAlgorithm::ulysses;
  others[1].plan.offload.optimizer = OffloadTarget::host;
  others[2].plan.sharding_group = 1;
  others[3].plan.rank_order = "tp-cp-ep-pp-dp";
  const std::array<std::pair<const char*, const char*>, 4> expected = {
      {{"CP by", "ulysses"},
       {"Offload", "optimizer on host"},
       {"Shards", "1"},
       {"Rank order", "tp-cp-ep-pp-dp"}}};
  CandidateModel model;
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(plan_text(others[i].plan), plan_text(plain.plan)) << i;
    EXPECT_TRUE(plan_text(others[i].plan).contains(QLatin1String(expected[i].second))) << i;
    answer->result.plans = {plain, plain};
    model.set_answer(std::make_shared<SearchAnswer>(*answer));
    const int alike = model.columnCount();
    answer->result.plans = {plain, others[i]};
    model.set_answer(std::make_shared<SearchAnswer>(*answer));
    ASSERT_EQ(model.columnCount(), alike + 1) << i;
    EXPECT_EQ(model.headerData(alike, Qt::Horizontal).toString(), expected[i].first);
    EXPECT_EQ(model.index(1, alike).data().toString(), expected[i].second);
  }
}

}  // namespace
}  // namespace trainyard
