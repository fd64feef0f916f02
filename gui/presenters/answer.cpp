#include "gui/presenters/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gui/presenters/plan/plan_knobs.h"
#include "gui/presenters/text.h"
#include "model/cost/interval.h"
#include "model/schedule/schedule.h"
#include "planner/findings/explain.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Answer", text); }

QString shown(Seconds time) { return qt(with_unit(time)); }
QString shown(Bytes bytes) { return qt(with_unit(bytes)); }

AnswerLine money_line(const Estimate& estimate) {
  const QString energy = estimate.energy_per_step
                             ? tr("%1 a step").arg(qt(with_unit(*estimate.energy_per_step)))
                             : tr("energy unknown");
  if (!estimate.cost_per_step) {
    return {tr("Cost"), tr("unknown"), tr("the device has no price; %1").arg(energy)};
  }
  return {tr("Cost"), tr("%1 USD").arg(qt(number(estimate.cost_per_step->value()))),
          tr("a step, %1").arg(energy)};
}

// The stack `ideal` has an interval of zero width: it states a bound, not a time to be measured.
QString interval_text(const Estimate& found, const Job& job, const Plan& plan) {
  if (found.step_time_low == found.step_time_high) {
    return tr("a bound: the stack states no interval");
  }
  const QString interval = tr("%1 to %2 (10\u2060–\u206090\u00a0%)")
                               .arg(shown(found.step_time_low), shown(found.step_time_high));
  const std::vector<std::string> why = widening_reasons(job, plan);
  return why.empty()
             ? interval
             : tr("%1, widened: %2").arg(interval, qt(fmt::format("{}", fmt::join(why, "; "))));
}

QString missing_text(const Infeasible& missing) {
  const QString where =
      missing.on_hosts ? tr("the hosts of a node need") : tr("stage %1 needs").arg(missing.stage);
  return tr("%1 %2 of %3").arg(where, shown(missing.required), shown(missing.available));
}

AnswerLine memory_line(const Estimate& estimate, const Cluster& cluster) {
  const auto missing = infeasibility(estimate, cluster);
  const bool hosts_are_full = missing && missing->on_hosts;
  QString where = tr("of %1, stage %2 is the fullest")
                      .arg(shown(cluster.device.memory))
                      .arg(estimate.fullest_stage);
  if (estimate.peak_memory_low != estimate.peak_memory_high) {
    where = tr("%1 to %2 (10\u2060–\u206090\u00a0%), %3")
                .arg(shown(estimate.peak_memory_low), shown(estimate.peak_memory_high), where);
  }
  if (hosts_are_full) {
    where += tr("; does not fit: %1").arg(missing_text(*missing));
  } else if (estimate.host_memory > Bytes(0)) {
    where += tr("; %1 on a node's hosts").arg(shown(estimate.host_memory));
  }
  if (missing && !hosts_are_full) where = tr("does not fit: ") + where;
  return {tr("Memory"), shown(estimate.peak_memory), where, !estimate.feasible};
}

struct MemoryPart {
  const char* key;
  const char* label;
  Bytes MemoryByKind::*bytes;
};

constexpr MemoryPart kMemoryParts[] = {
    {"parameters", QT_TRANSLATE_NOOP("Answer", "parameters"), &MemoryByKind::parameters},
    {"gradients", QT_TRANSLATE_NOOP("Answer", "gradients"), &MemoryByKind::gradients},
    {"optimizer", QT_TRANSLATE_NOOP("Answer", "optimizer states"), &MemoryByKind::optimizer},
    {"activations", QT_TRANSLATE_NOOP("Answer", "activations"), &MemoryByKind::activations},
    {"recomputation", QT_TRANSLATE_NOOP("Answer", "recomputation"), &MemoryByKind::recomputation},
    {"logits", QT_TRANSLATE_NOOP("Answer", "logits"), &MemoryByKind::logits},
    {"buffers", QT_TRANSLATE_NOOP("Answer", "buffers"), &MemoryByKind::buffers},
    {"runtime", QT_TRANSLATE_NOOP("Answer", "runtime"), &MemoryByKind::runtime},
    {"fragmentation", QT_TRANSLATE_NOOP("Answer", "fragmentation"), &MemoryByKind::fragmentation},
};

