#include "scenarios/write/goodput.h"

#include "scenarios/json/json_document.h"
#include "scenarios/plan_value.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json quantiles_json(const Quantiles& found) {
  return {{"mean", found.mean}, {"p10", found.low}, {"p50", found.median}, {"p90", found.high}};
}

Json spent_json(const Campaign& campaign) {
  Json spent = Json::object();
  for (std::size_t kind = 0; kind < kSpentKinds; ++kind) {
    spent[std::string(name_of(static_cast<Spent>(kind))) + "_s"] = campaign.spent[kind].value();
  }
  return spent;
}

Json closed_form_json(const GoodputEstimate& closed) {
  return {{"goodput", closed.goodput},
          {"mtbf_s", closed.mtbf.value()},
          {"checkpoint_bytes", closed.checkpoint_bytes.value()},
          {"checkpoint_blocking_s", closed.blocking.value()},
          {"checkpoint_background_s", closed.background.value()},
          {"restart_s", closed.restart.total().value()},
          {"young_interval_s", closed.young.value()},
          {"daly_interval_s", closed.daly.value()}};
}

Json plan_entry(const Scenario& scenario, const Plan& plan,
                const std::optional<GroupedPlan>& groups) {
  return groups ? grouped_plan_value(*scenario.unlike, *groups, scenario.carbon_intensity)
                : plan_value(plan);
}

}  // namespace

std::string goodput_json(const Scenario& scenario, const Plan& plan, const RunReport& report) {
  const Campaign& campaign = report.campaign;
  const std::optional<BestInterval>& best = report.interval;
  const std::optional<BestSpares>& spares = report.spares;
  return text_of(
      Json{{"trainyard", "goodput/1"},
           {"name", scenario.name},
           {"devices", plan.devices()},
           {"plan", plan_entry(scenario, plan, report.groups)},
           {"feasible", report.feasible},
           {"runs", campaign.runs},
           {"finished", campaign.finished},
           {"goodput", quantiles_json(campaign.goodput)},
           {"wall_time_s",
            all_ended(report.settings, campaign) ? quantiles_json(campaign.wall) : Json(nullptr)},
           {"interruptions", quantiles_json(campaign.interruptions)},
           {"planned_interruptions", quantiles_json(campaign.planned)},
           {"nodes_lost", quantiles_json(campaign.nodes_lost)},
           {"checkpoints", quantiles_json(campaign.checkpoints)},
           {"time", spent_json(campaign)},
           {"closed_form", closed_form_json(report.closed_form)},
           {"interval_s", report.settings.interval.value()},
           {"best_interval_s", best ? Json(best->interval.value()) : Json(nullptr)},
           {"best_interval_goodput", best ? Json(best->goodput) : Json(nullptr)},
           {"taken_interval_goodput", best ? Json(best->goodput_of_taken) : Json(nullptr)},
           {"spares", report.settings.spares},
           {"best_spares", spares ? Json(spares->spares) : Json(nullptr)},
           {"best_spares_goodput", spares ? Json(spares->goodput) : Json(nullptr)},
           {"cost_usd", number_or_null(report.bill.cost)},
           {"energy_joule", number_or_null(report.bill.energy)},
           {"carbon_g", carbon_value(report.bill.energy, scenario.carbon_intensity)}});
}

}  // namespace trainyard
