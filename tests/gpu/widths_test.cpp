// Kernels that process eight elements at a time, at widths and places that are no multiples of
// eight: every type, rows from one element to more than a block keeps, views that begin anywhere.
// Expected are sums in double of what the device stores, by the definition of each operation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gpu/matrices.h"

namespace trainyard {
namespace {

// ---- Norms --------------------------------------------------------------------------------------

struct ExpectedNorm {
  Numbers y, dx, dscale, dshift;
};

// y = (x − mean) / σ · scale + shift and its gradients, row by row.
ExpectedNorm expected_norm(std::int64_t columns, const Numbers& x, const Numbers& dy,
                           const Numbers& scale, const Numbers& shift, bool centred) {
  const auto width = static_cast<double>(columns);
  const auto rows = static_cast<std::int64_t>(x.size()) / columns;
  ExpectedNorm e{Numbers(x.size()), Numbers(x.size()), Numbers(scale.size()),
                 Numbers(scale.size())};
  for (std::int64_t row = 0; row < rows; ++row) {
    double mean = 0, squares = 0, along = 0, all = 0;
    for (std::int64_t c = 0; c < columns; ++c) mean += centred ? x[at(columns, row, c)] / width : 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      squares += std::pow(x[at(columns, row, c)] - mean, 2) / width;
    }
    const double inverse = 1 / std::sqrt(squares + 1e-5);
    const auto normed = [&](std::int64_t c) { return (x[at(columns, row, c)] - mean) * inverse; };
    for (std::int64_t c = 0; c < columns; ++c) {
      const double d = dy[at(columns, row, c)];
      e.y[at(columns, row, c)] = normed(c) * scale[index(c)] + shift[index(c)];
      e.dscale[index(c)] += d * normed(c);
      e.dshift[index(c)] += d;
      along += d * scale[index(c)] * normed(c) / width;
      all += centred ? d * scale[index(c)] / width : 0;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      e.dx[at(columns, row, c)] =
          (dy[at(columns, row, c)] * scale[index(c)] - all - along * normed(c)) * inverse;
    }
  }
  return e;
}

void expect_norms(std::int64_t rows, std::int64_t columns, ElementType type, bool centred) {
  const std::string what =
      fmt::format("{} × {}, type {}, centred {}", rows, columns, static_cast<int>(type), centred);
  const TestDevice device;
  const Queue& queue = device.queue();
  const DeviceMatrix x(device, rows, columns, type, 1), dy(device, rows, columns, type, 2);
  const DeviceMatrix scale(device, columns, 1, type, 3), shift(device, columns, 1, type, 4);
  const DeviceMatrix y(device, rows, columns, type), dx(device, rows, columns, type);
  const DeviceMatrix dscale(device, columns, 1, ElementType::f32, 5);
  const DeviceMatrix dshift(device, columns, 1, ElementType::f32, 6);
  Numbers none(index(columns)), dscale_before = dscale.get(), dshift_before = dshift.get();
  ExpectedNorm e =
      expected_norm(columns, x.get(), dy.get(), scale.get(), centred ? shift.get() : none, centred);
  norm(queue, *y, *x, *scale, centred ? &*shift : nullptr, centred);
  norm_gradient(queue, {.din = *dx,
                        .in = *x,
                        .dout = *dy,
                        .scale = *scale,
                        .scale_gradient = *dscale,
                        .shift_gradient = centred ? &*dshift : nullptr,
                        .centred = centred});
  ASSERT_TRUE(device.status().ok()) << device.status().message();
  for (std::size_t c = 0; c < none.size(); ++c) {
    e.dscale[c] += dscale_before[c];
    e.dshift[c] = (centred ? e.dshift[c] : 0) + dshift_before[c];
  }
  // A single centred column contains only rounding.
  if (columns > 1 || !centred) expect_near(y.get(), e.y, tolerance_of(type), "y of " + what);
  if (columns > 1) expect_near(dx.get(), e.dx, tolerance_of(type) + 2e-5, "dx of " + what);
  expect_near(dscale.get(), e.dscale, 2e-5, "scale's gradient of " + what);
  expect_near(dshift.get(), e.dshift, 2e-5, "shift's gradient of " + what);
}

TEST(Widths, OfRowsThatAreNormedMayBeAny) {
  for (const std::int64_t columns : kWidths) {
    for (const ElementType type : kTypes) {
      for (const bool centred : {false, true}) {
        for (const std::int64_t rows : {1, 3, columns > 300 ? 9 : 67}) {
          expect_norms(rows, columns, type, centred);
        }
      }
    }
  }
}

// Several rows per team, for teams that share a block, fill a block, or are parts of a warp.
TEST(Widths, OfManyRowsThatAreNormedMayBeAny) {
  for (const ElementType type : kTypes) {
    for (const bool centred : {false, true}) {
      for (const std::int64_t columns : {40, 128, 1048, 2056}) {
        expect_norms(300, columns, type, centred);
      }
    }
  }
#ifdef TRAINYARD_EMULATED
  constexpr std::int64_t kMany = 1;  // its blocks are a quarter as large
#else
  constexpr std::int64_t kMany = 4;
#endif
  expect_norms(600 * kMany, 1048, ElementType::bf16, false);
  expect_norms(400 * kMany, 2056, ElementType::f32, false);
  expect_norms(400 * kMany, 2056, ElementType::f16, true);
  expect_norms(300, 12288, ElementType::bf16, false);
  expect_norms(10'000 * kMany, 128, ElementType::bf16, false);
}

// ---- Rotary -------------------------------------------------------------------------------------

void expect_rotation(const RotaryColumns& of, ElementType type) {
  constexpr std::int64_t kRows = 11, kPart = 7;
  const std::int64_t columns = of.first + of.stride * of.heads;
  const TestDevice device;
  const DeviceMatrix x(device, kRows, columns, type);
  const Numbers before = x.get();
  Numbers e = before;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t head = 0; head < of.heads; ++head) {
      for (std::int64_t i = 0; i < of.width / 2; ++i) {
        const double angle =
            static_cast<double>(row % kPart) *
            std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(of.width));
        const std::size_t a = at(columns, row, of.first + head * of.stride + i);
        const std::size_t b = a + index(of.width / 2);
        e[a] = before[a] * std::cos(angle) + before[b] * std::sin(angle);  // the other way round
        e[b] = before[b] * std::cos(angle) - before[a] * std::sin(angle);
      }
    }
  }
  rotate(device.queue(), *x, of, {.part = kPart}, -1);
  expect_near(
      x.get(), e, tolerance_of(type),
      fmt::format("{} heads of {}, {} apart, from {}", of.heads, of.width, of.stride, of.first));
}