// The choices of a plan other than its degrees, where they differ from the default.
QString choices_text(const Plan& plan) {
  const QString between = QString::fromUtf8(" · ");
  QString text;
  if (plan.recompute != Recompute{}) {
    text += between + tr("recompute %1").arg(recompute_text(plan.recompute));
  }
  const std::string_view usual = plan.virtual_stages > 1 ? "interleaved-1f1b" : "1f1b";
  if (plan.schedule != nullptr && plan.schedule->name != usual) {
    text += between + qt(plan.schedule->name);
  }
  if (plan.offload != Offload{}) {
    text += between + tr("offload: %1").arg(offload_text(plan.offload));
  }
  if (plan.rank_order != Plan().rank_order) {
    text += between + tr("ranks %1").arg(qt(plan.rank_order));
  }
  return text;
}

// A change with the names that keys have on the controls: "Tensor parallel 4".
QString change_text(const std::string& change) {
  QString text = qt(change);
  for (const PlanKnob& knob : plan_knobs()) {
    const QRegularExpression key(QStringLiteral("\\b%1\\b").arg(QLatin1String(knob.key)));
    text.replace(key, QCoreApplication::translate("PlanKnobs", knob.label));
  }
  return text;
}

QString share_of(Seconds part, Seconds whole) { return percent_text(part / whole); }

}  // namespace

QString percent_text(double fraction) { return qt(percent(fraction) + " %"); }

QString difference_text(double value, double first) {
  if (first == 0 || value == first || !std::isfinite(value / first)) return {};
  return qt(signed_percent(value / first - 1) + " %");
}

QString points_text(double value, double first) {
  if (value == first) return {};
  return tr("%1 points").arg(qt(signed_percent(value - first)));
}

std::vector<AnswerLine> answer_lines(const Candidate& candidate, const Job& job) {
  const Estimate& found = candidate.estimate;
  return {
      {tr("Step time"), shown(found.step_time), interval_text(found, job, candidate.plan)},
      {tr("MFU"), percent_text(found.mfu), tr("HFU %1").arg(percent_text(found.hfu))},
      {tr("Throughput"), qt(short_scale(found.tokens_per_second)),
       tr("tokens a second, %1 TFLOP/s a device")
           .arg(qt(number(found.model_flops_per_device.value() * 1e-12)))},
      money_line(found),
      memory_line(found, job.cluster),
  };
}

std::vector<BarPart> breakdown_bar(const Estimate& estimate) {
  std::vector<BarPart> bar;
  for (const BreakdownPart& part : breakdown_parts()) {
    const Seconds time = estimate.breakdown.*part.time;
    if (time <= Seconds(0)) continue;
    bar.push_back({std::string(part.key), qt(part.label),
                   tr("%1, %2").arg(shown(time), share_of(time, estimate.step_time)),
                   time.value()});
  }
  return bar;
}

