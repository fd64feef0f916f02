#include "executor/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "executor/cpu/cpu_backend.h"
#include "executor/transport/pieces.h"
#include "model/program/lower.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// ---- Bytes ------------------------------------------------------------------------------

class Packer {
 public:
  template <typename T>
  void add(const std::vector<T>& numbers) {
    add_size(numbers.size());
    append(numbers.data(), numbers.size() * sizeof(T));
  }
  void add(const WholeTensors& tensors) {
    add_size(tensors.size());
    for (const auto& [name, tensor] : tensors) {
      add(std::vector<char>(name.first.begin(), name.first.end()));
      add(std::vector<std::int64_t>{name.second, tensor.columns});
      add(tensor.numbers);
    }
  }
  std::string bytes() && { return std::move(bytes_); }

 private:
  void add_size(std::size_t size) { append(&size, sizeof(size)); }
  void append(const void* from, std::size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(from), size);
  }
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  std::vector<T> numbers() {
    std::vector<T> out(size());
    take(out.data(), out.size() * sizeof(T));
    return out;
  }
  WholeTensors tensors() {
    WholeTensors out;
    for (std::size_t left = size(); left > 0; --left) {
      const std::vector<char> name = numbers<char>();
      const std::vector<std::int64_t> shape = numbers<std::int64_t>();
      out[{std::string(name.begin(), name.end()), static_cast<int>(shape[0])}] = {shape[1],
                                                                                  numbers<float>()};
    }
    return out;
  }

 private:
  std::size_t size() {
    std::size_t size = 0;
    take(&size, sizeof(size));
    return size;
  }
  void take(void* to, std::size_t size) {
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  std::string_view bytes_;
};

// ---- The unsharded run ---------------------------------------------------------------------

WholeTensors whole_tensors(const Holdings& holdings, const Program& program,
                           const std::vector<HeldTensor>& held) {
  WholeTensors out;
  for (const HeldTensor& tensor : held) {
    const ProgramBuffer& buffer = program.buffer(tensor.buffer);
    out[holdings.name(buffer, tensor.layer)] = {buffer.columns, tensor.numbers};
  }
  return out;
}

double norm_of(const std::vector<float>& numbers) {
  double sum = 0;
  for (const float number : numbers)
    sum += static_cast<double>(number) * static_cast<double>(number);
  return std::sqrt(sum);
}

// ---- Differences ------------------------------------------------------------------------------

// The difference of a NaN from anything.
constexpr float kNoNumber = std::numeric_limits<float>::infinity();

// For each number of a tensor, its largest difference over the ranks that hold it; −1: none does.
std::vector<float> differences(const TensorComparison& with, const TensorName& name,
                               const WholeTensor& expected, const std::vector<HeldTensor>& held) {
  std::vector<float> apart(expected.numbers.size(), -1);
  for (const HeldTensor& tensor : held) {
    const ProgramBuffer& buffer = with.program.buffer(tensor.buffer);
    if (with.holdings.name(buffer, tensor.layer) != name) continue;
    for (std::int64_t k = tensor.known_from; k < tensor.known_to; ++k) {
      if ((k + 1) % kBetweenBeats == 0) with.watch.goes_on();
      const auto place = with.holdings.element(buffer, k);
      if (!place) continue;
      const auto at = static_cast<std::size_t>(place->row * expected.columns + place->column);
      const float off =
          std::abs(tensor.numbers[static_cast<std::size_t>(k)] - expected.numbers[at]);
      apart[at] = std::max(apart[at], std::isnan(off) ? kNoNumber : off);
    }
  }
  return apart;
}

// How far a weight may be off beside the tolerance, where Adam turns noise into whole steps.
double slack(const TensorComparison& with, const TensorName& weight, std::size_t number,
             double global) {
  if (moments_of(with.setting) != 2) return 0;
  const auto gradient = with.expected.gradients.find({weight.first + " gradient", weight.second});
  if (gradient == with.expected.gradients.end()) return 0;
  if (std::abs(static_cast<double>(gradient->second.numbers[number])) >= 1e-6 * global) return 0;
  return 2 * with.setting.descent.learning_rate * with.steps;
}

// The unsharded run has padding rows of the vocabulary, which no rank's part is compared with.
bool is_padding(const Setting& setting, const TensorName& name, const WholeTensor& tensor,
                std::size_t number) {
  return is_of_vocabulary(name.first) &&
         static_cast<std::int64_t>(number) / tensor.columns >= setting.model.vocabulary;
}

Difference difference_of(const TensorComparison& with, Compared what, const TensorName& name,
                         const WholeTensor& expected, const std::vector<float>& apart) {
  const double global = with.expected.first_norm();
  Difference out;
  double sum = 0;
  for (std::size_t k = 0; k < apart.size(); ++k) {
    if ((k + 1) % kBetweenBeats == 0) with.watch.goes_on();
    if (apart[k] < 0) {
      out.unknown += is_padding(with.setting, name, expected, k) ? 0 : 1;
      continue;
    }
    const double beyond =
        std::max(0.0, static_cast<double>(apart[k]) - slack(with, name, k, global));
    sum += beyond * beyond;
  }
  const Tolerance tolerance = tolerance_of(with.setting);
  out.what = name.second < 0 ? name.first : fmt::format("{} of layer {}", name.first, name.second);
  out.error = std::sqrt(sum);
  // Where the global norm decides, a weight may be off by what such an error in its gradients moves
  // it.
  const double moved = what == Compared::gradients
                           ? 1
                           : with.setting.descent.learning_rate * static_cast<double>(with.steps);
  const double share = what == Compared::gradients ? tolerance.tensor : tolerance.weight;
  out.allowed = std::max(share * norm_of(expected.numbers), tolerance.global * global * moved);
  return out;
}

