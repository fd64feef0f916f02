#include "model/calibration/fit_fabric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "model/calibration/least_squares.h"
#include "model/cluster/topology.h"
#include "model/cost/collective.h"

namespace trainyard {
namespace {

constexpr std::size_t kLeastFabricSamples = 4;
constexpr std::size_t kSamplesOfTwoProtocols = 12;
constexpr double kSpanOfTwoProtocols = 1024;  // largest size over smallest

constexpr ParameterBounds kStep = {1e-6, 1e-3, true};
constexpr ParameterBounds kShare = {0.02, 1, true};
constexpr std::array<ParameterBounds, 4> kBounds = {kStep, kShare, kStep, kShare};

bool tells_protocols_apart(const std::vector<FabricSample>& samples) {
  const auto [least, most] = std::ranges::minmax(samples, {}, &FabricSample::bytes);
  return samples.size() >= kSamplesOfTwoProtocols &&
         most.bytes / least.bytes >= kSpanOfTwoProtocols;
}

// `parameters`: α and share of the bulk protocol, then those of the protocol for small messages.
void set_figures(std::span<const double> parameters, InterNode& inter) {
  const bool two = parameters.size() > 2;
  inter.latency = Seconds(parameters[0]);
  inter.efficiency = parameters[1];
  inter.small_latency = Seconds(two ? parameters[2] : 0);
  inter.small_share = two ? parameters[3] : 0;
}

}  // namespace

Seconds fabric_sample_time(const FabricProblem& problem, const FabricSample& sample) {
  Cluster cluster = problem.cluster;
  cluster.nodes = sample.nodes;
  const FabricTiers tiers = fabric_tiers(cluster);
  const GroupLinks links = group_links(tiers, {.stride = 1, .size = cluster.devices()});
  return collective_time(sample.operation, links, sample.bytes,
                         collective_choice(problem.algorithm, cluster));
}

Expected<InterNode> fit_fabric(const FabricProblem& problem,
                               const std::vector<FabricSample>& samples) {
  if (samples.size() < kLeastFabricSamples) {
    return failure("fabric", "found too few collectives across nodes; allowed: 4 or more");
  }
  const std::size_t parameters = tells_protocols_apart(samples) ? 4 : 2;
  FabricProblem tried = problem;
  const auto residuals = [&](std::span<const double> figures, std::span<double> out) {
    set_figures(figures, tried.cluster.inter);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      out[i] = std::log(fabric_sample_time(tried, samples[i]) / samples[i].time);
    }
  };
  std::vector<std::vector<double>> starts = {{12e-6, 0.85, 6e-6, 0.5}, {300e-6, 0.9, 50e-6, 0.1}};
  for (std::vector<double>& start : starts) start.resize(parameters);
  LeastSquaresFit fit = fit_least_squares_from(
      residuals, samples.size(), std::span(kBounds).first(parameters), starts, {.loss_scale = 0.1});
  to_four_digits(fit.parameters);
  set_figures(fit.parameters, tried.cluster.inter);
  return tried.cluster.inter;
}

}  // namespace trainyard
