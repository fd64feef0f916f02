#include "executor/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

namespace trainyard {
namespace {

// Reports work that is not part of the program as a sign of life.
class BeatingWatch : public Watch {
 public:
  explicit BeatingWatch(BoardHead& head) : head_(head) {}
  void begins(std::int64_t, const IssuedOperation&) override { goes_on(); }
  void goes_on() override { head_.beats.fetch_add(1, std::memory_order_relaxed); }

 protected:
  BoardHead& head() { return head_; }

 private:
  BoardHead& head_;
};

// Writes on the board what the rank hands over. What a device has begun, PublishedProgress writes.
class BoardWatch final : public BeatingWatch {
 public:
  BoardWatch(Board& board, bool runs_later)
      : BeatingWatch(board.head()), begun_(runs_later ? nullptr : board.begun()) {}
  void begins(std::int64_t number, const IssuedOperation&) override {
    head().operation.store(number, std::memory_order_relaxed);
    if (begun_ != nullptr) {
      begun_[number].store(head().steps_done + 1, std::memory_order_relaxed);
    }
    goes_on();
  }
  void ends_step(std::int64_t operations) override { head().operation = operations; }

 private:
  Begun* begun_;
};

// Writes on the board what a device is doing, from a thread of its own: the rank's thread may be in
// a call that waits for the device. The device's progress counts as a sign of life.
class PublishedProgress {
 public:
  PublishedProgress(const Program& program, int stage, Backend& backend, DeviceProgress& progress,
                    Board& board)
      : progress_(progress), head_(board.head()), begun_(board.begun()) {
    if (!backend.runs_later()) return;
    for (const IssuedOperation issued : operations_of(program, stage)) {
      computes_.push_back(!is_communication(issued.operation->kind));
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        publish();
        std::this_thread::sleep_for(kLook);
      }
    });
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20};

  void publish() {
    const DeviceProgress::Look look = progress_.look();
    for (const std::int64_t number : look.begun) begun_[number] = look.steps;
    for (std::size_t i = 0; i < head_.under_way.size(); ++i) {
      head_.under_way[i] = i < look.under_way.size() ? look.under_way[i] : -1;
    }
    head_.computes = std::ranges::any_of(look.under_way, [this](std::int64_t number) -> bool {
      return computes_[static_cast<std::size_t>(number)];
    });
    if (std::exchange(done_, look.done) != look.done) ++head_.beats;
  }

  DeviceProgress& progress_;
  BoardHead& head_;
  Begun* begun_;
  std::vector<bool> computes_;  // by operation of the rank's list
  std::int64_t done_ = 0;
  std::jthread thread_;
};

// Loss and gradient norm of a rank alone, which never received what its peers would have sent.
constexpr double kMeansNothing = std::numeric_limits<double>::quiet_NaN();

// Whether an update is made even if its gradient overflowed (executor/loss_scale.h).
bool may_overflow(const Setting& setting) {
  return scales_loss(setting) && !setting.plan.optimizer_barrier;
}

class RankRun {
 public:
  RankRun(const Setting& setting, const RunPlan& plan, const Program& program,
          const RankLayout& layout, Transport& transport, Board& board, Backend& backend)
      : setting_(setting),
        plan_(plan),
        program_(program),
        transport_(transport),
        board_(board),
        backend_(backend),
        watch_(board, backend.runs_later()),
        executor_(setting, program, layout, transport.rank(), backend, watch_),
        published_(program, layout.coordinates(transport.rank()).stage, backend,
                   executor_.progress(), board) {}

  Expected<void> run() {
    if (plan_.verify) {
      if (auto known = learn_expected(); !known) return known;
    }
    board_.head().state = RankState::running;
    for (int number = 0; number < plan_.all_steps(); ++number) {
      if (auto done = step(number); !done) return done;
    }
    if (!plan_.verify) return {};
    if (!compared_) {
      return failure("", "every step's gradient overflowed in fp16; verified are later steps");
    }
    board_.head().state = RankState::comparing;
    return compare_held(Compared::weights, executor_.weights(watch_));
  }

 private:
  // Rank 0 trains the network alone and tells the others.
  Expected<void> learn_expected() {
    board_.head().state = RankState::unsharded;
    std::string bytes;
    if (transport_.rank() == 0) {
      BeatingWatch watch(board_.head());
      const auto run = run_unsharded(setting_, {plan_.all_steps(), plan_.same_batch}, watch);
      if (!run) return tl::unexpected(run.error());
      bytes = packed(*run);
    }
    if (auto told = transport_.broadcast(bytes, 0); !told) return told;
    expected_ = unpacked(bytes);
    return {};
  }

  Expected<void> step(int number) {
    executor_.keep_gradients(plan_.verify && !compared_);
    auto outcome = executor_.step(number, plan_.same_batch ? 0 : number, watch_);
    if (!outcome) return tl::unexpected(outcome.error());
    auto loss = static_cast<float>(outcome->loss);
    auto done = transport_.all_reduce(Group::all, &loss, 1, Reduction::sum);
    if (!done) return done;
    if (!std::isfinite(loss) && !plan_.alone) return no_number(outcome->loss);
    note(number, *outcome, static_cast<double>(loss));
    const bool compares = plan_.verify && !compared_ && !outcome->skipped;
    return compares ? compare_gradients(number) : Expected<void>{};
  }

