#include "model/calibration/fit_stack.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "model/calibration/stack_parameters.h"
#include "model/cost/estimate.h"

namespace trainyard {
namespace {

using Point = Eigen::VectorXd;  // deviations of the parameters from their priors, in spreads

constexpr double kNoise = 0.03;       // of ln(predicted / measured) where the model is right
constexpr double kDetermined = 1;     // least curvature of the runs' loss; that of the prior is 1
constexpr int kMostIterations = 40;   // of Levenberg-Marquardt
constexpr double kDerivative = 0.02;  // step of the numeric derivative, in spreads
constexpr double kFirstStep = 0.5;    // of the compass search, in spreads
constexpr double kLastStep = 0.5e-3;

double value_at(const StackParameter& parameter, double deviation) {
  const double value = parameter.share ? parameter.prior + deviation * parameter.spread
                                       : parameter.prior * std::exp(deviation * parameter.spread);
  return std::clamp(value, parameter.lowest, parameter.highest);
}

double deviation_of(const StackParameter& parameter, double value) {
  return parameter.share ? (value - parameter.prior) / parameter.spread
                         : std::log(value / parameter.prior) / parameter.spread;
}

// The problem: runs whose stacks are overwritten with the parameters of a point.
class StackProblem {
 public:
  explicit StackProblem(std::span<const MeasuredRun> runs) : runs_(runs.begin(), runs.end()) {
    for (const StackParameter& parameter : trainyard::stack_parameters()) {
      const auto has = [&](const MeasuredRun& run) {
        return parameter.applies(run.job.job.training.stack);
      };
      if (std::ranges::any_of(runs_, has)) parameters_.push_back(&parameter);
    }
    std::map<std::string_view, int> rows;
    for (const MeasuredRun& run : runs_) ++rows[run.source];
    for (const MeasuredRun& run : runs_) weights_.push_back(1 / std::sqrt(rows[run.source]));
  }

  const std::vector<const StackParameter*>& parameters() const { return parameters_; }
  Eigen::Index size() const { return static_cast<Eigen::Index>(parameters_.size()); }

  Point clamped(Point point) const {
    for (Eigen::Index i = 0; i < size(); ++i) {
      const StackParameter& parameter = *parameters_[static_cast<std::size_t>(i)];
      point[i] = std::clamp(point[i], deviation_of(parameter, parameter.lowest),
                            deviation_of(parameter, parameter.highest));
    }
    return point;
  }

  // ln(predicted / measured) of every run, in units of the noise.
  Eigen::VectorXd residuals(const Point& point) {
    Eigen::VectorXd out(static_cast<Eigen::Index>(runs_.size()));
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      Stack& stack = runs_[i].job.job.training.stack;
      for (Eigen::Index j = 0; j < size(); ++j) {
        const StackParameter& parameter = *parameters_[static_cast<std::size_t>(j)];
        if (parameter.applies(stack)) parameter.set(stack, value_at(parameter, point[j]));
      }
      estimate(runs_[i].job, runs_[i].plan, scratch_);
      out[static_cast<Eigen::Index>(i)] =
          std::log(scratch_.step_time / runs_[i].step_time) / kNoise;
    }
    return out;
  }

  // Soft-l1 of the residuals, and the priors.
  double loss(const Point& point, const Eigen::VectorXd& residuals) const {
    double sum = point.squaredNorm();
    for (Eigen::Index i = 0; i < residuals.size(); ++i) {
      sum += weight(i) * 2 * (std::sqrt(1 + residuals[i] * residuals[i]) - 1);
    }
    return sum;
  }
  double loss(const Point& point) { return loss(point, residuals(point)); }

  double weight(Eigen::Index run) const { return weights_[static_cast<std::size_t>(run)]; }

