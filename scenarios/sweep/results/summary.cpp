#include "scenarios/sweep/results/summary.h"

#include "scenarios/sweep/results/row_json.h"

namespace trainyard {

PointOrder order_of(const SweepDocument& sweep) {
  if (sweep.evaluate == Evaluation::goodput) return {"goodput DESC, point", "goodput"};
  switch (sweep.objective) {
    case Objective::step_time:
    case Objective::goodput:  // an evaluation of its own, above
      break;
    case Objective::cost:
      return {"cost_per_step_usd / (tokens_per_second * step_time_s) NULLS LAST, point",
              "cost of a token"};
    case Objective::energy:
      return {"energy_per_step_joule / (tokens_per_second * step_time_s) NULLS LAST, point",
              "energy of a token"};
    case Objective::memory:
      return {"peak_memory_bytes, point", "peak memory"};
  }
  return {"tokens_per_second DESC, point", "throughput"};
}

Expected<SweepSummary> summary_of(const std::filesystem::path& file, const Sweep& sweep,
                                  const SweepOutcome& outcome) {
  SweepSummary summary{
      .name = sweep.name, .file = file, .outcome = outcome, .order = order_of(sweep.document)};
  auto results = ResultFile::open(file);
  if (!results) return tl::unexpected(results.error());
  const auto counts = results->counts();
  if (!counts) return tl::unexpected(counts.error());
  summary.done = counts->of(PointStatus::done);
  summary.too_large = counts->of(PointStatus::too_large);
  summary.refused = counts->of(PointStatus::refused);
  const RowQuery best{.status = PointStatus::done, .order = summary.order.sql, .limit = kBestTold};
  auto read = results->each(best, [&summary](const PointRow& row) {
    summary.best.push_back(row);
    return true;
  });
  if (!read) return tl::unexpected(read.error());
  read =
      results->each({.status = PointStatus::refused, .limit = 1}, [&summary](const PointRow& row) {
        summary.refusal = row.note;
        return true;
      });
  return read ? Expected<SweepSummary>(std::move(summary)) : tl::unexpected(read.error());
}

std::string summary_json(const SweepSummary& summary) {
  return text_of(
      Json{{"trainyard", "sweep-summary/1"},
           {"name", summary.name},
           {"results", summary.file.string()},
           {"points", summary.outcome.points},
           {"found", summary.outcome.found},
           {"answered", summary.outcome.answered},
           {"complete", summary.outcome.complete()},
           {"lost_workers", summary.outcome.lost_workers},
           {"done", summary.done},
           {"does_not_fit", summary.too_large},
           {"refused", summary.refused},
           {"left_out", summary.left_out()},
           {"best", summary.best.empty() ? Json(nullptr) : row_value(summary.best.front())}});
}

}  // namespace trainyard
