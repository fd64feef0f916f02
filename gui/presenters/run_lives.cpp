#include "gui/presenters/run_lives.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"
#include "simulator/life/bill.h"
#include "simulator/life/campaign.h"

namespace trainyard {
namespace {

struct Part {
  Spent kind;
  const char* colour;  // key of colour_of()
  const char* label;
};

constexpr int kTuningRuns = 40;  // lives simulated for each interval, as `trainyard goodput` does

constexpr std::array<Part, kSpentKinds> kParts = {{
    {Spent::useful, "compute", QT_TRANSLATE_NOOP("trainyard::RunLives", "useful training")},
    {Spent::checkpoint, "optimizer", QT_TRANSLATE_NOOP("trainyard::RunLives", "checkpoints")},
    {Spent::lost, "pipeline", QT_TRANSLATE_NOOP("trainyard::RunLives", "work done again")},
    {Spent::detection, "tensor_parallel", QT_TRANSLATE_NOOP("trainyard::RunLives", "detection")},
    {Spent::diagnosis, "context_parallel", QT_TRANSLATE_NOOP("trainyard::RunLives", "diagnosis")},
    {Spent::rescheduling, "expert_parallel",
     QT_TRANSLATE_NOOP("trainyard::RunLives", "another node")},
    {Spent::starting, "data_parallel",
     QT_TRANSLATE_NOOP("trainyard::RunLives", "starting processes")},
    {Spent::loading, "copy", QT_TRANSLATE_NOOP("trainyard::RunLives", "loading")},
    {Spent::warming_up, "launch", QT_TRANSLATE_NOOP("trainyard::RunLives", "warm-up")},
    {Spent::waiting, "bubble", QT_TRANSLATE_NOOP("trainyard::RunLives", "waiting for a repair")},
    {Spent::maintenance, "other", QT_TRANSLATE_NOOP("trainyard::RunLives", "maintenance")},
    {Spent::degraded, "embedding_head", QT_TRANSLATE_NOOP("trainyard::RunLives", "stragglers")},
}};

QString days_text(double seconds) {
  return RunLives::tr("%1 days").arg(qt(number(Seconds(seconds) / kDay, 3)));
}

// The median and the range, or the median alone if the range is empty.
QString wall_text(const Quantiles& wall) {
  const QString median = days_text(wall.median);
  return wall.low == wall.high
             ? median
             : RunLives::tr("%1 (%2 to %3)").arg(median, days_text(wall.low), days_text(wall.high));
}

QString summary_of_lives(const Question& question, const Candidate& candidate,
                         const LifeSettings& settings, const Campaign& campaign) {
  const Bill bill = bill_of(question.job.job.cluster, candidate.estimate, settings, campaign);
  const bool ended = all_ended(settings, campaign);
  const QString takes = ended ? RunLives::tr("the run takes %1").arg(wall_text(campaign.wall))
                              : RunLives::tr("how long the run takes is not known");
  QString text =
      RunLives::tr("Goodput %1 (%2 to %3, 10\u2060–\u206090\u00a0%); %4; %5 interruptions")
          .arg(percent_text(campaign.goodput.mean), percent_text(campaign.goodput.low),
               percent_text(campaign.goodput.high), takes,
               qt(number(campaign.interruptions.mean, 3)));
  if (bill.cost && ended) text += RunLives::tr("; %1 USD").arg(qt(short_scale(bill.cost->value())));
  const bool has_an_end = campaign.wall.low < campaign.wall.high;
  if (!ended) {
    text += RunLives::tr("; %1 of the runs end, the others are given up at their pace")
                .arg(percent_text(campaign.finished));
  } else if (has_an_end && campaign.finished < 1) {
    text += RunLives::tr("; %1 of the runs end in time").arg(percent_text(campaign.finished));
  }
  const QString misfit = misfit_text(candidate.estimate, question.job.job.cluster);
  return misfit.isEmpty() ? text : text + RunLives::tr("; the plan does not fit: %1").arg(misfit);
}

std::shared_ptr<const LivesAnswer> answer_of(const std::shared_ptr<const Question>& question,
                                             const Candidate& candidate,
                                             const LifeSettings& settings,
                                             const std::vector<Life>& lives) {
  const Campaign campaign = summary_of(lives);
  auto answer = std::make_shared<LivesAnswer>();
  for (const Part& part : kParts) {
    const Seconds time = campaign.of(part.kind);
    if (time <= Seconds(0)) continue;
    answer->parts.push_back({part.colour, RunLives::tr(part.label),
                             RunLives::tr("%1, %2").arg(days_text(time.value()),
                                                        percent_text(campaign.share(part.kind))),
                             time.value()});
  }
  answer->losses = loss_tree(campaign);
  for (const Life& life : lives) answer->days.push_back(to_seconds(life.wall()) / kDay);
  if (campaign.wall.low < campaign.wall.high) {
    answer->spread = answer->days;
    answer->spread_unit = RunLives::tr("days");
    answer->spread_name = RunLives::tr("How long the run takes, over its simulated lives");
  } else {
    for (const Life& life : lives) answer->spread.push_back(100 * life.goodput());
    answer->spread_unit = QStringLiteral("%");
    answer->spread_name = RunLives::tr("Goodput, over the simulated lives of the run");
  }
  answer->question = question;
  answer->plan = candidate.plan;
  answer->summary = summary_of_lives(*question, candidate, settings, campaign);
  answer->misfits = !candidate.estimate.feasible;
  answer->settings = settings;
  const GoodputEstimate closed =
      estimate_goodput(question->job, candidate.plan, settings.step, question->scenario.reliability,
                       question->scenario.checkpoint);
  answer->young = closed.young;
  answer->daly = closed.daly;
  answer->around = std::max(closed.daly, closed.shortest);
  const int asked = question->scenario.run.runs;
  answer->is_whole = !std::cmp_less(lives.size(), asked);
  if (!answer->is_whole) {
    answer->summary = RunLives::tr("Cancelled after %1 of %2 runs. %3")
                          .arg(qt(count(std::ssize(lives))), qt(count(asked)), answer->summary);
  }
  return answer;
}

}  // namespace

RunLives::RunLives(QObject* parent)
    : QObject(parent),
      work_(*this, [this](const QString& why) { show(nullptr, why); }),
      tuning_(*this, [this](const QString&) { Q_EMIT tuned(); }) {}
RunLives::~RunLives() = default;

void RunLives::start(std::shared_ptr<const Question> question, const Candidate& candidate) {
  tuning_.stop();
  Q_EMIT started();
  work_.start([this, question = std::move(question), candidate](const std::atomic<bool>& stop) {
    std::shared_ptr<const LivesAnswer> answer;
    QString problem;
    if (const auto settings = settings_of_run(question->scenario, question->job, candidate)) {
      const RunLength& run = question->scenario.run;
      CampaignOptions options{.runs = run.runs, .seed = static_cast<std::uint64_t>(run.seed)};
      options.interrupted = &stop;
      options.progress = [this](double share) {
        QMetaObject::invokeMethod(
            this, [this, share] { Q_EMIT progressed(share); }, Qt::QueuedConnection);
      };
      const std::vector<Life> lives = live_many(*settings, options);
      if (lives.empty()) return cancelled();
      answer = answer_of(question, candidate, *settings, lives);
    } else {
      problem = qt(settings.error());
    }
    return Background::Done([this, answer = std::move(answer), problem] {
      best_.reset();
      show(answer, problem);
      if (answer && answer->is_whole) tune();
    });
  });
}

void RunLives::tune() {
  tuning_.start([this, answer = answer_](const std::atomic<bool>& stop) {
    const RunLength& run = answer->question->scenario.run;
    const CampaignOptions options{.runs = std::min(run.runs, kTuningRuns),
                                  .seed = static_cast<std::uint64_t>(run.seed),
                                  .interrupted = &stop};
    const auto best = trainyard::best_interval(answer->settings, answer->around, options);
    return Background::Done([this, answer, best] {
      if (answer == answer_) best_ = best;
      Q_EMIT tuned();
    });
  });
  Q_EMIT tuned();  // it goes on
}

void RunLives::cancel() {
  work_.stop();
  tuning_.stop();
}

// Compares goodput as it is shown, to 0.1 %: a smaller difference is chance.
bool RunLives::gains() const {
  return best_ && percent_text(best_->goodput) != percent_text(best_->goodput_of_taken);
}

QString RunLives::interval_text() const {
  if (!answer_) return {};
  const auto text = [](Seconds interval) { return qt(duration(interval)); };
  const QString taken =
      tr("A checkpoint every %1; Young's interval is %2, Daly's %3")
          .arg(text(answer_->settings.interval), text(answer_->young), text(answer_->daly));
  if (gains()) {
    return tr("%1; the best by simulation %2 (goodput %3 instead of %4 over the same lives).")
        .arg(taken, text(best_->interval), percent_text(best_->goodput),
             percent_text(best_->goodput_of_taken));
  }
  if (best_) return tr("%1; by simulation no other gains anything.").arg(taken);
  return is_tuning() ? tr("%1; the best by simulation is looked for …").arg(taken)
                     : tr("%1.").arg(taken);
}

Background::Done RunLives::cancelled() {
  return [this] { show(answer_, tr("Cancelled before the first run.")); };
}

void RunLives::show(std::shared_ptr<const LivesAnswer> answer, const QString& problem) {
  answer_ = std::move(answer);
  problem_ = problem;
  Q_EMIT finished();
}

}  // namespace trainyard