 private:
  std::vector<MeasuredRun> runs_;
  std::vector<const StackParameter*> parameters_;
  std::vector<double> weights_;
  Estimate scratch_;
};

// Gauss-Newton's approximation of the loss at a point: gradient and curvature of the runs' part.
struct Quadratic {
  Eigen::VectorXd gradient;
  Eigen::MatrixXd curvature;
};

Quadratic quadratic_at(StackProblem& problem, const Point& point,
                       const Eigen::VectorXd& residuals) {
  Eigen::MatrixXd jacobian(residuals.size(), problem.size());
  for (Eigen::Index j = 0; j < problem.size(); ++j) {
    Point ahead = point;
    Point behind = point;
    ahead[j] += kDerivative;
    behind[j] -= kDerivative;
    jacobian.col(j) = (problem.residuals(ahead) - problem.residuals(behind)) / (2 * kDerivative);
  }
  Eigen::VectorXd weights(residuals.size());
  for (Eigen::Index i = 0; i < residuals.size(); ++i) {
    weights[i] = problem.weight(i) / std::sqrt(1 + residuals[i] * residuals[i]);
  }
  return {jacobian.transpose() * weights.cwiseProduct(residuals),
          jacobian.transpose() * weights.asDiagonal() * jacobian};
}

Point levenberg_marquardt(StackProblem& problem, Point point) {
  double damping = 1e-2;
  Eigen::VectorXd residuals = problem.residuals(point);
  double loss = problem.loss(point, residuals);
  for (int iteration = 0; iteration < kMostIterations && damping < 1e6; ++iteration) {
    const Quadratic model = quadratic_at(problem, point, residuals);
    Eigen::MatrixXd system = model.curvature;
    system.diagonal().array() += 1;
    system.diagonal() *= 1 + damping;
    const Point next = problem.clamped(point - system.ldlt().solve(model.gradient + point));
    const Eigen::VectorXd next_residuals = problem.residuals(next);
    const double next_loss = problem.loss(next, next_residuals);
    if (next_loss >= loss) {
      damping *= 8;
      continue;
    }
    const bool converged = loss - next_loss < 1e-9 * loss;
    point = next;
    residuals = next_residuals;
    loss = next_loss;
    damping = std::max(damping / 4, 1e-6);
    if (converged) break;
  }
  return point;
}

// Tries a step of each parameter in turn, up and down; if none helps, halves the step.
Point compass_search(StackProblem& problem, Point point) {
  double loss = problem.loss(point);
  for (double step = kFirstStep; step > kLastStep;) {
    bool improved = false;
    for (Eigen::Index j = 0; j < problem.size(); ++j) {
      for (const double way : {step, -step}) {
        Point next = point;
        next[j] += way;
        next = problem.clamped(next);
        const double next_loss = problem.loss(next);
        if (next_loss >= loss * (1 - 1e-9)) continue;
        point = next;
        loss = next_loss;
        improved = true;
        break;
      }
    }
    if (!improved) step /= 2;
  }
  return point;
}

}  // namespace

StackFit fit_stack(std::span<const MeasuredRun> runs) {
  assert(!runs.empty() && "nothing to fit to");
  StackProblem problem(runs);
  const Point start = Point::Zero(problem.size());
  const Point best = compass_search(problem, levenberg_marquardt(problem, start));
  const Eigen::VectorXd residuals = problem.residuals(best);
  const Quadratic model = quadratic_at(problem, best, residuals);
  StackFit fit;
  for (Eigen::Index j = 0; j < problem.size(); ++j) {
    const StackParameter& parameter = *problem.parameters()[static_cast<std::size_t>(j)];
    fit.parameters.push_back(
        {parameter.name, value_at(parameter, best[j]), model.curvature(j, j) > kDetermined});
  }
  for (const double residual : residuals) {
    fit.errors.push_back(std::exp(residual * kNoise) - 1);
  }
  return fit;
}

Stack with_parameters(Stack stack, const StackFit& fit) {
  for (const StackParameter& parameter : stack_parameters()) {
    if (!parameter.applies(stack)) continue;
    const auto fitted = std::ranges::find(fit.parameters, parameter.name, &FittedParameter::name);
    parameter.set(stack, fitted == fit.parameters.end() ? parameter.prior : fitted->value);
  }
  return stack;
}

namespace {

// Whether two stacks are of one generation: all those without a flash kernel are Megatron-LM's of
// 2021 and 2022; those with one are related if both fuse gradient accumulation or neither does.
bool related(const Stack& a, const Stack& b) {
  return a.flash_attention == b.flash_attention &&
         (!a.flash_attention || a.gradient_accumulation_fused == b.gradient_accumulation_fused);
}

// The runs that are left to fit a stack on when those of a source are left out.
struct Evidence {
  std::vector<MeasuredRun> runs;
  bool pooled = false;
};

Evidence evidence_without(std::span<const MeasuredRun> runs, const std::string& source,
                          const Stack& stack) {
  Evidence own, relatives{.pooled = true};
  for (const MeasuredRun& run : runs) {
    if (run.source == source) continue;
    if (run.stack().name == stack.name) own.runs.push_back(run);
    if (related(run.stack(), stack)) relatives.runs.push_back(run);
  }
  return own.runs.empty() ? relatives : own;
}

}  // namespace

std::vector<HeldOutPrediction> leave_one_source_out(std::span<const MeasuredRun> runs,
                                                    const std::function<void(double)>& progress) {
  struct Held {
    StackFit fit;
    bool pooled;
  };
  std::map<std::pair<std::string, std::string>, Held> fits;  // by source and stack
  std::vector<HeldOutPrediction> out;
  for (const MeasuredRun& run : runs) {
    const std::pair key(run.source, run.stack().name);
    auto held = fits.find(key);
    if (held == fits.end()) {
      const Evidence evidence = evidence_without(runs, run.source, run.stack());
      StackFit fit = evidence.runs.empty() ? StackFit{} : fit_stack(evidence.runs);
      held = fits.emplace(key, Held{std::move(fit), evidence.pooled}).first;
    }
    PreparedJob job = run.job;
    job.job.training.stack = with_parameters(run.stack(), held->second.fit);
    out.push_back({run.name, run.source, estimate(job, run.plan).step_time, run.step_time,
                   held->second.pooled});
    if (progress) progress(static_cast<double>(out.size()) / static_cast<double>(runs.size()));
  }
  return out;
}

}  // namespace trainyard