  // The error of a loss that is not finite; `loss` is this rank's share. The board says in which
  // step.
  static Expected<void> no_number(double loss) {
    if (std::isfinite(loss)) return failure("", std::string(kAnotherRank));
    return failure("", fmt::format("has a loss of {}", std::isnan(loss) ? std::abs(loss) : loss));
  }

  void note(int number, const StepOutcome& outcome, double loss) {
    StepRecord& record = board_.steps()[number];
    record = {loss, outcome.skipped ? 0 : std::sqrt(outcome.squared_norm), outcome.time.value()};
    if (plan_.alone) record.loss = record.gradient_norm = kMeansNothing;
    OperationRecord* operations = board_.operations();
    for (std::size_t i = 0; i < outcome.operations.size(); ++i) {
      const OperationTimes& times = outcome.operations[i];
      operations[i].begin = times.begin.value();
      operations[i].end = times.end.value();
      if (number >= plan_.warmup) operations[i].total += (times.end - times.begin).value();
    }
    board_.head().peak_bytes = backend_.peak().value();
    board_.head().reserved_bytes = backend_.reserved().value();
    board_.head().operation = -1;
    board_.head().steps_done = number + 1;
  }

  // Compares the first step whose update was not left out.
  Expected<void> compare_gradients(int number) {
    compared_ = true;
    board_.head().state = RankState::comparing;
    const StepRecord& first = board_.steps()[number];
    const Tolerance tolerance = tolerance_of(setting_);
    note(scalar_difference("loss", first.loss, expected_.losses[expected_.first_taken],
                           tolerance.loss));
    note(scalar_difference("gradient norm", first.gradient_norm, expected_.first_norm(),
                           tolerance.norm));
    auto done = compare_held(Compared::gradients, executor_.gradients());
    board_.head().state = RankState::running;
    return done;
  }

  Expected<void> compare_held(Compared what, const std::vector<HeldTensor>& held) {
    const auto list = compare({setting_, program_, executor_.holdings(), transport_, expected_,
                               watch_, plan_.all_steps()},
                              what, held);
    if (!list) return tl::unexpected(list.error());
    if (!may_overflow(setting_) || std::ranges::all_of(*list, &Difference::is_finite)) {
      for (const Difference& difference : *list) note(difference);
      return {};
    }
    return failure("",
                   "met a gradient that overflowed in fp16 (without an optimizer barrier no step "
                   "is left out, and nothing can be verified)");
  }

  void note(const Difference& difference) {
    BoardHead& head = board_.head();
    ++head.compared;
    head.differ += difference.holds() ? 0 : 1;
    if (head.compared > 1 && difference.share() <= head.worst_share) return;
    head.worst_share = difference.share();
    set_text(head.worst, difference.what);
  }

  const Setting& setting_;
  const RunPlan& plan_;
  const Program& program_;
  Transport& transport_;
  Board& board_;
  Backend& backend_;
  BoardWatch watch_;
  RankExecutor executor_;
  UnshardedRun expected_;
  bool compared_ = false;        // whether gradients were compared
  PublishedProgress published_;  // last: it looks at the executor
};

}  // namespace

Expected<void> run_rank(const Setting& setting, const RunPlan& plan, const Program& program,
                        const RankLayout& layout, Transport& transport, Board& board) {
  constexpr const char* kNoMemory = "has no memory left on its host";
  // its destructor may wait for what hangs: the board is written first
  std::unique_ptr<Backend> backend;
  const auto run = [&]() -> Expected<void> {
    try {
      auto made =
          make_backend(plan.backend, {setting, program, layout, transport, plan.alone.has_value()});
      if (!made) return tl::unexpected(made.error());
      backend = *std::move(made);
      return RankRun(setting, plan, program, layout, transport, board, *backend).run();
    } catch (const std::bad_alloc&) {
      return failure("", kNoMemory);
    } catch (const std::length_error&) {  // more than could ever be allocated
      return failure("", kNoMemory);
    } catch (const std::exception& error) {
      return failure("", fmt::format("failed: {}", error.what()));
    }
  };
  auto ran = run();
  if (!ran) set_text(board.head().message, ran.error().message);
  board.head().state = ran ? RankState::done : RankState::failed;
  return ran;
}

std::optional<Error> not_executed(const Setting& setting, BackendKind backend) {
  const Training& training = setting.training;
  const Offload& offload = setting.plan.offload;
  const auto targets = {offload.parameters, offload.gradients, offload.optimizer,
                        offload.activations};
  if (backend == BackendKind::cuda &&
      std::ranges::find(targets, OffloadTarget::nvme) != targets.end()) {
    return Error{"/plan/offload", "found \"nvme\"; executed on cuda is host"};
  }
  if (moments_of(setting) < 0) {
    return Error{"/training/optimizer", fmt::format("found \"{}\"; executed are adam, adamw, sgd",
                                                    training.optimizer.name)};
  }
  const PrecisionRecipe& precision = training.precision;
  if (precision.layer_gemm == Dtype::fp4) {
    return Error{
        "/training/precision",
        fmt::format("found \"{}\"; executed are fp32, bf16, fp16, fp8, mxfp8", precision.name)};
  }
  return std::nullopt;
}

}  // namespace trainyard
