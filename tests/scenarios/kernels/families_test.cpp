// Kernel families fitted to 60 % of the measured shapes and scored on the others, which the fit did
// not see.
#include "scenarios/kernels/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/cost/kernels/attention.h"
#include "scenarios/kernels/tables.h"
#include "scenarios/machine/device_document.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

struct Split {
  KernelSamples fitted, held_back;
};

Split split(const KernelTable& table, const std::function<bool(std::uint64_t)>& held) {
  const auto keys = table.family->shapes(table.samples);
  return std::visit(
      [&](const auto& rows) {
        auto fitted = rows;
        auto held_back = rows;
        fitted.clear();
        held_back.clear();
        for (std::size_t i = 0; i < rows.size(); ++i) {
          (held(keys[i]) ? held_back : fitted).push_back(rows[i]);
        }
        return Split{fitted, held_back};
      },
      table.samples);
}

// Two in five shapes, by their key.
bool two_in_five(std::uint64_t key) { return (key >> 20) % 5 < 2; }

double mean_error(const std::vector<ScoredKernel>& kernels, std::string_view region) {
  double sum = 0;
  int rows = 0;
  for (const ScoredKernel& kernel : kernels) {
    if (!region.empty() && kernel.region != region) continue;
    sum += std::abs(kernel.predicted / kernel.measured - 1);
    ++rows;
  }
  EXPECT_GT(rows, 20) << region;
  return sum / rows;
}

std::vector<ScoredKernel> held_back_scores(const std::filesystem::path& shared,
                                           const std::string& file, const std::string& device,
                                           const std::function<bool(std::uint64_t)>& held) {
  const auto table = read_kernel_table(shared / "measured" / "kernels" / file);
  auto document = read_device(device, "test");
  EXPECT_TRUE(table && document);
  if (!table || !document) return {};
  const Split rows = split(*table, held);
  EXPECT_TRUE(table->family->fit(document->device, rows.fitted, [](double) {}).has_value());
  return table->family->score(document->device, rows.held_back).value();
}

TEST(KernelFamilies, PredictAttentionOfHeadsThatTheFitDidNotSee) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  for (const auto& [file, device] :
       {std::pair{"a100_sxm", "a100-sxm-80gb"}, std::pair{"h100_sxm", "h100-sxm-80gb"}}) {
    const auto scores =
        held_back_scores(shared, std::string(file) + "_attention_forward.csv", device, two_in_five);
    EXPECT_LT(mean_error(scores, "long"), 0.04) << device;
    EXPECT_LT(mean_error(scores, ""), 0.06) << device;
  }
}

// The catalog's rates without those for heads of 128 with a window (measured at 8,192). They must
// follow from the plain kernel of these heads and from windows of 128 for narrower and wider heads.
TEST(KernelFamilies, PredictAWindowOfHeadsThatHaveThePlainKernelOnly) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto windowed_128 = [](const AttentionRates& entry) {
    return entry.sliding && entry.head_dim == 128;
  };
  for (const auto& [file, name] :
       {std::pair{"h100_sxm", "h100-sxm-80gb"}, std::pair{"h200_sxm", "h200-sxm-141gb"}}) {
    const auto table = read_kernel_table(shared / "measured" / "kernels" /
                                         (std::string(file) + "_attention_forward.csv"));
    auto document = read_device(name, "test");
    ASSERT_TRUE(table && document);
    EXPECT_EQ(std::erase_if(document->device.rates.attention, windowed_128), 1U);
    auto rows = std::get<std::vector<AttentionSample>>(table->samples);
    std::erase_if(rows, [](const AttentionSample& sample) {
      return !sample.shape.sliding || sample.shape.query_head_dim != 128;
    });
    const auto scores = table->family->score(document->device, KernelSamples(rows));
    EXPECT_LT(mean_error(scores.value(), "long"), 0.04) << name;
    EXPECT_LT(mean_error(scores.value(), ""), 0.06) << name;
  }
}

// One more key of the window is one 8,192nd of the keys that most rows see, whatever window the
// rates were measured at (8,192 is one of them).
TEST(KernelFamilies, AttentionTakesNoJumpFromOneWindowToTheNext) {
  for (const char* name : {"h100-sxm-80gb", "b200-sxm-180gb", "l40s-48gb"}) {
    const auto document = read_device(name, "test");
    ASSERT_TRUE(document);
    for (const double head_dim : {64, 96, 128, 160}) {
      const auto time = [&](double window) {
        const AttentionShape shape{1, 32, 8, 16384, window, head_dim, head_dim, true};
        return attention_time(document->device, Dtype::bf16, shape, 1);
      };
      EXPECT_LE(time(8191), time(8192)) << name << " " << head_dim;
      EXPECT_LT(time(8192) / time(8191), 1.001) << name << " " << head_dim;
    }
  }
}

TEST(KernelFamilies, PredictExpertsOfNetworksThatTheFitDidNotSee) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto scores = held_back_scores(shared, "b200_sxm_moe.csv", "b200-sxm-180gb", two_in_five);
  EXPECT_LT(mean_error(scores, ""), 0.14);
}

// A third of the sizes of every curve is held back.
TEST(KernelFamilies, PredictCollectivesOfSizesThatTheFitDidNotSee) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto table = read_kernel_table(shared / "measured" / "kernels" / "h100_sxm_nccl.csv");
  ASSERT_TRUE(table);
  std::vector<std::uint64_t> held;
  const auto& rows = std::get<std::vector<CollectiveSample>>(table->samples);
  const auto keys = table->family->shapes(table->samples);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int octave = static_cast<int>(std::lround(std::log2(rows[i].bytes.value())));
    if (octave % 3 == 1) held.push_back(keys[i]);
  }
  const auto scores = held_back_scores(
      shared, "h100_sxm_nccl.csv", "h100-sxm-80gb",
      [&](std::uint64_t key) { return std::ranges::find(held, key) != held.end(); });
  EXPECT_LT(mean_error(scores, "large"), 0.08);
  EXPECT_LT(mean_error(scores, ""), 0.15);
}

}  // namespace
}  // namespace trainyard
