// What the interpreter trains: where a number of a weight starts, which tokens a sequence has. Both
// are functions of what is asked for (weight, layer, row, column; sequence, position), so that
// every sharding starts from the same model and sees the same data.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/plan/plan.h"
#include "model/program/rank_layout.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard::interpreter {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Setting {
  Transformer model;
  Training training;
  Plan plan;
  // Whose ranks drop tokens beyond a capacity, where it is not this plan's: a network on one rank
  // then drops what each of those ranks would.
  std::optional<Plan> blocks;
};

// One element of a weight that is looked at more closely: moved by `by`.
struct Nudge {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0, column = 0;
  double by = 0;
};

struct Place {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0, column = 0;
};
double initial_weight(const Setting& setting, const Place& place);
// Whether dropout keeps a number: `site` tells the places in a layer apart, `row` and `column` the
// number.
bool is_kept(int site, int layer, std::int64_t sequence, std::int64_t row, std::int64_t column);
int token_at(const Setting& setting, std::int64_t sequence, std::int64_t position);

}  // namespace trainyard::interpreter
