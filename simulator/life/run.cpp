#include "simulator/life/run.h"

#include <algorithm>
#include <cmath>

#include "simulator/life/checkpoints.h"
#include "simulator/life/failures.h"
#include "simulator/life/nodes.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kDetectionStream = 1002;
// A run without a calendar that would take this many times its work is given up.
constexpr double kGivenUp = 100;

// Whether a run will almost certainly take more than kGivenUp times its work, judged by its pace
// until now. Where restarts are interrupted again and again, that pace is one successful attempt in
// kGivenUp; among `interruptions` attempts their number varies by √(interruptions/kGivenUp), and a
// deviation of three times that is not chance.
bool is_hopeless(Nanoseconds done, Nanoseconds now, std::int64_t interruptions) {
  const double doubt = 3 / std::sqrt(static_cast<double>(interruptions) / kGivenUp);
  return to_seconds(done) * kGivenUp < to_seconds(now) * (1 - doubt);
}

class Run {
 public:
  Run(const LifeSettings& settings, std::uint64_t seed, const std::atomic<bool>* interrupted)
      : settings_(settings),
        interrupted_(interrupted),
        failures_(settings, seed),
        checkpoints_(settings, seed),
        nodes_(settings.spares, settings.reliability.repair, seed),
        random_(seed, kDetectionStream),
        interval_(to_nanoseconds(settings.interval)),
        work_(to_nanoseconds(settings.work)),
        limit_(to_nanoseconds(settings.limit.value_or(kGivenUp * settings.work))) {}

  Life live() {
    while (!over()) {
      train();
      if (!over()) recover();
    }
    if (given_up_) fall_back();  // work since the last checkpoint is lost
    life_.spent[Spent::useful] = done_;
    life_.finished = done_ == work_;
    return life_;
  }

