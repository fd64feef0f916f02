// The fields of a profile (`profile/1`): what a run of a plan's program measured.
#include "model/program/profile.h"

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr NumberShape kAnyPositive{.least = 0, .most = 1e300};

const Section<ProfiledStep>& profiled_step_section() {
  using S = ProfiledStep;
  static const Section<S> section(
      "profiled_step", "One step of a run.",
      {
          quantity(
              "time", &S::time,
              "time from the step's first operation to the end of its last, on the slowest rank"),
          number("loss", &S::loss, "training loss, mean over the global batch", kAnyPositive)
              .absent("a rank that ran alone has none"),
          number("gradient_norm", &S::gradient_norm,
                 "norm of the gradient before clipping; 0: it overflowed in fp16, and the step was "
                 "skipped",
                 kAnyPositive)
              .absent("a rank that ran alone has none"),
      });
  return section;
}

const Section<ProfiledStream>& profiled_stream_section() {
  using S = ProfiledStream;
  static const Section<S> section(
      "profiled_stream", "Gaps between the operations of a stream, in a rank's last step.",
      {
          text("stream", &S::stream, "name of the program's stream").required(),
          number("between", &S::between,
                 "share of the step, from the stream's first operation to its last, in which none "
                 "of them ran",
                 {.least = 0, .most = 1}),
          number("communicating", &S::communicating,
                 "share of the step within `between` in which the rank communicated on another "
                 "stream, waiting for other ranks included",
                 {.least = 0, .most = 1}),
          quantity("longest_gap", &S::longest_gap,
                   "longest time between two operations of the stream", Zero::allowed),
          text("after", &S::after, "operation before the longest gap"),
          text("before", &S::before, "operation after the longest gap"),
      });
  return section;
}

const Section<ProfiledRank>& profiled_rank_section() {
  using R = ProfiledRank;
  static const Section<R> section(
      "profiled_rank", "One rank of a run.",
      {
          count("rank", &R::rank, "number of the rank", {.least = 0}).required(),
          count("stage", &R::stage, "pipeline stage of the rank", {.least = 0}).required(),
          text("host", &R::host, "host that it ran on"),
          quantity(
              "peak_memory", &R::peak_memory,
              "peak memory of the program's buffers; on a GPU, peak that its memory pool gave out"),
          quantity("predicted_peak_memory", &R::predicted_peak_memory,
                   "peak memory of the program's buffers, by the simulation")
              .absent("not simulated"),
          quantity("reserved_memory", &R::reserved_memory,
                   "peak memory that the GPU's memory pool held, given out or not")
              .absent("no GPU"),
          number("between", &R::between,
                 "share of its last step in which no operation ran or waited: host time between "
                 "operations",
                 {.least = 0, .most = 1}),
          quantity("longest_gap", &R::longest_gap,
                   "longest time in which no operation of the rank ran or waited", Zero::allowed),
          text("after", &R::after, "operation before the longest gap"),
          text("before", &R::before, "operation after the longest gap"),
          objects<profiled_stream_section>("streams", &R::streams,
                                           "streams on which the rank has operations"),
      });
  return section;
}

const Section<ProfiledOperation>& profiled_operation_section() {
  using O = ProfiledOperation;
  static const Section<O> section(
      "profiled_operation",
      "Time that the operations of one kind took on one stage, of all layers and micro-batches.",
      {
          count("stage", &O::stage, "pipeline stage", {.least = 0}).required(),
          text("operation", &O::operation, "kind of operation, and its pass").required(),
          text("class", &O::of_class, "class of kernels, which several kinds of operations share")
              .absent("`operation` is itself one"),
          count("tasks", &O::tasks, "number of these operations that a rank runs in a step",
                {.most = 1e9}),
          quantity("measured", &O::measured,
                   "measured time of these operations in a step, mean over steps and ranks",
                   Zero::allowed),
          quantity("predicted", &O::predicted, "simulated time of these operations in a step",
                   Zero::allowed),
      });
  return section;
}

const Section<Verification>& verification_section() {
  using V = Verification;
  static const Section<V> section(
      "verification",
      "Comparison with the same network on one rank, which trains on the same tokens.",
      {
          count("compared", &V::compared, "number of tensors and scalars that were compared",
                {.least = 0, .most = 1e12}),
          count("differing", &V::differing, "number of these that are further off than allowed",
                {.least = 0, .most = 1e12}),
          text("furthest", &V::furthest, "tensor or scalar that is the furthest off"),
          number("furthest_share", &V::furthest_share, "how far off it is, over what is allowed",
                 kAnyPositive)
              .absent("something is no number, or no rank has it"),
          flag("complete", &V::complete,
               "whether all was compared; false: the run ended before the weights were"),
      });
  return section;
}

}  // namespace

const Section<Profile>& profile_section() {
  using P = Profile;
  static const Section<P> section(
      "profile", "What a run of a plan measured.",
      {
          text("name", &P::name, "name of the scenario that was run"),
          text("backend", &P::backend, "backend that ran it: cpu or cuda"),
          count("seed", &P::seed,
                "random seed of weights, tokens and dropout, with which the run can be repeated",
                {.least = 0, .most = 9e15}),
          number("learning_rate", &P::learning_rate, "learning rate of the optimizer",
                 {.least = 0, .most = kMostLearningRate}),
          flag("same_batch", &P::same_batch, "whether every step had the first step's batch"),
          text("tokens", &P::tokens, "file that the tokens were read from")
              .absent("drawn by the seed"),
          text("scaled_down", &P::scaled_down, "what was made smaller than in the scenario")
              .absent("nothing"),
          text("note", &P::note, "what the plan changes about the training itself")
              .absent("nothing"),
          flag("alone", &P::alone,
               "whether the one rank in `ranks` ran without its peers, with local copies of as "
               "many bytes in place of communication; predictions are of that, too"),
          object<plan_section>("plan", &P::plan,
                               "plan that was run, with nothing left to be chosen")
              .absent("not said"),
          count("warmup_steps", &P::warmup_steps, "number of leading `steps` that no mean counts",
                {.least = 0}),
          objects<profiled_step_section>("steps", &P::steps,
                                         "steps in the order in which they ran"),
          quantity("predicted_step_time", &P::predicted_step_time, "step time by the simulation"),
          number("mfu", &P::mfu,
                 "MFU: model FLOP per second of the measured steps over the peak of the scenario's "
                 "device",
                 {.least = 0, .most = 1e3})
              .absent("no step was measured, or a rank ran alone"),
          objects<profiled_rank_section>("ranks", &P::ranks, "ranks that started"),
          objects<profiled_operation_section>(
              "operations", &P::operations,
              "kinds of operations on each stage, in the order of the time that they took"),
          object<verification_section>("verification", &P::verification,
                                       "comparison with the network on one rank")
              .absent("the run was not to be verified, or nothing was compared"),
          text("failure", &P::failure, "why the run ended early").absent("it did not end early"),
      });
  return section;
}

}  // namespace trainyard
