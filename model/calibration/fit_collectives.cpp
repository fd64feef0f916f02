#include "model/calibration/fit_collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "model/calibration/fit_residual_grid.h"
#include "model/calibration/least_squares.h"
#include "model/cost/collective.h"

namespace trainyard {
namespace {

using CurveKey = std::pair<CollectiveOperation, int>;

constexpr std::size_t kLeastCurveSamples = 5;
constexpr double kWild = 2;  // factor beyond what neighbours allow; table rows stay within 1.6
constexpr int kFour = 4;
constexpr double kSlowPath = 1.0 / 3;
constexpr Seconds kStepLatency(3e-6);  // of the formulas, where a device has no curve

struct TimedPoint {
  double bytes, seconds;
};

double form(std::span<const double> p, double bytes) {
  return p[0] + bytes * p[1] + p[2] * std::sqrt(bytes);
}

CollectiveCurve fit_form(const CurveKey& key, const std::vector<TimedPoint>& points) {
  const TimedPoint& first = points.front();
  const TimedPoint& last = points.back();
  const double least = std::ranges::min(points, {}, &TimedPoint::seconds).seconds;
  const double slope = last.seconds / last.bytes;
  const std::array<ParameterBounds, 3> bounds = {
      {{least / 10, first.seconds * 10, true}, {slope / 10, slope * 2, true}, {1e-13, 1e-6, true}}};
  const double rise = last.seconds / std::sqrt(last.bytes);
  const std::vector<std::vector<double>> starts = {{least, 0.9 * slope, 0.03 * rise},
                                                   {0.8 * least, 0.7 * slope, 0.2 * rise}};
  const auto residuals = [&](std::span<const double> parameters, std::span<double> out) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      out[i] = std::log(form(parameters, points[i].bytes) / points[i].seconds);
    }
  };
  const auto fit = fit_least_squares_from(residuals, points.size(), bounds, starts);
  return {key.first,
          key.second,
          Seconds(four_digits(fit.parameters[0])),
          BytesPerSecond(four_digits(1 / fit.parameters[1])),
          four_digits(fit.parameters[2]),
          {}};
}

// The time that the curve gives for its own number of devices.
double time_of(const CollectiveCurve& curve, double bytes) {
  const std::array<double, 3> p = {curve.latency.value(), 1 / curve.bandwidth.value(), curve.root};
  const double rest =
      curve.residual.empty() ? 0 : residual_at(curve.residual, std::array{std::log2(bytes)});
  return form(p, bytes) * std::exp(rest);
}

bool rises(const CollectiveCurve& curve) {
  double before = 0;
  for (double octave = 0; octave <= 40; octave += 0x1p-6) {
    const double now = time_of(curve, std::exp2(octave));
    if (now < before) return false;
    before = now;
  }
  return true;
}

// The closest times, in the logarithm, that never fall with the size: neighbouring times that do
// are pooled into their mean (Barlow et al. 1972). Requires: ascending sizes.
std::vector<TimedPoint> rising(const std::vector<TimedPoint>& points) {
  struct Pool {
    double sum;
    std::size_t size;
    double mean() const { return sum / static_cast<double>(size); }
  };
  std::vector<Pool> pools;
  for (const TimedPoint& point : points) {
    pools.push_back({std::log(point.seconds), 1});
    while (pools.size() > 1 && pools.back().mean() < pools[pools.size() - 2].mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().size += last.size;
    }
  }
  std::vector<TimedPoint> result = points;
  auto point = result.begin();
  for (const Pool& pool : pools) {
    for (std::size_t i = 0; i < pool.size; ++i) (point++)->seconds = std::exp(pool.mean());
  }
  return result;
}

void fit_rest(CollectiveCurve& curve, const std::vector<TimedPoint>& points) {
  ResidualSamples samples;
  for (const TimedPoint& point : points) {
    samples.coordinates.push_back(std::log2(point.bytes));
    samples.residuals.push_back(std::log(point.seconds / time_of(curve, point.bytes)));
  }
  std::vector<double> knots;
  const double last = std::ceil(samples.coordinates.back());
  for (double knot = std::floor(samples.coordinates.front()); knot <= last; ++knot) {
    knots.push_back(knot);
  }
  if (knots.size() < 2) return;
  curve.residual =
      fit_residual_grid({knots}, samples, {.smoothness = {0.02}, .ridge = 0.02, .loss_scale = 0.1});
  while (!rises(curve)) {
    for (double& value : curve.residual.values) value = std::trunc(value * 900) / 1000;
  }
}

// The range of times that the neighbours allow: not below those of smaller messages nor above those
// of larger ones, and above the smaller ones by at most the ratio of the bytes. Of four neighbours'
// limits the second and the third count, so that one wild neighbour has no effect.
struct Allowed {
  double least, most;
};
Allowed allowed_at(const std::vector<TimedPoint>& points, std::size_t at) {
  std::vector<double> least, most;
  const std::size_t first = std::min(at - std::min<std::size_t>(at, 2), points.size() - 5);
  for (std::size_t i = first; i < first + 5; ++i) {
    if (i == at) continue;
    const double scaled = points[i].seconds * points[at].bytes / points[i].bytes;
    least.push_back(std::min(points[i].seconds, scaled));
    most.push_back(std::max(points[i].seconds, scaled));
  }
  std::ranges::sort(least);
  std::ranges::sort(most);
  return {least[1], most[2]};
}

