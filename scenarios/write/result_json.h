// An estimate as JSON values, shared by the commands that print it.
#pragma once

#include <optional>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "scenarios/json/json_document.h"
#include "scenarios/scenario.h"

namespace trainyard {

struct UnlikeAnswer;  // scenarios/unlike_answer.h

// The keys of `estimate --format json`, without tag and plan.
Json estimate_value(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                    const Estimate& estimate);

// The stages of it: layers and memory of each.
Json stages_value(const Estimate& estimate);
// The estimate of a plan for groups of unlike nodes, with tag (scenarios/write/groups.h).
Json grouped_estimate_value(const Scenario& scenario, const UnlikeAnswer& answer);

template <typename Q>
Json number_or_null(const std::optional<Q>& quantity) {
  return quantity ? Json(quantity->value()) : Json(nullptr);
}

// Carbon in g of CO2; `intensity`: g of CO2 a joule.
inline Json carbon_value(const std::optional<Joules>& energy,
                         const std::optional<double>& intensity) {
  return energy && intensity ? Json(energy->value() * *intensity) : Json(nullptr);
}

}  // namespace trainyard
