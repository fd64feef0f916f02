#include "gui/presenters/plan/plan_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/bound/bound.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

constexpr int kReportEvery = 60;  // ms

}  // namespace

// Progress, which the search's threads write and the window reads.
struct PlanSearch::Live {
  std::atomic<double> fraction = 0;
  std::atomic<std::int64_t> priced = 0;
  std::atomic<double> best = std::numeric_limits<double>::infinity();
  std::atomic<double> bound = 0;  // lower bound on the objective of every plan
  std::atomic<bool> cancelled = false;

  void offer(double value) {
    double best_so_far = best;
    while (value < best_so_far && !best.compare_exchange_weak(best_so_far, value)) {
    }
  }
};

PlanSearch::PlanSearch(QObject* parent)
    : QObject(parent), work_(*this, [this](const QString& why) { end(answer_, why); }) {
  reports_.setInterval(kReportEvery);
  connect(&reports_, &QTimer::timeout, this, &PlanSearch::report);
}
PlanSearch::~PlanSearch() = default;

void PlanSearch::start(std::shared_ptr<const Question> question, Objective objective, int top) {
  auto live = std::make_shared<Live>();
  live_ = live;
  work_.start(
      [this, live, question = std::move(question), objective, top](const std::atomic<bool>& stop) {
        auto answer = std::make_shared<SearchAnswer>();
        answer->question = question;
        answer->options = search_options(question->scenario);
        answer->options.objective = objective;
        answer->options.top = top;
        SearchOptions options = answer->options;
        live->bound = objective_bound(question->job, parameter_shares(question->job), objective,
                                      offloads_of(question->job.job, options.space, options.base));
        options.interrupted = &stop;
        options.progress = [live](double fraction) { live->fraction = fraction; };
        const Evaluator price = analytic_evaluator(question->job);
        answer->result = search(question->job, options, [&](const Plan& plan, Estimate& out) {
          price(plan, out);
          ++live->priced;
          if (!out.feasible) return;
          live->offer(objective_value(question->job, options.valuation, objective, plan, out));
        });
        answer->cancelled = live->cancelled;
        return Background::Done([this, answer = std::move(answer)] { end(answer, QString()); });
      });
  reports_.start();
  Q_EMIT started();
}

void PlanSearch::end(std::shared_ptr<const SearchAnswer> answer, const QString& problem) {
  reports_.stop();
  answer_ = std::move(answer);
  problem_ = problem;
  Q_EMIT finished();
}

void PlanSearch::cancel() {
  if (live_) live_->cancelled = true;
  work_.stop();
}

void PlanSearch::report() {
  const double best = live_->best;
  const double gap = std::isfinite(best) && best > 0 ? 1 - live_->bound / best : 1;
  Q_EMIT progressed({live_->fraction, live_->priced, best, std::clamp(gap, 0.0, 1.0)});
}

}  // namespace trainyard
