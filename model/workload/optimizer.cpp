#include "model/workload/optimizer.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

// Adam: Kingma & Ba 2015; AdamW (Loshchilov & Hutter 2019) moves the decay and keeps the same
// state. SGD keeps one moment, the momentum.
//
// 8-bit Adam (Dettmers et al. 2022, arXiv 2110.02861): moments of one byte with an fp32 maximum a
// block of 2048.
// Adafactor (Shazeer & Stern 2018, arXiv 1804.04235, Algorithm 4, without momentum): sums over rows
// and columns, 4·(1/rows + 1/columns) bytes a parameter, which are left out; the gradient is read
// for the sums, for the root mean square of the update (clipping) and for the update, the weight
// for its own root mean square (relative step) and for the update.
// Lion (Chen et al. 2023, arXiv 2302.06675): one momentum.
// Muon (Jordan et al. 2024; Liu et al. 2025, arXiv 2502.16982): one momentum, five iterations;
// AdamW updates embedding, head and norms.
constexpr double kBlockOf8Bit = 2048;
constexpr std::array<Optimizer, 7> kOptimizers = {{
    {.name = "adam", .moment_bytes = 8},
    {.name = "adamw", .moment_bytes = 8},
    {.name = "sgd", .moment_bytes = 4},
    {.name = "adam-8bit", .moment_bytes = 2 * (1 + 4 / kBlockOf8Bit)},
    {.name = "adafactor", .moment_bytes = 0, .gradient_reads = 3, .weight_reads = 2},
    {.name = "lion", .moment_bytes = 4},
    {.name = "muon", .moment_bytes = 4, .more_at_ends = 4, .orthogonalisation_steps = 5},
}};

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer* find_optimizer(std::string_view name) {
  const auto* found = std::ranges::find(kOptimizers, name, &Optimizer::name);
  return found == kOptimizers.end() ? nullptr : found;
}

double moment_bytes(const Optimizer& optimizer, UpdatedPart part) {
  return optimizer.moment_bytes +
         (part == UpdatedPart::end_of_network ? optimizer.more_at_ends : 0);
}

// Without a master copy the update reads and writes the weight itself.
double update_bytes(const Optimizer& optimizer, UpdatedPart part, const PrecisionRecipe& precision,
                    double gradient_bytes) {
  const double master = precision.master_weight_bytes;
  const double updated = master > 0 ? master : precision.weight_bytes;
  return optimizer.gradient_reads * gradient_bytes + 2 * moment_bytes(optimizer, part) +
         optimizer.weight_reads * updated + master + precision.weight_bytes;
}

}  // namespace trainyard
