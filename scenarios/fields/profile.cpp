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
          quantity("time", &S::time,
                   "from its first operation to the end of its last, on the "
                   "slowest rank"),
          number("loss", &S::loss, "mean over the global batch", kAnyPositive)
              .absent("of a rank alone there is none"),
          number("gradient_norm", &S::gradient_norm,
                 "before clipping; 0: it overflowed in fp16, and the step was left out",
                 kAnyPositive)
              .absent("of a rank alone there is none"),
      });
  return section;
}

const Section<ProfiledStream>& profiled_stream_section() {
  using S = ProfiledStream;
  static const Section<S> section(
      "profiled_stream", "What lies between the operations of a stream, in a rank's last step.",
      {
          text("stream", &S::stream, "of the program").required(),
          number(
              "between", &S::between,
              "share of the step in which none of its operations ran, from its first to its last",
              {.least = 0, .most = 1}),
          number("communicating", &S::communicating,
                 "of `between`, as a share of the step too: while the rank communicated on another "
                 "stream, transfers and waiting for other ranks alike",
                 {.least = 0, .most = 1}),
          quantity("longest_gap", &S::longest_gap, "the longest time between two of its operations",
                   Zero::allowed),
          text("after", &S::after, "the operation before that"),
          text("before", &S::before, "the operation after it"),
      });
  return section;
}

const Section<ProfiledRank>& profiled_rank_section() {
  using R = ProfiledRank;
  static const Section<R> section(
      "profiled_rank", "One rank of a run.",
      {
          count("rank", &R::rank, "its number", {.least = 0}).required(),
          count("stage", &R::stage, "its pipeline stage", {.least = 0}).required(),
          text("host", &R::host, "where it ran"),
          quantity("peak_memory", &R::peak_memory,
                   "most held at a time: buffers of the program; on a GPU what its pool gave out"),
          quantity("predicted_peak_memory", &R::predicted_peak_memory,
                   "most that the program's buffers hold, by the simulation")
              .absent("not simulated"),
          quantity("reserved_memory", &R::reserved_memory,
                   "most that the GPU's pool kept of its memory for that")
              .absent("no GPU"),
          number("between", &R::between,
                 "share of its last step in which no operation of it ran or waited: what the host "
                 "takes between them",
                 {.least = 0, .most = 1}),
          quantity("longest_gap", &R::longest_gap, "the longest such time", Zero::allowed),
          text("after", &R::after, "the operation before that"),
          text("before", &R::before, "the operation after it"),
          objects<profiled_stream_section>("streams", &R::streams, "that it has operations on"),
      });
  return section;
}

const Section<ProfiledOperation>& profiled_operation_section() {
  using O = ProfiledOperation;
  static const Section<O> section(
      "profiled_operation",
      "What the operations of one kind took on one stage, of all layers and micro-batches.",
      {
          count("stage", &O::stage, "pipeline stage", {.least = 0}).required(),
          text("operation", &O::operation, "what they do, and in which pass").required(),
          text("class", &O::of_class, "of kernels, which several kinds share")
              .absent("`operation` is one"),
          count("tasks", &O::tasks, "how many a rank runs in a step", {.most = 1e9}),
          quantity("measured", &O::measured, "of a step, mean over steps and ranks", Zero::allowed),
          quantity("predicted", &O::predicted, "of a step, by the simulation", Zero::allowed),
      });
  return section;
}

}  // namespace

const Section<Profile>& profile_section() {
  using P = Profile;
  static const Section<P> section(
      "profile", "What a run measured.",
      {
          text("name", &P::name, "of the scenario that was run"),
          text("backend", &P::backend, "what ran it: cpu or cuda"),
          count("seed", &P::seed, "of weights, tokens and dropout: the run can be repeated",
                {.least = 0, .most = 9e15}),
          number("learning_rate", &P::learning_rate, "that the optimizer had",
                 {.least = 0, .most = kMostLearningRate}),
          flag("same_batch", &P::same_batch, "whether every step saw the first batch"),
          text("tokens", &P::tokens, "the file that they are from").absent("by the seed"),
          text("scaled_down", &P::scaled_down, "what was run with less of than the scenario has")
              .absent("nothing"),
          text("note", &P::note, "what the plan changes of the training itself").absent("nothing"),
          flag("alone", &P::alone,
               "whether the one rank in `ranks` ran without its peers, local copies of as many "
               "bytes in their place; what is predicted is that, too"),
          object<plan_section>("plan", &P::plan, "that was run, with nothing left to be chosen")
              .absent("not said"),
          count("warmup_steps", &P::warmup_steps, "the first of `steps`, not counted in any mean",
                {.least = 0}),
          objects<profiled_step_section>("steps", &P::steps, "in their order"),
          quantity("predicted_step_time", &P::predicted_step_time, "by the simulation"),
          number("mfu", &P::mfu,
                 "model FLOP a second of the measured steps over the peak of the scenario's device",
                 {.least = 0, .most = 1e3})
              .absent("nothing was measured, or a rank alone"),
          objects<profiled_rank_section>("ranks", &P::ranks, "those that started"),
          objects<profiled_operation_section>("operations", &P::operations,
                                              "by the time that they took"),
          text("failure", &P::failure, "why the run ended early").absent("it did not"),
      });
  return section;
}

}  // namespace trainyard
