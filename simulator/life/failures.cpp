#include "simulator/life/failures.h"

#include <algorithm>
#include <cmath>

namespace trainyard {

Failures::Failures(const LifeSettings& settings, std::uint64_t seed)
    : settings_(settings), seed_(seed) {
  const Reliability& reliability = settings.reliability;
  if (reliability.trace.empty()) add_failures();
  if (const double alarms = false_alarms_per_second(reliability.heartbeat); alarms > 0) {
    add(Trouble::false_alarm, Seconds(1 / alarms), settings.nodes, 0);
  }
  if (reliability.silent) {
    add(Trouble::silent, reliability.silent->mtbf, settings.devices, 0);
  }
  if (reliability.stragglers) {
    add(Trouble::straggler, reliability.stragglers->mtbf, settings.devices, 0);
  }
  if (reliability.maintenance) {
    add(Trouble::maintenance, reliability.maintenance->every, 1, 0);
    streams_.back().periodic = true;
  }
  for (Stream& stream : streams_) {
    if (stream.weibull_shape == 1) {
      draw(stream);
    } else {
      draw_first(stream);
    }
  }
  find_next();
}

void Failures::add_failures() {
  const Reliability& reliability = settings_.reliability;
  add(Trouble::failure, reliability.device_mtbf, settings_.devices, -1);
  if (reliability.law == FailureLaw::weibull) {
    streams_.back().weibull_shape = reliability.weibull_shape;
  }
  if (reliability.racks) {
    add(Trouble::failure, reliability.racks->mtbf,
        parts_of(settings_.nodes, reliability.racks->nodes),
        std::min(settings_.nodes, reliability.racks->nodes));
  }
  if (reliability.leaves) {
    add(Trouble::failure, reliability.leaves->mtbf,
        parts_of(settings_.nodes, settings_.nodes_per_leaf),
        std::min(settings_.nodes, settings_.nodes_per_leaf));
  }
}

void Failures::add(Trouble trouble, Seconds mtbf, double parts, int nodes) {
  const std::uint64_t stream = streams_.size() + 1;
  streams_.push_back({.trouble = trouble,
                      .mean = mtbf.value() * 1e9 / parts,
                      .nodes = nodes,
                      .random = RandomStream(seed_, stream),
                      .at = Nanoseconds(0)});
}

// The scale λ of a Weibull law with the stream's mean, which is λ·Γ(1 + 1/k).
double Failures::weibull_scale(const Stream& stream) {
  return stream.mean / std::tgamma(1 + 1 / stream.weibull_shape);
}

// Draws the next time of a stream.
void Failures::draw(Stream& stream) {
  double wait = stream.mean;
  if (!stream.periodic && stream.weibull_shape == 1) {
    wait = stream.random.exponential(stream.mean);
  } else if (!stream.periodic) {
    wait = weibull_scale(stream) *
           std::pow(-std::log(stream.random.uniform()), 1 / stream.weibull_shape);
  }
  advance(stream, wait);
}

// Draws the first failure. The run begins not at a failure but between two failures of a system
// that has been running: inside an interval of length x met with density x·f(x)/mean, at a uniform
// place of it. With y = (x/λ)^k that is a gamma law of shape 1 + 1/k.
void Failures::draw_first(Stream& stream) {
  const double power = 1 / stream.weibull_shape;
  const double interval = weibull_scale(stream) * std::pow(stream.random.gamma(1 + power), power);
  advance(stream, interval * stream.random.uniform());
}

void Failures::advance(Stream& stream, double wait) {
  const Nanoseconds step = to_nanoseconds(Seconds(wait * 1e-9));
  stream.at = std::min(kNever, stream.at + std::max(step, Nanoseconds(1)));
}

void Failures::find_next() {
  const std::vector<TracedFailure>& trace = settings_.reliability.trace;
  next_ = streams_.size();
  next_at_ = traced_ < trace.size() ? to_nanoseconds(trace[traced_].at) : kNever;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].at >= next_at_) continue;
    next_ = i;
    next_at_ = streams_[i].at;
  }
}

double Failures::per_second() const {
  double rate = 0;
  for (const Stream& stream : streams_) rate += 1e9 / stream.mean;
  return rate;
}

Failures::Losses Failures::losses() const {
  Losses losses;
  for (const Stream& stream : streams_) {
    const bool found = stream.trouble == Trouble::silent || stream.trouble == Trouble::straggler;
    const int nodes = found || stream.nodes < 0 ? 1 : stream.nodes;
    const double share = stream.nodes < 0 ? settings_.reliability.hardware_share : 1;
    const double rate = share * 1e9 / stream.mean;
    losses.nodes += rate * nodes;
    losses.squared_nodes += rate * nodes * nodes;
    losses.most_at_once = std::max(losses.most_at_once, nodes);
  }
  return losses;
}

Disturbance Failures::take_traced() {
  const TracedFailure& traced = settings_.reliability.trace[traced_++];
  return {Trouble::failure, next_at_, std::min(settings_.nodes, traced.nodes)};
}

Disturbance Failures::take() {
  Disturbance taken;
  if (next_ == streams_.size()) {
    taken = take_traced();
  } else {
    Stream& stream = streams_[next_];
    taken = {stream.trouble, stream.at, stream.nodes};
    if (stream.nodes < 0) {
      taken.nodes = stream.random.uniform() <= settings_.reliability.hardware_share ? 1 : 0;
    }
    draw(stream);
  }
  find_next();
  return taken;
}

}  // namespace trainyard