TEST(Widths, OfHeadsThatAreTurnedMayBeAny) {
  for (const ElementType type : kTypes) {
    for (const std::int64_t width : {2, 6, 16, 24, 128}) {
      for (const std::int64_t heads : {1, 3, 4, 9}) {
        expect_rotation({0, width, width, heads}, type);
        expect_rotation({8, width + 8, width, heads}, type);
        expect_rotation({3, width + 5, width, heads}, type);
      }
    }
  }
}

// Sines of angles in float would be off by the rounding of the angle.
TEST(Widths, OfHeadsAreTurnedRightFarFromTheStart) {
  const TestDevice device;
  const DeviceMatrix x(device, 1, 16, ElementType::f32);
  const Numbers before = x.get();
  Numbers e = before;
  constexpr std::int64_t kPart = 1 << 20, kPosition = 1'000'003;
  for (std::size_t i = 0; i < 8; ++i) {
    const double angle = kPosition * std::pow(1e4, -2.0 * static_cast<double>(i) / 16);
    e[i] = before[i] * std::cos(angle) - before[i + 8] * std::sin(angle);
    e[i + 8] = before[i + 8] * std::cos(angle) + before[i] * std::sin(angle);
  }
  rotate(device.queue(), *x, {0, 16, 16, 1}, {.part = kPart, .offset = kPosition}, 1);
  expect_near(x.get(), e, 2e-6, "position 1,000,003");
}

// ---- The optimizer ------------------------------------------------------------------------------

UpdateRule rule_with(int moments, bool keeps_weights) {
  UpdateRule rule{.moments = moments, .keeps_weights = keeps_weights};
  rule.decays = moments == 2;
  rule.clips = true;
  rule.scale = 2;
  rule.clip_norm = 1;
  rule.rate = 0.125F;
  rule.momentum = 0.75F;
  rule.first = 0.75F;
  rule.second = 0.875F;
  rule.epsilon = 1e-3F;
  rule.decay = 0.25F;
  rule.first_whole = 1 - 0.75F;
  rule.second_whole = 1 - 0.875F;
  return rule;
}