 private:
  bool over() const {
    const bool stop = interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed);
    return done_ == work_ || now_ >= limit_ || given_up_ || stop;
  }

  // Trains until something stops the job.
  void train() {
    while (!over() && !stopped_) {
      if (maintenance_due_) {
        maintain();
        continue;
      }
      const Nanoseconds begin = std::max(checkpoint_at(), checkpoints_.first_free());
      const Nanoseconds until =
          std::min({begin, finish_at(), failures_.next_at(), silent_found_, evict_at_, limit_});
      advance(std::max(until, now_));
      if (over()) return;
      if (now_ >= failures_.next_at()) {
        meet(failures_.take());
      } else if (now_ >= silent_found_) {
        find_corruption();
      } else if (now_ >= evict_at_) {
        evict();
      } else if (now_ >= begin) {
        checkpoint();
      }
    }
  }

  Nanoseconds at_speed(Nanoseconds work) const {
    const double rate = speed();
    return rate == 1 ? work : scaled(work, 1 / rate);
  }
  Nanoseconds checkpoint_at() const { return now_ + at_speed(interval_ - since_checkpoint_); }
  Nanoseconds finish_at() const { return now_ + at_speed(work_ - done_); }

  // The job's speed relative to the whole job without straggler.
  double speed() const {
    return slow_ ? present_ * settings_.reliability.stragglers->speed : present_;
  }

  void advance(Nanoseconds until) {
    const Nanoseconds elapsed = until - now_;
    const double rate = speed();
    Nanoseconds trained = elapsed;
    if (rate != 1) trained = Nanoseconds(std::llround(static_cast<double>(elapsed.count()) * rate));
    trained = std::min(trained, work_ - done_);
    done_ += trained;
    since_checkpoint_ += trained;
    life_.spent[Spent::degraded] += elapsed - trained;
    now_ = until;
  }

  // Spends time without training. False: the job was struck before the end.
  bool spend(Spent kind, Nanoseconds duration) {
    const Nanoseconds end = std::min(now_ + duration, limit_);
    while (failures_.next_at() < end) {
      book(kind, failures_.next_at());
      meet(failures_.take());
      if (stopped_) return false;
    }
    book(kind, end);
    return true;
  }

  void book(Spent kind, Nanoseconds until) {
    if (until <= now_) return;
    life_.spent[kind] += until - now_;
    now_ = until;
  }

  void meet(const Disturbance& disturbance) {
    switch (disturbance.trouble) {
      case Trouble::failure:
        return strike(disturbance.nodes, detection());
      case Trouble::false_alarm:
        return strike(0, Nanoseconds(0));
      case Trouble::silent:
        return corrupt();
      case Trouble::straggler:
        return slow_down();
      case Trouble::maintenance:
        maintenance_due_ = true;
    }
  }

  // The time to detect a failure. The last heartbeat came at any time in the interval before it.
  Nanoseconds detection() {
    const Heartbeat& heartbeat = settings_.reliability.heartbeat;
    return to_nanoseconds(heartbeat.interval * (heartbeat.misses - random_.uniform()));
  }

  void strike(int nodes, Nanoseconds detection) {
    stopped_ = true;
    unexpected_ = true;
    ++life_.interruptions;
    given_up_ = !settings_.limit && is_hopeless(done_, now_, life_.interruptions);
    detect_ = detection;
    lose(nodes);
    checkpoints_.drop_unwritten(now_);
  }

  void lose(int nodes) {
    life_.nodes_lost += nodes;
    lost_nodes_ += nodes;
    nodes_.lose(nodes, now_);
  }

  void corrupt() {
    if (silent_found_ != kNever || stopped_) return;
    clean_work_ = done_;
    const double mean = settings_.reliability.silent->detection.value();
    silent_found_ = now_ + to_nanoseconds(Seconds(random_.exponential(mean)));
  }

  void find_corruption() {
    silent_found_ = kNever;
    strike(1, Nanoseconds(0));
    checkpoints_.drop_after(clean_work_);
  }

  void slow_down() {
    if (slow_) return;
    slow_ = true;
    evict_at_ = now_ + to_nanoseconds(settings_.reliability.stragglers->detection);
  }

  void evict() {
    if (!save()) return;
    slow_ = false;
    evict_at_ = kNever;
    lose(1);
    stop_as_planned();
  }

  void maintain() {
    if (!save()) return;
    maintenance_due_ = false;
    stop_as_planned();
    const Nanoseconds end = now_ + to_nanoseconds(settings_.reliability.maintenance->duration);
    while (now_ < std::min(end, limit_)) {
      stopped_ = false;
      spend(Spent::maintenance, end - now_);
    }
    stopped_ = true;
  }

  void stop_as_planned() {
    stopped_ = true;
    unexpected_ = false;
    detect_ = Nanoseconds(0);
    ++life_.planned;
  }

  // Takes a checkpoint; training may go on after its blocking part. False: the job was struck.
  bool checkpoint() {
    if (!spend(Spent::checkpoint, checkpoints_.blocking(now_))) return false;
    checkpoints_.put(done_, now_);
    ++life_.checkpoints;
    since_checkpoint_ = Nanoseconds(0);
    nodes_.come_back(now_);
    if (present_ < 1 && speed_without(settings_, nodes_.missing()) > present_) grow_back();
    return true;
  }

  // Makes sure that all work is in a checkpoint that can be loaded. False: the job was struck.
  bool save() {
    const bool fresh = since_checkpoint_ == Nanoseconds(0);
    if (!fresh) {
      if (!spend(Spent::checkpoint, checkpoints_.first_free() - now_)) return false;
      if (!checkpoint()) return false;
    }
    return !stopped_ && wait_for_write();
  }
  bool wait_for_write() { return spend(Spent::checkpoint, checkpoints_.first_free() - now_); }

  void grow_back() {
    if (wait_for_write()) stop_as_planned();
  }

  // Restarts the job; a failure on the way makes the restart begin again.
  void recover() {
    while (!over()) {
      stopped_ = false;
      const RestartTimes& times = settings_.reliability.restart;
      const auto phase = [this](Spent kind, Seconds time) {
        return spend(kind, to_nanoseconds(time));
      };
      if (spend(Spent::detection, detect_) &&
          (!unexpected_ || phase(Spent::diagnosis, times.diagnose)) && wait_for_nodes() &&
          phase(Spent::rescheduling, times.reschedule) && phase(Spent::starting, times.start) &&
          load() && phase(Spent::warming_up, times.warm_up)) {
        lost_nodes_ = 0;
        return;
      }
    }
  }

  bool load() { return spend(Spent::loading, fall_back()); }

  // Goes back to the newest checkpoint; returns the time that loading takes.
  Nanoseconds fall_back() {
    checkpoints_.lose_nodes(lost_nodes_);
    const Checkpoints::Loaded loaded = checkpoints_.load();
    life_.spent[Spent::lost] += done_ - loaded.work;
    done_ = loaded.work;
    since_checkpoint_ = Nanoseconds(0);
    if (done_ <= clean_work_) silent_found_ = kNever;  // the corruption is rolled back as well
    return loaded.time;
  }

  bool wait_for_nodes() {
    nodes_.come_back(now_);
    while (speed_without(settings_, nodes_.missing()) == 0 && now_ < limit_) {
      if (!spend(Spent::waiting, nodes_.next_return() - now_)) return false;
      nodes_.come_back(now_);
    }
    present_ = speed_without(settings_, nodes_.missing());
    return true;
  }

  const LifeSettings& settings_;
  const std::atomic<bool>* interrupted_;
  Failures failures_;
  Checkpoints checkpoints_;
  Nodes nodes_;
  RandomStream random_;
  Nanoseconds interval_, work_, limit_;

  Life life_;
  Nanoseconds now_{0}, done_{0}, since_checkpoint_{0};
  bool given_up_ = false;
  bool stopped_ = false;     // the job is not running
  bool unexpected_ = false;  // it stopped for a failure, not as planned
  Nanoseconds detect_{0};
  int lost_nodes_ = 0;  // lost since the job last ran
  double present_ = 1;  // speed of the nodes present, relative to the whole job
  bool slow_ = false;   // a straggler slows the job
  bool maintenance_due_ = false;
  Nanoseconds evict_at_ = kNever;
  Nanoseconds silent_found_ = kNever;
  Nanoseconds clean_work_ = kNever;  // work done when the corruption began
};

}  // namespace

Life live(const LifeSettings& settings, std::uint64_t seed, const std::atomic<bool>* interrupted) {
  return Run(settings, seed, interrupted).live();
}

double expected_events(const LifeSettings& settings) {
  const Seconds longest = settings.limit.value_or(kGivenUp * settings.work);
  return std::min(settings.work, longest) / settings.interval +
         longest.value() * Failures(settings, 0).per_second();
}

}  // namespace trainyard