// Leaves out the times that are wild beside their neighbours. The ends of the form and the pools of
// rising times would follow them, whatever the loss of the fit.
std::vector<TimedPoint> tame(const std::vector<TimedPoint>& points) {
  std::vector<TimedPoint> kept;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Allowed allowed = allowed_at(points, i);
    const double seconds = points[i].seconds;
    if (seconds * kWild >= allowed.least && seconds <= allowed.most * kWild) {
      kept.push_back(points[i]);
    }
  }
  return kept.size() >= kLeastCurveSamples ? kept : points;
}

// Requires: kLeastCurveSamples points or more.
CollectiveCurve fit_curve(const CurveKey& key, std::vector<TimedPoint> points) {
  std::ranges::sort(points, {}, &TimedPoint::bytes);
  points = tame(points);
  CollectiveCurve curve = fit_form(key, points);
  fit_rest(curve, rising(points));
  return curve;
}

using Curves = std::map<CurveKey, CollectiveCurve>;

const CollectiveCurve* find(const Curves& curves, CollectiveOperation operation, int gpus) {
  const auto found = curves.find({operation, gpus});
  return found == curves.end() ? nullptr : &found->second;
}

double moving(const CollectiveCurve& curve, double bytes) {
  return time_of(curve, bytes) - curve.latency.value();
}

// The part of a ring's time that moves bytes, for very many devices, extrapolated from 2 and 8: it
// is linear in 1/n.
double endless(const CollectiveCurve& two, const CollectiveCurve& eight, double bytes) {
  return (8 * moving(eight, bytes) - 2 * moving(two, bytes)) / 6;
}

// The all-reduce of four devices by a ring: half way from two to very many devices, in 1/n.
std::optional<CollectiveCurve> ring_all_reduce(const Curves& curves,
                                               const std::vector<TimedPoint>& sizes) {
  using enum CollectiveOperation;
  std::array<const CollectiveCurve*, 6> known{};
  std::size_t i = 0;
  for (const CollectiveOperation operation : {all_reduce, all_gather, reduce_scatter}) {
    for (const int gpus : {2, 8}) {
      known[i] = find(curves, operation, gpus);
      if (known[i++] == nullptr) return std::nullopt;
    }
  }
  const double latency = known[0]->latency.value() * 2 / 3 + known[1]->latency.value() / 3;
  std::vector<TimedPoint> points;
  for (const TimedPoint& size : sizes) {
    const double s = size.bytes;
    const double ring = (moving(*known[0], s) + endless(*known[2], *known[3], s) +
                         endless(*known[4], *known[5], s)) /
                        2;
    const double straight = moving(*known[0], s) / 3 + moving(*known[1], s) * 2 / 3;
    points.push_back({s, latency + std::max({ring, straight, 0.0})});
  }
  return fit_curve({all_reduce, kFour}, points);
}

// Whether eight devices are not on one side of the host.
bool on_a_slow_path(const CollectiveCurve& two, const CollectiveCurve& eight) {
  const double share_of_eight = 7.0 / 8 * eight.bandwidth.value();
  return share_of_eight < kSlowPath * two.bandwidth.value() / 2;
}

CollectiveCurve near_side(const CollectiveCurve& two, const CollectiveCurve& eight) {
  CollectiveCurve four = two;
  four.gpus = kFour;
  four.latency = Seconds(four_digits((two.latency * 2 / 3 + eight.latency / 3).value()));
  const double share = (3.0 / 4) / (1.0 / 2);
  four.bandwidth = BytesPerSecond(four_digits(two.bandwidth.value() / share));
  four.root = four_digits(two.root * share);
  return four;
}

void derive_four(Curves& curves, const std::map<CurveKey, std::vector<TimedPoint>>& points) {
  using enum CollectiveOperation;
  if (const auto sizes = points.find({all_reduce, 2});
      sizes != points.end() && find(curves, all_reduce, kFour) == nullptr) {
    if (const auto ring = ring_all_reduce(curves, sizes->second)) {
      curves.insert_or_assign({all_reduce, kFour}, *ring);
    }
  }
  for (const auto operation : {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast}) {
    const CollectiveCurve* two = find(curves, operation, 2);
    const CollectiveCurve* eight = find(curves, operation, 8);
    if (two == nullptr || eight == nullptr || points.contains({operation, kFour})) continue;
    if (on_a_slow_path(*two, *eight)) {
      curves.insert_or_assign({operation, kFour}, near_side(*two, *eight));
    }
  }
}

}  // namespace

Seconds collective_sample_time(const Device& device, const CollectiveSample& sample) {
  GroupLinks links;
  links.size = links.ranks_per_domain = sample.gpus;
  links.inside = links.inside_pair = device.link_bandwidth;
  links.inside_latency = kStepLatency;
  return collective_time(sample.operation, links, sample.bytes, {{}, device.collectives});
}

Expected<void> fit_collectives(Device& device, const std::vector<CollectiveSample>& samples,
                               const std::function<void(double)>& progress) {
  std::map<CurveKey, std::vector<TimedPoint>> points;
  for (const CollectiveSample& sample : samples) {
    points[{sample.operation, sample.gpus}].push_back({sample.bytes.value(), sample.time.value()});
  }
  Curves curves;
  for (const auto& [key, list] : points) {
    if (list.size() < kLeastCurveSamples) {
      return failure("collectives", "found too few sizes of a curve; allowed: 5 or more");
    }
    curves.emplace(key, fit_curve(key, list));
    progress(static_cast<double>(curves.size()) / static_cast<double>(points.size()));
  }
  derive_four(curves, points);
  // Curves of the device that the table does not measure stay.
  std::erase_if(device.collectives, [&](const CollectiveCurve& curve) {
    return curves.contains({curve.operation, curve.gpus});
  });
  for (auto& [key, curve] : curves) device.collectives.push_back(std::move(curve));
  return {};
}

}  // namespace trainyard