// One element under AdamW (Loshchilov & Hutter 2019) or SGD with momentum; updates its `state`.
double expected_weight(double weight, double gradient, double* state, const UpdateRule& rule) {
  if (rule.moments == 0) return weight - 0.125 * gradient;
  if (rule.moments == 1) {
    state[0] = 0.75 * state[0] + gradient;
    return weight - 0.125 * state[0];
  }
  state[0] = 0.75 * state[0] + 0.25 * gradient;
  state[1] = 0.875 * state[1] + 0.125 * gradient * gradient;
  const double along = state[0] / 0.25 / (std::sqrt(state[1] / 0.125) + 1e-3);
  return weight - 0.125 * (along + 0.25 * weight);
}

struct UpdatedPart {
  std::int64_t size = 0, weight_from = 0, gradient_from = 0, state_from = 0;
};

void expect_update(const UpdatedPart& part, ElementType weights, ElementType gradients,
                   const UpdateRule& rule) {
  const std::int64_t held = rule.moments + (rule.keeps_weights ? 1 : 0);
  constexpr std::int64_t kRoom = 40;  // on both sides; what is there stays
  const TestDevice device;
  const DeviceMatrix w(device, part.size + kRoom, 1, weights, 1);
  const DeviceMatrix g(device, part.size + kRoom, 1, gradients, 2);
  const DeviceMatrix states(device, part.size + kRoom, std::max<std::int64_t>(held, 1),
                            ElementType::f32, 3);
  DeviceMatrix norm(device, 1, 1, ElementType::f32);
  norm.set({16});  // squared: gradients become an eighth, with the scale
  std::vector<float> positive;
  for (const double x : states.get()) positive.push_back(static_cast<float>(std::abs(x)));
  upload(device.queue(), *states, positive);
  Numbers e = w.get(), e_states = states.get();
  const Numbers gradient = g.get();
  for (std::int64_t i = 0; i < part.size; ++i) {
    double* state = &e_states[index((part.state_from + i) * held)];
    const bool full = rule.keeps_weights && !rule.first_step;
    double& weight = e[index(part.weight_from + i)];
    weight = expected_weight(full ? state[held - 1] : weight,
                             gradient[index(part.gradient_from + i)] / 8, state, rule);
    if (rule.keeps_weights) state[held - 1] = weight;
  }
  const View mine = held > 0 ? states->rows_from(part.state_from, part.size) : View{};
  update(device.queue(), w->from(part.weight_from, part.size),
         g->from(part.gradient_from, part.size), mine, &*norm, rule);
  const std::string what = fmt::format(
      "{} elements, weights from {}, gradients from {}, {} states "
      "from {}, types {} and {}",
      part.size, part.weight_from, part.gradient_from, held, part.state_from,
      static_cast<int>(weights), static_cast<int>(gradients));
  expect_near(w.get(), e, tolerance_of(weights), what);
  expect_near(states.get(), e_states, 2e-6, "states of " + what);
}

TEST(Widths, OfWeightsThatAreUpdatedMayBeginAnywhere) {
  for (const ElementType weights : kTypes) {
    for (const ElementType gradients : {ElementType::f32, weights}) {
      for (const std::int64_t size : {1, 7, 8, 61, 1000, 4111}) {
        for (const int moments : {0, 1, 2}) {
          for (const bool keeps : {false, true}) {
            if (moments == 0 && keeps) continue;
            UpdateRule rule = rule_with(moments, keeps);
            expect_update({size, 0, 0, 0}, weights, gradients, rule);
            expect_update({size, 8, 16, 4}, weights, gradients, rule);
            expect_update({size, 5, 5, 3}, weights, gradients, rule);
            expect_update({size, 3, 8, 1}, weights, gradients, rule);
            rule.first_step = true;
            expect_update({size, 5, 5, 7}, weights, gradients, rule);
          }
        }
      }
    }
  }
}

// Gradients that are not finite change nothing.
TEST(Widths, OfWeightsWhoseStepIsLeftOutStay) {
  const TestDevice device;
  constexpr std::int64_t kSize = 61;
  UpdateRule rule = rule_with(2, true);
  rule.skips = true;
  for (const std::int64_t first : {0, 5}) {
    const DeviceMatrix w(device, kSize, 1, ElementType::bf16, 1),
        g(device, kSize, 1, ElementType::f32);
    const DeviceMatrix states(device, kSize, 3, ElementType::f32, 3);
    DeviceMatrix norm(device, 1, 1, ElementType::f32);
    norm.set({INFINITY});
    const Numbers weights = w.get(), before = states.get();
    const std::int64_t size = kSize - first;
    update(device.queue(), w->from(first, size), g->from(first, size),
           states->rows_from(first, size), &*norm, rule);
    expect_near(w.get(), weights, 0, "weights");
    expect_near(states.get(), before, 0, "states");
  }
}