std::vector<StageBar> memory_bars(const Estimate& estimate) {
  std::vector<StageBar> bars;
  for (std::size_t stage = 0; stage < estimate.stages.size(); ++stage) {
    StageBar bar{.label = QString::number(stage)};
    const MemoryByKind& memory = estimate.stages[stage].memory.at_peak;
    for (const MemoryPart& part : kMemoryParts) {
      const Bytes bytes = memory.*part.bytes;
      bar.parts.push_back({part.key, tr(part.label), shown(bytes), bytes.value()});
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

QString misfit_text(const Estimate& estimate, const Cluster& cluster) {
  const auto missing = infeasibility(estimate, cluster);
  return missing ? missing_text(*missing) : QString();
}

QString limits_text(const Candidate& candidate, const Cluster& cluster) {
  const Estimate& found = candidate.estimate;
  const Limits limit = limits(found);
  QStringList sentences;
  if (const auto missing = infeasibility(found, cluster)) {
    sentences.append(tr("Memory: %1.").arg(missing_text(*missing)));
  }
  if (limit.largest != nullptr) {
    sentences.append(tr("The largest part of the step is %1 (%2).")
                         .arg(qt(limit.largest->label),
                              share_of(found.breakdown.*limit.largest->time, found.step_time)));
  }
  if (limit.largest_overhead != nullptr && limit.largest_overhead != limit.largest) {
    const Seconds time = found.breakdown.*limit.largest_overhead->time;
    sentences.append(
        tr("The largest overhead is %1: %2 (%3).")
            .arg(qt(limit.largest_overhead->label), shown(time), share_of(time, found.step_time)));
  }
  sentences.append(tr("Stage %1 is the slowest.").arg(found.slowest_stage));
  return sentences.join(QLatin1Char(' '));
}

QString remedy_text(const Remedy& remedy, const Estimate& before) {
  const double share = remedy.saved / before.step_time;
  const QString time = share >= 0 ? tr("would save %1").arg(percent_text(share))
                                  : tr("would take %1 longer").arg(percent_text(-share));
  const QString memory = remedy.fits ? QString() : tr(", does not fit");
  return tr("%1: %2%3").arg(change_text(remedy.change), time, memory);
}

QString closest_text(const Remedy& closest) {
  const QString hosts = closest.host_memory > Bytes(0)
                            ? tr(", %1 on a node's hosts").arg(shown(closest.host_memory))
                            : QString();
  return tr("No single change makes it fit; %1 comes closest (%2%3).")
      .arg(change_text(closest.change), shown(closest.peak_memory), hosts);
}

QString recompute_text(const Recompute& recompute) {
  const QString name = qt(name_of(recompute.mode));
  return recompute.full_layers > 0 ? QStringLiteral("%1 %2").arg(name).arg(recompute.full_layers)
                                   : name;
}

QString offload_text(const Offload& offload) {
  QStringList parts;
  const auto add = [&parts](const QString& what, OffloadTarget where) {
    if (where == OffloadTarget::host) parts.append(tr("%1 on host").arg(what));
    if (where == OffloadTarget::nvme) parts.append(tr("%1 on NVMe").arg(what));
  };
  add(tr("parameters"), offload.parameters);
  add(tr("gradients"), offload.gradients);
  add(tr("optimizer"), offload.optimizer);
  add(offload.activation_layers > 0
          ? tr("activations of %1").arg(qt(counted(offload.activation_layers, "layer")))
          : tr("activations"),
      offload.activations);
  return parts.isEmpty() ? tr("none") : parts.join(QStringLiteral(", "));
}

bool shards_in_groups(const Plan& plan) {
  return plan.zero_stage > 0 && plan.sharding_group != plan.data_parallel * plan.context_parallel;
}

QString plan_text(const Plan& plan) {
  std::string text = fmt::format("TP {}", plan.tensor_parallel);
  const auto add = [&text](const char* name, int degree) {
    if (degree > 1) text += fmt::format(" · {} {}", name, degree);
  };
  add("CP", plan.context_parallel);
  if (plan.context_parallel > 1 &&
      plan.context_parallel_algorithm != Plan().context_parallel_algorithm) {
    text += fmt::format(" by {}", name_of(plan.context_parallel_algorithm));
  }
  add("PP", plan.pipeline_parallel);
  add("VP", plan.virtual_stages);
  text += fmt::format(" · DP {}", plan.data_parallel);
  add("EP", plan.expert_parallel);
  add("ETP", plan.expert_tensor_parallel);
  text += fmt::format(" · micro-batch {} · ZeRO {}", plan.micro_batch, plan.zero_stage);
  if (shards_in_groups(plan)) text += fmt::format(" in groups of {}", plan.sharding_group);
  return qt(text) + choices_text(plan);
}

QString why_not_text(const Candidate& winner, const Candidate& other, const Cluster& cluster) {
  const Comparison lost = compare(winner, other, cluster);
  QStringList lines;
  if (lost.memory) {
    lines.append(tr("Does not fit: %1.").arg(missing_text(*lost.memory)));
  }
  const QString first =
      winner.estimate.feasible ? tr("the best plan") : tr("the one that misses the least");
  const QString share = percent_text(lost.lost / winner.estimate.step_time);
  if (lost.lost > Seconds(0)) {
    lines.append(tr("%1 slower than %2 (%3).").arg(shown(lost.lost), first, share));
  } else {
    lines.append(tr("As fast as %1, or faster by %2.").arg(first, shown(-lost.lost)));
  }
  constexpr std::size_t kShown = 6;
  for (std::size_t i = 0; i < lost.differences.size() && i < kShown; ++i) {
    const PartDifference& part = lost.differences[i];
    const bool more = part.lost() > Seconds(0);
    lines.append(tr("%1: %2 %3 (%4 against %5)")
                     .arg(qt(part.part->label), more ? tr("loses") : tr("gains"),
                          shown(more ? part.lost() : -part.lost()), shown(part.other),
                          shown(part.winner)));
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace trainyard
