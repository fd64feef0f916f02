#include "gui/presenters/plan/explore.h"

#include <QCoreApplication>
#include <algorithm>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/plan/plan_knobs.h"
#include "gui/presenters/text.h"
#include "planner/findings/baseline.h"
#include "planner/passes/auto_schedule.h"
#include "planner/request.h"
#include "scenarios/plan_value.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

PlanRequest first_request(const Question& question) {
  if (question.scenario.plan) return *question.scenario.plan;
  const SearchOptions options = search_options(question.scenario);
  const auto simple = rule_of_thumb(question.job, options.base, analytic_evaluator(question.job));
  return simple ? request_of(simple->plan) : options.base;
}

// Gives keys that the request leaves open the values that the plan was made with, so that controls
// show them. The schedule `auto` chooses the number of chunks again for every plan.
PlanRequest settled(PlanRequest request, const Plan& plan) {
  request.sequence_parallel = plan.sequence_parallel;
  request.zero_stage = plan.zero_stage;
  if (request.schedule != kAutoSchedule) request.virtual_stages = plan.virtual_stages;
  return request;
}

ExploreControl control_of(const PlanKnob& knob, const PlanRequest& request, const Job& job) {
  ExploreControl control{.key = QLatin1String(knob.key),
                         .label = QCoreApplication::translate("PlanKnobs", knob.label),
                         .help = QCoreApplication::translate("PlanKnobs", knob.help),
                         .values = legal_values(knob, request, job),
                         .is_degree = knob.is_degree};
  for (const int value : control.values) control.names.append(knob.name(value));
  const auto at = std::ranges::find(control.values, knob.get(request));
  control.at = static_cast<int>(at - control.values.begin());
  return control;
}

// Keeps remedies that fit if the plan does not fit, and remedies that are faster if it does.
void keep_what_helps(const Candidate& candidate, Remedies& remedies) {
  const Estimate& now = candidate.estimate;
  const auto is_of_no_use = [&](const Remedy& remedy) {
    constexpr double kLeast = 0.0005;  // fraction of the step; it is shown as 0.1 %, less as 0.0 %
    return now.feasible ? !remedy.fits || remedy.saved < now.step_time * kLeast : !remedy.fits;
  };
  const bool none_fits = std::ranges::none_of(remedies.plans, &Remedy::fits);
  if (!now.feasible && none_fits && !remedies.plans.empty()) {
    remedies.closest = remedies.plans.front();
  }
  std::erase_if(remedies.plans, is_of_no_use);
  std::erase_if(remedies.hardware, is_of_no_use);
}

}  // namespace

// If the search for remedies fails, there are none.
Explore::Explore(QObject* parent) : QObject(parent), work_(*this, [](const QString&) {}) {}
Explore::~Explore() = default;

void Explore::set_question(std::shared_ptr<const Question> question, const QString& why_none) {
  question_ = std::move(question);
  why_no_question_ = why_none.isEmpty() ? tr("The scenario cannot be read yet.") : why_none;
  is_rule_of_thumb_ = question_ && !question_->scenario.plan;
  // A text that is wrong while it is typed has no plan; the one to be named is that before it.
  if (is_chosen_ && candidate_) replaced_ = candidate_->plan;
  is_chosen_ = false;
  if (question_) request_ = first_request(*question_);
  answer();
  if (candidate_ && replaced().isEmpty()) replaced_.reset();
}

void Explore::leave_document() {
  is_chosen_ = false;
  replaced_.reset();
}

void Explore::choose(const QString& key, int at) {
  if (!question_) return;
  const auto control = std::ranges::find(controls_, key, &ExploreControl::key);
  const auto knobs = plan_knobs();
  const auto knob = std::ranges::find_if(
      knobs, [&](const PlanKnob& one) { return key == QLatin1String(one.key); });
  if (control == controls_.end() || knob == knobs.end()) return;
  const int value = control->values[static_cast<std::size_t>(at)];
  if (value == knob->get(request_)) return;
  set_request(turned(request_, *knob, value));
}

void Explore::set_request(const PlanRequest& request) {
  request_ = request;
  is_rule_of_thumb_ = false;
  is_chosen_ = true;
  replaced_.reset();
  answer();
}

QString Explore::origin() const {
  if (!is_rule_of_thumb_ || !candidate_) return {};
  return tr(
      "The scenario has no plan: this is what a rule of thumb makes of it. The Plan page "
      "searches for the best one, as the command does.");
}

// A plan that was written into the scenario is there again.
QString Explore::replaced() const {
  if (!replaced_ || age_of(*replaced_).isEmpty()) return {};
  return tr("The scenario was edited, so this is its plan again. The one chosen here was %1.")
      .arg(plan_text(*replaced_));
}

QString Explore::assumed() const {
  QStringList lines;
  if (!candidate_) return {};
  for (const std::string& assumption : question_->scenario.assumptions) {
    lines.append(tr("Assumed: %1").arg(qt(assumption)));
  }
  return lines.join(QLatin1Char('\n'));
}

QString Explore::age_of(const Plan& plan) const {
  if (!candidate_ || plan_value(candidate_->plan) == plan_value(plan)) return {};
  return tr("Of another plan than the Explore page has now: ");
}

void Explore::answer() {
  controls_.clear();
  candidate_.reset();
  remedies_ = {};
  problem_ = question_ ? QString() : why_no_question_;
  if (question_) {
    const Job& job = question_->job.job;
    auto plan = complete_plan(question_->job, request_);
    if (plan) {
      request_ = settled(std::move(request_), *plan);
      Estimate found = estimate(question_->job, *plan);
      candidate_ = Candidate{*std::move(plan), std::move(found)};
    } else {
      problem_ = qt(plan.error());
    }
    for (const PlanKnob& knob : plan_knobs()) {
      controls_.push_back(control_of(knob, request_, job));
    }
  }
  Q_EMIT changed();
  find_remedies();
}

void Explore::find_remedies() {
  if (!candidate_) {
    work_.stop();
    return;
  }
  work_.start([this, question = question_, candidate = *candidate_,
               asked = request_](const std::atomic<bool>& stop) {
    Remedies found;
    const auto is_over = [&stop](double) { return stop.load(); };
    found.plans =
        plan_remedies(question->job, candidate, analytic_evaluator(question->job), is_over, asked);
    found.hardware = hardware_remedies(question->job, candidate, analytic_evaluator, is_over);
    keep_what_helps(candidate, found);
    return Background::Done([this, found = std::move(found)] {
      remedies_ = found;
      Q_EMIT remedies_changed();
    });
  });
}

}  // namespace trainyard
