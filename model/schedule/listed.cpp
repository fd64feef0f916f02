#include "model/schedule/listed.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/play.h"

namespace trainyard {
namespace {

// Requires, here and below: a shape that the descriptor of a ListedSchedule made.
Expected<void> accepts(PipelineShape shape) {
  const PipelineShape& own = shape.listed->shape;
  const auto refuse = [&](std::string_view key, std::string_view what, int found, int allowed) {
    return failure(fmt::format("/plan/{}", key),
                   fmt::format("found {}{} with the pass list \"{}\", allowed {}", found, what,
                               shape.listed->name, allowed));
  };
  if (shape.stages != own.stages) {
    return refuse("pipeline_parallel", "", shape.stages, own.stages);
  }
  if (shape.chunks != own.chunks) return refuse("virtual_stages", "", shape.chunks, own.chunks);
  if (shape.microbatches != own.microbatches) {
    return refuse("micro_batch", " micro-batches a step", shape.microbatches, own.microbatches);
  }
  return {};
}

PassList passes(PipelineShape shape) { return shape.listed->passes; }

int chunks_in_flight(PipelineShape shape, int stage) {
  return shape.listed->chunks_in_flight[static_cast<std::size_t>(stage)];
}

int pairs(PipelineShape shape, int stage) {
  return shape.listed->pairs[static_cast<std::size_t>(stage)];
}

int weight_gradients_at_end(PipelineShape shape, int stage) {
  return shape.listed->weight_gradients_at_end[static_cast<std::size_t>(stage)];
}

int chunks_between_halves(PipelineShape shape, int stage) {
  return shape.listed->chunks_between_halves[static_cast<std::size_t>(stage)];
}

int chunks_past_input_gradient(PipelineShape shape, int stage) {
  return shape.listed->chunks_past_input_gradient[static_cast<std::size_t>(stage)];
}

int most_between_halves(const std::vector<Pass>& list) {
  int between = 0;
  int most = 0;
  for (const Pass& pass : list) {
    if (pass.kind == PassKind::input_gradient) most = std::max(most, ++between);
    if (pass.kind == PassKind::weight_gradient) --between;
  }
  return most;
}

int most_before_input_gradient(const std::vector<Pass>& list) {
  int before = 0;
  int most = 0;
  for (const Pass& pass : list) {
    if (pass.kind == PassKind::forward) most = std::max(most, ++before);
    if (pass.kind == PassKind::backward || pass.kind == PassKind::input_gradient) --before;
  }
  return most;
}

int weight_gradients_that_end(const std::vector<Pass>& list) {
  const auto other = std::find_if(list.rbegin(), list.rend(), [](const Pass& pass) {
    return pass.kind != PassKind::weight_gradient;
  });
  return static_cast<int>(std::max<std::ptrdiff_t>(1, other - list.rbegin()));
}

Bytes most_kept(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) {
  Bytes now, most;
  for (const Pass& pass : shape.listed->passes[static_cast<std::size_t>(stage)]) {
    const Bytes of_chunk = of_chunks[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == PassKind::forward) most = std::max(most, now += of_chunk);
    if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) now -= of_chunk;
  }
  return most;
}

bool splits_backward(const PassList& lists) {
  return std::ranges::any_of(lists, [](const std::vector<Pass>& list) {
    return std::ranges::any_of(
        list, [](const Pass& pass) { return pass.kind == PassKind::weight_gradient; });
  });
}

}  // namespace

Expected<std::shared_ptr<const ListedSchedule>> list_schedule(std::string name, PipelineShape shape,
                                                              PassList lists,
                                                              bool optimizer_barrier) {
  const PassTimes second{Seconds(1), Seconds(1), Seconds(1), Seconds(0)};
  const auto run = play(lists, shape, uniform_times(shape, second));
  if (!run) return tl::unexpected(run.error());
  auto schedule = std::make_shared<ListedSchedule>();
  schedule->name = std::move(name);
  schedule->shape = shape;
  schedule->optimizer_barrier = optimizer_barrier;
  schedule->chunks_in_flight = run->chunks_in_flight;
  for (const std::vector<Pass>& list : lists) {
    const auto paired = std::ranges::count_if(list, [](const Pass& pass) { return pass.paired; });
    schedule->pairs.push_back(static_cast<int>(paired));
    schedule->weight_gradients_at_end.push_back(weight_gradients_that_end(list));
    schedule->chunks_between_halves.push_back(most_between_halves(list));
    const int in_flight = run->chunks_in_flight[schedule->chunks_past_input_gradient.size()];
    schedule->chunks_past_input_gradient.push_back(in_flight - most_before_input_gradient(list));
  }
  schedule->descriptor = {
      .name = schedule->name,
      .splits_backward = splits_backward(lists),
      .needs_chunks = shape.chunks > 1,
      .route = shape.route,
      .optimizer_barrier = optimizer_barrier,
      .listed = schedule.get(),
      .accepts = accepts,
      .passes = passes,
      .pairs = pairs,
      .weight_gradients_at_end = weight_gradients_at_end,
      .chunks_between_halves = chunks_between_halves,
      .chunks_in_flight = chunks_in_flight,
      .chunks_past_input_gradient = chunks_past_input_gradient,
      .most_kept = most_kept,
  };
  schedule->passes = std::move(lists);
  return schedule;
}

}  // namespace trainyard
