// A plan in words: one line for people, and its keys for tables and CSV.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/text/layout/style.h"
#include "model/plan/plan.h"

namespace trainyard {

// The searched keys of a plan and their values, as documents spell them.
std::vector<std::pair<std::string, std::string>> plan_fields(const Plan& plan);
// "micro_batch 2 instead of 1, zero_stage 1 instead of 3"; empty: none of these keys differs.
std::string plan_differences(const Plan& plan, const Plan& from);

// Recomputation, with the number of layers where only some are recomputed: "full 2".
std::string recompute_value(const Plan& plan);

// "tp 8 · pp 16 · dp 16 · micro-batch 1 × 64 · interleaved-1f1b, 4 virtual stages · ZeRO-1 · …";
// degrees of 1 are left out.
std::string plan_line(const Plan& plan);

// A label, and a paragraph indented behind it.
std::string paragraph(std::string_view label, std::string_view text, const Style& style);

}  // namespace trainyard