// Whether scores of experts come of other sums than on one rank, so that near ties may be decided
// otherwise. Expert-parallel ranks, and larger micro-batches, change how many rows an expert
// multiplies at once, and a product's order of sums depends on that.
bool may_route_otherwise(const Setting& setting) {
  if (setting.model.experts <= setting.model.experts_per_token) return false;
  const Plan& plan = setting.plan;
  return plan.tensor_parallel * plan.context_parallel > 1 ||
         plan.expert_parallel * plan.expert_tensor_parallel > 1 ||
         plan.micro_batch != unsharded(setting).plan.micro_batch;
}

}  // namespace

Setting unsharded(const Setting& setting) {
  Setting whole = setting;
  whole.blocks = setting.plan;
  Plan& plan = whole.plan;
  plan = Plan{};
  plan.schedule = find_schedule("1f1b");
  plan.capacity_factor = setting.plan.capacity_factor;
  // A rank's capacity counts the tokens of all sequences of a micro-batch.
  if (plan.capacity_factor > 0) plan.micro_batch = setting.plan.micro_batch;
  plan.microbatches = static_cast<int>(setting.training.global_batch / plan.micro_batch);
  plan.optimizer_barrier = setting.plan.optimizer_barrier;
  return whole;
}

Expected<UnshardedRun> run_unsharded(const Setting& setting, const StepPlan& steps, Watch& watch) {
  const Setting whole = unsharded(setting);
  const auto program = lower(whole.model, whole.training, whole.plan);
  if (!program) return tl::unexpected(program.error());
  const RankLayout layout(whole.plan, whole.model.kv_heads);
  const auto transport = make_single_rank_transport();
  const auto backend = make_cpu_backend(whole, *program, layout, *transport);
  RankExecutor executor(whole, *program, layout, 0, *backend, watch);
  UnshardedRun run;
  for (int number = 0; number < steps.steps; ++number) {
    executor.keep_gradients(run.gradients.empty());
    const auto step = executor.step(number, steps.same_batch ? 0 : number, watch);
    if (!step) return tl::unexpected(step.error());
    run.losses.push_back(step->loss);
    run.gradient_norms.push_back(step->skipped ? 0 : std::sqrt(step->squared_norm));
    if (!step->skipped && run.gradients.empty()) {
      run.first_taken = static_cast<std::size_t>(number);
      run.gradients = whole_tensors(executor.holdings(), *program, executor.gradients());
    }
  }
  run.weights = whole_tensors(executor.holdings(), *program, executor.weights(watch));
  return run;
}

std::string packed(const UnshardedRun& run) {
  Packer packer;
  packer.add(run.losses);
  packer.add(run.gradient_norms);
  packer.add(std::vector<std::size_t>{run.first_taken});
  packer.add(run.gradients);
  packer.add(run.weights);
  return std::move(packer).bytes();
}

UnshardedRun unpacked(std::string_view bytes) {
  Unpacker unpacker(bytes);
  UnshardedRun run;
  run.losses = unpacker.numbers<double>();
  run.gradient_norms = unpacker.numbers<double>();
  run.first_taken = unpacker.numbers<std::size_t>().front();
  run.gradients = unpacker.tensors();
  run.weights = unpacker.tensors();
  return run;
}

Tolerance tolerance_of(const Setting& setting) {
  if (setting.training.precision.weight_bytes == 4) return {};
  if (may_route_otherwise(setting)) {
    return {.tensor = 0.4, .weight = 5e-2, .global = 5e-2, .loss = 0.1, .norm = 0.1};
  }
  if (setting.training.precision.casts_gemm_inputs()) {
    return {.tensor = 0.4, .weight = 5e-2, .global = 5e-2, .loss = 2e-2, .norm = 5e-2};
  }
  constexpr Tolerance kBf16{
      .tensor = 5e-2, .weight = 5e-2, .global = 1e-2, .loss = 1e-2, .norm = 1e-2};
  if (setting.training.precision.head_gemm == Dtype::bf16) return kBf16;
  // fp16 has three bits of mantissa more; that does not help weights, for Adam makes whole steps of
  // noise.
  return {.tensor = kBf16.tensor / 8,
          .weight = kBf16.weight,
          .global = kBf16.global / 8,
          .loss = kBf16.loss / 8,
          .norm = kBf16.norm / 8};
}

Expected<std::vector<Difference>> compare(const TensorComparison& with, Compared what,
                                          const std::vector<HeldTensor>& held) {
  const WholeTensors& all =
      what == Compared::gradients ? with.expected.gradients : with.expected.weights;
  std::vector<Difference> list;
  list.reserve(all.size());
  for (const auto& [name, expected] : all) {
    std::vector<float> apart = differences(with, name, expected, held);
    auto done = in_pieces(
        static_cast<std::int64_t>(apart.size()), kBetweenBeats, [&](std::int64_t first, int count) {
          if (first > 0) with.watch.goes_on();
          return with.transport.all_reduce(Group::all, apart.data() + first, count, Reduction::max);
        });
    with.watch.goes_on();
    if (!done) return tl::unexpected(done.error());
    list.push_back(difference_of(with, what, name, expected, apart));
  }
  return list;
}

Difference scalar_difference(const std::string& what, double found, double expected,
                             double tolerance) {
  Difference out{.what = what, .error = std::abs(found - expected)};
  out.allowed = tolerance * std::abs(expected);
  if (std::isnan(found)) out.unknown = 1;
  return out;
}

}  // namespace trainyard
