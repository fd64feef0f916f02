#include "cli/text/goodput.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/text/estimate.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"

namespace trainyard {
namespace {

struct Loss {
  Spent kind;
  std::string_view label;
};
constexpr std::array<Loss, kSpentKinds> kLosses = {{
    {Spent::useful, "useful training"},
    {Spent::checkpoint, "checkpoints"},
    {Spent::lost, "work lost and done again"},
    {Spent::detection, "restart: detection"},
    {Spent::diagnosis, "restart: diagnosis"},
    {Spent::rescheduling, "restart: another node"},
    {Spent::starting, "restart: processes"},
    {Spent::loading, "restart: loading"},
    {Spent::warming_up, "restart: warm-up"},
    {Spent::waiting, "waiting for a repair"},
    {Spent::maintenance, "maintenance"},
    {Spent::degraded, "stragglers, missing replicas"},
}};

std::string line(std::string_view label, std::string_view text, const Style& style) {
  constexpr std::size_t kLabelWidth = 14;
  return style.faint(pad_right(label, kLabelWidth)) + wrap(text, kLabelWidth);
}

// How often something happened, on average.
std::string times(double mean) {
  const bool whole = mean >= 100 || mean == std::round(mean);
  return whole ? count(std::llround(mean)) : fmt::format("{:.1f}", mean);
}

std::string range(const Quantiles& found) {
  return fmt::format("{} ({} – {})", times(found.mean), times(found.low), times(found.high));
}

// The time of the runs; runs that end with the calendar all take the same.
std::string time_words(const RunReport& report, int asked) {
  const Campaign& campaign = report.campaign;
  const bool ended = all_ended(report.settings, campaign);
  std::string words = ended ? duration(Seconds(campaign.wall.mean)) : "unknown";
  if (ended && campaign.finished > 0) {
    words += fmt::format(" (10–90 %: {} – {})", duration(Seconds(campaign.wall.low)),
                         duration(Seconds(campaign.wall.high)));
  }
  const std::int64_t done = std::llround(campaign.finished * campaign.runs);
  const bool calendar = report.settings.limit && report.settings.work >= *report.settings.limit;
  words += calendar ? fmt::format(", the calendar's, in {} runs", count(campaign.runs))
                    : fmt::format("; {} of {} runs did all their work", count(done),
                                  count(campaign.runs));
  if (!ended) {
    words += fmt::format(
        ". {} were given up: at their pace they would take more than 100 times as "
        "long as their work",
        count(campaign.runs - done));
  }
  if (campaign.runs < asked)
    words += fmt::format(", stopped before {} more", count(asked - campaign.runs));
  return words;
}

std::string loss_table(const Campaign& campaign, const Style& style) {
  Table table({{"where the run goes", "", Align::left},
               {"time", "h"},
               {"share", "%"},
               {"", "", Align::left}});
  for (const Loss& loss : kLosses) {
    if (campaign.of(loss.kind) <= Seconds(0)) continue;
    const double share = campaign.share(loss.kind);
    const std::string filled = bar(share, kBarWidth);
    table.add_row({std::string(loss.label), fmt::format("{:.1f}", campaign.of(loss.kind) / kHour),
                   percent(share),
                   loss.kind == Spent::useful ? style.work(filled) : style.overhead(filled)});
  }
  table.add_rule();
  table.add_row({"run", fmt::format("{:.1f}", campaign.wall.mean / kHour.value()), percent(1), ""});
  return table.render(style);
}

std::string choices(const RunReport& report, const Style& style) {
  const GoodputEstimate& closed = report.closed_form;
  std::string interval =
      fmt::format("{} taken; Young {}, Daly {}", duration(report.settings.interval),
                  duration(closed.young), duration(closed.daly));
  if (report.interval) {
    interval +=
        fmt::format(", best by simulation {} (goodput {} %; as taken {} %, over the same runs)",
                    duration(report.interval->interval), percent(report.interval->goodput),
                    percent(report.interval->goodput_of_taken));
  }
  std::string spares = fmt::format("{} nodes held", report.settings.spares);
  if (report.spares) {
    spares += fmt::format("; {} give the most work a node-hour (goodput {} %)",
                          report.spares->spares, percent(report.spares->goodput));
  }
  return line("interval", interval, style) + line("spares", spares, style);
}

std::string bill_words(const Question& question, const RunReport& report) {
  if (!all_ended(report.settings, report.campaign)) return "unknown: not all runs ended";
  const Bill& bill = report.bill;
  std::string words =
      bill.cost ? fmt::format("{} USD", short_scale(bill.cost->value())) : "price unknown";
  if (bill.energy) words += fmt::format(" · {}", with_unit(*bill.energy));
  if (bill.energy && question.scenario.carbon_intensity) {
    constexpr double kGramsATonne = 1e6;
    const double grams = bill.energy->value() * *question.scenario.carbon_intensity;
    words += fmt::format(" · {} t of CO2", number(grams / kGramsATonne));
  }
  return words;
}

}  // namespace

std::string goodput_text(const Question& question, const RunReport& report, const Style& style) {
  const Campaign& campaign = report.campaign;
  const GoodputEstimate& closed = report.closed_form;
  std::string text = job_heading(question, style) + "\n";
  text +=
      line("goodput",
           fmt::format("{} % (10–90 %: {} – {}), closed form {} %",
                       style.strong(percent(campaign.goodput.mean)), percent(campaign.goodput.low),
                       percent(campaign.goodput.high), percent(closed.goodput)),
           style);
  text += line("time", time_words(report, question.scenario.run.runs), style);
  const bool traced = !report.settings.reliability.trace.empty();
  const std::string every = traced ? "" : ", one every " + duration(closed.mtbf);
  text += line("interruptions",
               fmt::format("{} unexpected{}; {} planned", range(campaign.interruptions), every,
                           times(campaign.planned.mean)),
               style);
  text += line("checkpoints",
               fmt::format("{} of {}, each blocks {}", times(campaign.checkpoints.mean),
                           with_unit(closed.checkpoint_bytes), duration(closed.blocking)),
               style);
  text += choices(report, style);
  text += line("bill", bill_words(question, report), style);
  return text + "\n" + loss_table(campaign, style);
}

CsvRow goodput_row(const Question& question, const RunReport& report) {
  const Campaign& campaign = report.campaign;
  const bool ended = all_ended(report.settings, campaign);
  const auto wall = [ended](double seconds) { return ended ? csv_number(seconds) : ""; };
  CsvRow row = {
      {"name", question.scenario.name},
      {"runs", std::to_string(campaign.runs)},
      {"finished", csv_number(campaign.finished)},
      {"goodput", csv_number(campaign.goodput.mean)},
      {"wall_time_s", wall(campaign.wall.mean)},
      {"wall_time_low_s", wall(campaign.wall.low)},
      {"wall_time_high_s", wall(campaign.wall.high)},
      {"interruptions", csv_number(campaign.interruptions.mean)},
      {"best_interval_s",
       report.interval ? csv_number(report.interval->interval.value()) : std::string()},
      {"best_spares", report.spares ? std::to_string(report.spares->spares) : std::string()},
      {"cost_usd", csv_number(report.bill.cost)},
      {"energy_joule", csv_number(report.bill.energy)}};
  for (const Loss& loss : kLosses) {
    row.emplace_back(fmt::format("{}_s", name_of(loss.kind)),
                     csv_number(campaign.of(loss.kind).value()));
  }
  return row;
}

}  // namespace trainyard