TEST(Widths, OfSquaresMayBeginAnywhere) {
  const TestDevice device;
  for (const ElementType type : kTypes) {
    const DeviceMatrix all(device, 9001, 1, type);
    const Numbers numbers = all.get();
    for (const std::int64_t first : {0, 1, 8, 13}) {
      for (const std::int64_t size : {1, 6, 8, 100, 8900}) {
        DeviceMatrix sum(device, 1, 1, ElementType::f32);
        sum.set({1});
        double e = 1;
        for (std::int64_t i = first; i < first + size; ++i) {
          e += std::pow(numbers[index(i)] / 4, 2) / 3;
        }
        add_squares(device.queue(), *sum, all->from(first, size), {3, 4});
        expect_near(sum.get(), {e}, 1e-5, fmt::format("{} from {}", size, first));
      }
    }
  }
}

// ---- Element by element, and by columns ---------------------------------------------------------

TEST(Widths, OfFlatPartsMayBeginAnywhere) {
  const TestDevice device;
  for (const ElementType to : kTypes) {
    for (const ElementType from : kTypes) {
      for (const auto& [first, other] : {std::pair{0, 0}, {3, 3}, {5, 2}, {8, 24}, {1, 9}}) {
        for (const std::int64_t size : {0, 1, 4, 8, 515}) {
          const DeviceMatrix into(device, 600, 1, to, 1), what(device, 600, 1, from, 2);
          Numbers e = into.get();
          const Numbers added = what.get();
          for (std::int64_t i = 0; i < size; ++i) e[index(first + i)] += added[index(other + i)];
          add_to(device.queue(), into->from(first, size), what->from(other, size));
          const std::string name = fmt::format("{} from {} to {}", size, other, first);
          expect_near(into.get(), e, tolerance_of(to), "sum of " + name);
          for (std::int64_t i = 0; i < size; ++i) e[index(first + i)] = added[index(other + i)];
          convert(device.queue(), into->from(first, size), what->from(other, size));
          expect_near(into.get(), e, tolerance_of(to), "copy of " + name);
          for (std::int64_t i = 0; i < size; ++i) e[index(first + i)] = 0.5;
          fill(device.queue(), into->from(first, size), 0.5F);
          expect_near(into.get(), e, tolerance_of(to), "fill of " + name);
        }
      }
    }
  }
}

TEST(Widths, OfColumnsMayBeginAnywhere) {
  const TestDevice device;
  const Queue& queue = device.queue();
  constexpr std::int64_t kRows = 300;
  for (const ElementType type : kTypes) {
    for (const std::int64_t columns : {24, 37, 272}) {
      for (const auto& [first, width] : {std::pair{0, 24}, {8, 8}, {3, 16}, {8, 13}}) {
        const DeviceMatrix all(device, kRows, columns, type, 1), row(device, width, 1, type, 2);
        const DeviceMatrix part(device, kRows, width, type, 3);
        Numbers e = all.get(), e_part = part.get(), before = e_part;
        const Numbers added = row.get();
        for (std::int64_t r = 0; r < kRows; ++r) {
          for (std::int64_t c = 0; c < width; ++c) {
            e[at(columns, r, first + c)] += added[index(c)];
            e_part[at(width, r, c)] = e[at(columns, r, first + c)];
            e[at(columns, r, first + c)] += before[at(width, r, c)];
          }
        }
        const std::string what = fmt::format("{} of {} columns from {}", width, columns, first);
        add_row(queue, *all, first, *row);
        const DeviceMatrix copy(device, kRows, width, type);
        copy_columns(queue, {*copy, 0}, {*all, first}, width);
        expect_near(copy.get(), e_part, tolerance_of(type), "copy of " + what);
        add_columns(queue, {*all, first}, *part);
        expect_near(all.get(), e, 2 * tolerance_of(type), "sum of " + what);
        const DeviceMatrix sums(device, columns, 1, ElementType::f32, 4);
        Numbers e_sums = sums.get();
        const Numbers of = all.get();
        for (std::int64_t r = 0; r < kRows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) e_sums[index(c)] += of[at(columns, r, c)];
        }
        add_column_sums(queue, *sums, *all);
        expect_near(sums.get(), e_sums, 1e-5, "sums over " + what);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
