// How unevenly tokens fall on experts whose popularity follows a power law with exponent α, drawn
// as the measured tables draw it: each expert's popularity independently from a density ∝ x^(−α) on
// [1, 0.8·tokens], or on [0.01, 2] where there are fewer token copies than experts. A rank's share
// of the load, its experts' popularities over the total, is taken as a beta distribution with the
// same first two moments; the expected largest of `ranks` shares comes from the Wilson–Hilferty
// quantile. Within 5 % of simulation for 16 experts a rank or more, 25 % below (tests).
#pragma once

namespace trainyard {

struct Routing {
  double tokens = 0;  // of the expert-parallel group
  int experts_per_token = 1;
  int experts = 1;
  double exponent = 0;  // α; 0: every expert gets the same
};

// Token copies of the busiest of `ranks` over the mean. Requires: experts a multiple of ranks.
double busiest_over_mean(const Routing& routing, int ranks);

// The share of experts that get a token at all.
double active_share(const Routing& routing);

}  // namespace trainyard
