#include "cli/text/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "cli/text/plan.h"
#include "model/cost/estimate.h"
#include "model/cost/interval.h"
#include "model/cost/memory/memory.h"
#include "model/schedule/schedule.h"
#include "model/units.h"
#include "planner/findings/explain.h"
#include "planner/passes/auto_schedule.h"

namespace trainyard {
namespace {

std::string gib(Bytes bytes) { return fmt::format("{:.2f}", bytes.value() / kGiB); }

std::string heading_line(std::string_view label, std::string_view text, const Style& style) {
  constexpr std::size_t kLabelWidth = 11;
  return style.faint(pad_right(label, kLabelWidth)) + wrap(text, kLabelWidth);
}

std::string model_words(const Question& question) {
  const PreparedJob& job = question.job;
  const Transformer& model = job.job.model;
  const std::string active = job.active_parameters < job.parameters
                                 ? fmt::format(" ({} active)", short_scale(job.active_parameters))
                                 : "";
  const std::string mtp = model.mtp_layers > 0 ? fmt::format(" + {} MTP", model.mtp_layers) : "";
  return fmt::format("{}{}{} parameters{} · {}{} layers", model.name,
                     model.name.empty() ? "" : " · ", short_scale(job.parameters), active,
                     model.layers, mtp);
}

std::string cluster_words(const Cluster& cluster) {
  return fmt::format("{} × {} · {} of {}", count(cluster.devices()), cluster.device.name,
                     counted(cluster.nodes, "node"), cluster.devices_per_node);
}

std::string training_words(const Training& training) {
  return fmt::format("{} of {} · {} · {} · {}", counted(training.global_batch, "sequence"),
                     counted(training.sequence_length, "token"), training.precision.name,
                     training.optimizer.name, training.stack.name);
}

std::string utilisation_words(const PreparedJob& job, const Estimate& estimate) {
  const Dtype dtype = job.job.training.precision.layer_gemm;
  const bool sixteen_bits = dtype == Dtype::bf16 || dtype == Dtype::fp16;
  return fmt::format("{} TFLOP/s/device · MFU {} % ({}{} % with causal attention) · HFU {} %",
                     number(estimate.model_flops_per_device.value() * 1e-12), percent(estimate.mfu),
                     sixteen_bits ? "" : fmt::format("{} % of bf16; ", percent(estimate.mfu_bf16)),
                     percent(causal_mfu(job, estimate)), percent(estimate.hfu));
}

// Time and cost of a whole run, whose length the scenario states.
std::string run_words(const Training& training, const Estimate& estimate) {
  const Seconds time(training.tokens / estimate.tokens_per_second);
  const double steps = time / estimate.step_time;
  std::string words = fmt::format("{} tokens · {} steps · {} days", short_scale(training.tokens),
                                  count(std::llround(steps)), number(time / kDay, 3));
  if (estimate.cost_per_step) {
    words += fmt::format(" · {} USD", short_scale(steps * estimate.cost_per_step->value()));
  }
  return words;
}

using Cells = std::vector<std::string>;

// The cells of a stage's row, without its number.
Cells stage_cells(const Estimate& estimate, std::size_t stage) {
  const MemoryByKind& memory = estimate.stages[stage].memory.at_peak;
  Cells cells = {fmt::format("{}", estimate.held[stage].layers)};
  for (const KindOfMemory& kind : kKindsOfMemory) {
    const Bytes bytes = memory.*kind.bytes;
    cells.push_back(bytes > Bytes(0) ? gib(bytes) : "·");
  }
  cells.push_back(gib(memory.device()));
  return cells;
}

std::string limits_sentence(const Estimate& estimate) {
  const Limits found = limits(estimate);
  const auto share = [&](const BreakdownPart* part) {
    return percent(estimate.breakdown.*part->time / estimate.step_time);
  };
  std::string text =
      fmt::format("Limited by {} ({} % of the step)", found.largest->label, share(found.largest));
  if (found.largest_overhead != nullptr && found.largest_overhead != found.largest) {
    text += fmt::format(", then by {} ({} %)", found.largest_overhead->label,
                        share(found.largest_overhead));
  }
  return text + ".";
}

std::string hardware_words(const Remedy& best, const Candidate& candidate) {
  return fmt::format("{} would save {} % of it", best.change,
                     percent(best.saved / candidate.estimate.step_time));
}

std::string faster_plan_words(const Remedy& best, const Estimate& now, bool faster_shown) {
  constexpr double kWorthwhile = 5e-4;
  const double saved = best.saved / now.step_time;
  if (!best.fits || saved < kWorthwhile) {
    return faster_shown ? "no neighbouring plan beside those above is faster"
                        : "no neighbouring plan is faster";
  }
  return fmt::format("{} would save {} %", best.change, percent(saved));
}

std::string fitting_plan_words(const Remedy& best, const Estimate& now) {
  if (!best.fits) {
    const std::string hosts = best.host_memory > Bytes(0)
                                  ? ", " + with_unit(best.host_memory) + " on a node's hosts"
                                  : "";
    return fmt::format("No single change makes it fit; {} comes closest ({}{})", best.change,
                       with_unit(best.peak_memory), hosts);
  }
  const double slower = -best.saved / now.step_time;
  return fmt::format("What helps most: {} makes it fit ({}, step {} %)", best.change,
                     with_unit(best.peak_memory), signed_percent(slower));
}

// The step time with its interval. A stack without one (`ideal`) gives a bound, not a prediction.
std::string step_words(const Estimate& estimate, const Style& style) {
  const std::string step = style.strong(with_unit(estimate.step_time));
  if (estimate.step_time_low == estimate.step_time_high) {
    return step + " (a bound: the stack states no interval)";
  }
  return fmt::format("{} (80 % interval {} – {})", step, with_unit(estimate.step_time_low),
                     with_unit(estimate.step_time_high));
}

// The interval of the memory; empty for a bound.
std::string memory_interval_words(const Estimate& estimate) {
  if (estimate.peak_memory_low == estimate.peak_memory_high) return "";
  return fmt::format(" (80 % interval {} – {})", with_unit(estimate.peak_memory_low),
                     with_unit(estimate.peak_memory_high));
}

}  // namespace

std::string job_heading(const Question& question, const Style& style) {
  const Scenario& scenario = question.scenario;
  const Job& job = question.job.job;
  std::string text = scenario.name.empty() ? "" : style.strong(scenario.name) + "\n";
  text += heading_line("model", model_words(question), style);
  if (scenario.unlike) {
    for (const Cluster& group : scenario.unlike->groups) {
      text += heading_line("cluster", cluster_words(group), style);
    }
  } else {
    text += heading_line("cluster", cluster_words(job.cluster), style);
  }
  text += heading_line("training", training_words(job.training), style);
  for (const std::string& assumption : scenario.assumptions) {
    text += heading_line("assumed", assumption, style);
  }
  return text;
}

std::string sizes_heading(const Question& question, const Style& style) {
  const Scenario& scenario = question.scenario;
  const CapacitySpace& sizes = scenario.space;
  const Cluster& cluster = question.job.job.cluster;
  const Training& training = question.job.job.training;
  std::string text = scenario.name.empty() ? "" : style.strong(scenario.name) + "\n";
  if (sizes.models.empty()) text += heading_line("model", model_words(question), style);
  text += heading_line("cluster",
                       sizes.nodes.empty() ? cluster_words(cluster)
                                           : fmt::format("{} · nodes of {}", cluster.device.name,
                                                         cluster.devices_per_node),
                       style);
  std::vector<std::string> words;
  if (sizes.global_batch.empty()) {
    words.push_back(counted(training.global_batch, "sequence") + " a step");
  }
  if (sizes.sequence_length.empty()) {
    words.push_back(counted(training.sequence_length, "token") + " a sequence");
  }
  words.push_back(fmt::format("{} · {} · {}", training.precision.name, training.optimizer.name,
                              training.stack.name));
  return text + heading_line("training", fmt::format("{}", fmt::join(words, " · ")), style);
}

std::string money_words(const Scenario& scenario, const Estimate& estimate) {
  std::string words = estimate.cost_per_step
                          ? fmt::format("{} USD", number(estimate.cost_per_step->value()))
                          : "price unknown";
  words += " · ";
  words += estimate.energy_per_step ? with_unit(*estimate.energy_per_step) : "power unknown";
  if (estimate.energy_per_step && scenario.carbon_intensity) {
    const double grams = estimate.energy_per_step->value() * *scenario.carbon_intensity;
    words += fmt::format(" · {} g of CO2", number(grams));
  }
  return words + " a step";
}

std::string step_summary(const Question& question, const Candidate& candidate, const Style& style) {
  const Estimate& estimate = candidate.estimate;
  const Training& training = question.job.job.training;
  const double per_device = estimate.tokens_per_second / candidate.plan.devices();
  const Job& job = question.job.job;
  std::string text = heading_line("plan", plan_line(candidate.plan), style);
  text += heading_line("step", step_words(estimate, style), style);
  if (const auto why = widening_reasons(job, candidate.plan); !why.empty()) {
    text += heading_line("interval", fmt::format("widened: {}", fmt::join(why, "; ")), style);
  }
  text += heading_line("throughput",
                       fmt::format("{} tokens/s · {} tokens/s/device",
                                   short_scale(estimate.tokens_per_second), number(per_device)),
                       style);
  text += heading_line("compute", utilisation_words(question.job, estimate), style);
  text += heading_line("cost", money_words(question.scenario, estimate), style);
  if (training.tokens > 0) {
    text += heading_line("whole run", run_words(training, estimate), style);
  }
  return text;
}

std::string breakdown_table(const Estimate& estimate, const Style& style) {
  const bool seconds = estimate.step_time >= Seconds(1);
  const auto time = [seconds](Seconds t) {
    return seconds ? fmt::format("{:.3f}", t.value()) : fmt::format("{:.2f}", 1e3 * t.value());
  };
  Table table({{"where the step goes", "", Align::left},
               {"time", seconds ? "s" : "ms"},
               {"share", "%"},
               {"", "", Align::left}});
  for (const BreakdownPart& part : breakdown_parts()) {
    const Seconds exposed = estimate.breakdown.*part.time;
    if (exposed <= Seconds(0)) {
      continue;
    }
    const double share = exposed / estimate.step_time;
    const std::string filled = bar(share, kBarWidth);
    table.add_row({std::string(part.label), time(exposed), percent(share),
                   is_useful(part) ? style.work(filled) : style.overhead(filled)});
  }
  table.add_rule();
  table.add_row({"step", time(estimate.step_time), percent(1), ""});
  return table.render(style);
}

std::string memory_bars(const Estimate& estimate, Bytes capacity, const Style& style) {
  const auto stage = static_cast<std::size_t>(estimate.fullest_stage);
  const MemoryByKind& memory = estimate.stages[stage].memory.at_peak;
  const std::string title = estimate.stages.size() > 1
                                ? fmt::format("memory of stage {}, the fullest", stage)
                                : "memory of a device";
  Table table({{title, "", Align::left},
               {"held", "GiB"},
               {"share", "%"},
               {"", fmt::format("of {} GiB", number(capacity.value() / kGiB, 3)), Align::left}});
  const auto row = [&](std::string_view label, Bytes bytes, const std::string& filled) {
    table.add_row({std::string(label), gib(bytes), percent(bytes / capacity), filled});
  };
  for (const KindOfMemory& kind : kKindsOfMemory) {
    const Bytes bytes = memory.*kind.bytes;
    if (bytes > Bytes(0)) {
      row(kind.key, bytes, style.work(bar(bytes / capacity, kBarWidth)));
    }
  }
  table.add_rule();
  const std::string filled = bar(memory.device() / capacity, kBarWidth);
  row("peak", memory.device(),
      memory.device() <= capacity ? style.good(filled) : style.bad(filled));
  return table.render(style);
}

std::string stage_table(const Estimate& estimate, const Style& style) {
  std::vector<Column> columns = {{"stage", "", Align::left}, {"layers"}};
  for (const KindOfMemory& kind : kKindsOfMemory) {
    columns.push_back({std::string(kind.head), "GiB"});
  }
  columns.push_back({"peak", "GiB"});
  Table table(std::move(columns));
  for (std::size_t first = 0; first < estimate.stages.size();) {
    const Cells cells = stage_cells(estimate, first);
    std::size_t next = first + 1;
    while (next < estimate.stages.size() && stage_cells(estimate, next) == cells) {
      ++next;
    }
    Cells row = {next == first + 1 ? fmt::format("{}", first)
                                   : fmt::format("{}–{}", first, next - 1)};
    row.insert(row.end(), cells.begin(), cells.end());
    table.add_row(std::move(row));
    first = next;
  }
  return table.render(style);
}

std::string host_words(Bytes needed, const Cluster& cluster) {
  const std::string all =
      cluster.host_memory ? with_unit(*cluster.host_memory) : "an unknown capacity";
  return fmt::format("the hosts of a node need {}, they have {}", with_unit(needed), all);
}

std::string misfit_words(const Candidate& candidate, const Cluster& cluster) {
  const auto missing = infeasibility(candidate.estimate, cluster);
  if (!missing) return "";
  if (missing->on_hosts) return host_words(missing->required, cluster);
  const std::string where =
      candidate.plan.pipeline_parallel > 1 ? fmt::format("stage {}", missing->stage) : "a device";
  return fmt::format("{} needs {}, the device has {}", where, with_unit(missing->required),
                     with_unit(missing->available));
}

std::string verdict(const Estimate& estimate, const Cluster& cluster, const Style& style) {
  const std::string stage = estimate.stages.size() > 1
                                ? fmt::format("stage {}, the fullest, ", estimate.fullest_stage)
                                : "a device ";
  // If the plan does not fit, names only the memory that is too small.
  const bool device_holds = estimate.peak_memory <= cluster.usable_memory();
  const bool hosts_hold = !cluster.host_memory || estimate.host_memory <= *cluster.host_memory;
  const bool by_hosts_alone = !estimate.feasible && device_holds && !hosts_hold;
  std::string amounts;
  if (!by_hosts_alone) {
    amounts = fmt::format("{}needs {}{}, the device has {}", stage, with_unit(estimate.peak_memory),
                          memory_interval_words(estimate), with_unit(cluster.device.memory));
  }
  if (estimate.host_memory > Bytes(0) && (estimate.feasible || !hosts_hold)) {
    if (!amounts.empty()) amounts += "; ";
    amounts += host_words(estimate.host_memory, cluster);
  }
  return wrap(fmt::format(
      "{}: {}", estimate.feasible ? style.good("fits") : style.bad("does not fit"), amounts));
}

std::string most_memory(const Estimate& estimate, const Style& style) {
  const MemoryByKind& memory =
      estimate.stages[static_cast<std::size_t>(estimate.fullest_stage)].memory.at_peak;
  auto kinds = kKindsOfMemory;
  std::ranges::stable_sort(
      kinds, [&](const auto& a, const auto& b) { return memory.*a.bytes > memory.*b.bytes; });
  const auto words = [&](const KindOfMemory& kind) {
    return fmt::format("{} ({} %)", kind.key, percent(memory.*kind.bytes / memory.device()));
  };
  return style.strong(
      wrap(fmt::format("Most of it: {}, then {}.", words(kinds[0]), words(kinds[1]))));
}

std::string advice(const Question& question, const Candidate& candidate, const Style& style,
                   const AdviceOptions& options) {
  const bool fits = candidate.estimate.feasible;
  const double plans = fits ? 0.5 : 1;  // share of the progress
  const auto is_over = [&](double done) { return options.is_over && options.is_over(done); };
  const auto remedies = plan_remedies(
      question.job, candidate, analytic_evaluator(question.job),
      [&](double done) { return is_over(plans * done); }, question.scenario.plan);
  std::vector<Remedy> hardware;
  if (fits) {
    hardware = hardware_remedies(question.job, candidate, analytic_evaluator,
                                 [&](double done) { return is_over(plans + (1 - plans) * done); });
  }
  std::string text;
  if (is_over(1)) {
    text = fits ? limits_sentence(candidate.estimate) + " What helps most was not looked for"
                : "What would make it fit was not looked for";
  } else if (!fits) {
    text = remedies.empty() ? "No neighbouring plan is legal"
                            : fitting_plan_words(remedies.front(), candidate.estimate);
  } else {
    text = fmt::format("{} What helps most: {}; {}", limits_sentence(candidate.estimate),
                       hardware_words(hardware.front(), candidate),
                       remedies.empty() ? "there is no neighbouring plan"
                                        : faster_plan_words(remedies.front(), candidate.estimate,
                                                            options.faster_shown));
  }
  return style.strong(wrap(text + "."));
}

std::string found_schedule(const Question& question, const Plan& plan, const Style& style) {
  const auto& asked = question.scenario.plan;
  if (!asked || asked->schedule != kAutoSchedule || plan.pipeline_parallel == 1) return "";
  const int chunks = plan.virtual_stages;
  const std::string words =
      plan.passes
          ? "a pass order found for these stages"
          : fmt::format("{}{}: by the estimate the best of what was compared", plan.schedule->name,
                        chunks > 1 ? fmt::format(" with {} chunks a stage", chunks) : "");
  return heading_line("auto", words, style);
}

std::string estimate_report(const Question& question, const Candidate& candidate,
                            const Style& style, const AdviceOptions& options) {
  const Cluster& cluster = question.job.job.cluster;
  const Estimate& estimate = candidate.estimate;
  std::string text = job_heading(question, style) + step_summary(question, candidate, style) +
                     found_schedule(question, candidate.plan, style);
  text += "\n" + breakdown_table(estimate, style);
  text += "\n" + memory_bars(estimate, cluster.device.memory, style);
  if (estimate.stages.size() > 1) {
    text += "\n" + stage_table(estimate, style);
  }
  text += "\n" + verdict(estimate, cluster, style);
  return text + advice(question, candidate, style, options);
}

}  // namespace trainyard
