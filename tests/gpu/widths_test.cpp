// Kernels that take eight elements at a time, at widths and places where eights do not come out:
// every type, rows from one element to more than a block keeps, views that begin anywhere. Expected
// are sums in double of what the device stores, by the definition of each operation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "executor/cuda/compute.h"

namespace trainyard {
namespace {

using Numbers = std::vector<double>;

constexpr ElementType kTypes[] = {ElementType::f32, ElementType::bf16, ElementType::f16};
// Of rows: narrower than a team of threads, than a warp, than a block keeps, and wider.
constexpr std::int64_t kWidths[] = {1,   5,    8,    40,   128,  136,   264,
                                    520, 1048, 2056, 4000, 4104, 12288, 16392};

// Of the norm of a result: a rounding or two of its type, or of sums of floats.
double tolerance_of(ElementType type) {
  if (type == ElementType::f32) return 2e-6;
  return type == ElementType::bf16 ? 4e-3 : 5e-4;
}

class Device {
 public:
  const Queue& queue() const { return queue_; }
  const CudaStatus& status() const { return status_; }

 private:
  CudaStatus status_;
  DeviceMemory memory_{status_, 0, 1 << 20};
  Queue queue_{status_, nullptr, memory_.pool()};
};

// A matrix on the device, filled with numbers between −1 and 1 that its type may round.
class Matrix {
 public:
  Matrix(const Device& device, std::int64_t rows, std::int64_t columns, ElementType type,
         std::uint64_t seed = 1)
      : queue_(device.queue()), memory_(queue_, rows, columns, type) {
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(uniform(seed * 1000003 + i));
    }
    set(numbers);
  }
  void set(const std::vector<float>& numbers) { upload(queue_, *memory_, numbers); }
  Numbers get() const {
    const std::vector<float> numbers = downloaded(queue_, *memory_);
    return {numbers.begin(), numbers.end()};
  }
  const View& operator*() const { return *memory_; }
  const View* operator->() const { return &*memory_; }

 private:
  const Queue& queue_;
  Scratch memory_;
};

void expect_near(const Numbers& found, const Numbers& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    apart += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(apart), tolerance * std::max(std::sqrt(norm), 1e-3)) << what;
}

std::size_t at(std::int64_t columns, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}
std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- Norms
// -------------------------------------------------------------------------------------

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
  const Device device;
  const Queue& queue = device.queue();
  const Matrix x(device, rows, columns, type, 1), dy(device, rows, columns, type, 2);
  const Matrix scale(device, columns, 1, type, 3), shift(device, columns, 1, type, 4);
  const Matrix y(device, rows, columns, type), dx(device, rows, columns, type);
  const Matrix dscale(device, columns, 1, ElementType::f32, 5);
  const Matrix dshift(device, columns, 1, ElementType::f32, 6);
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
  // One column, centred, is nothing but its rounding.
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

// Several rows for each team, and several teams in a block.
TEST(Widths, OfManyRowsThatAreNormedMayBeAny) {
  for (const std::int64_t columns : {40, 128, 1048, 2056, 4104}) {
    for (const ElementType type : kTypes) {
      for (const bool centred : {false, true}) expect_norms(700, columns, type, centred);
    }
  }
}

// ---- Rotary
// ------------------------------------------------------------------------------------

void expect_rotation(const RotaryColumns& of, ElementType type) {
  constexpr std::int64_t kRows = 11, kPart = 7;
  const std::int64_t columns = of.first + of.stride * of.heads;
  const Device device;
  const Matrix x(device, kRows, columns, type);
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

// Sines of floats would be off by the rounding of the angle.
TEST(Widths, OfHeadsAreTurnedRightFarFromTheStart) {
  const Device device;
  const Matrix x(device, 1, 16, ElementType::f32);
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

// ---- The optimizer
// ---------------------------------------------------------------------------------

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

// AdamW (Loshchilov & Hutter 2019) or SGD with momentum, of one element; its states change.
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
  const Device device;
  const Matrix w(device, part.size + kRoom, 1, weights, 1);
  const Matrix g(device, part.size + kRoom, 1, gradients, 2);
  const Matrix states(device, part.size + kRoom, std::max<std::int64_t>(held, 1), ElementType::f32,
                      3);
  Matrix norm(device, 1, 1, ElementType::f32);
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
  const Device device;
  constexpr std::int64_t kSize = 61;
  UpdateRule rule = rule_with(2, true);
  rule.skips = true;
  for (const std::int64_t first : {0, 5}) {
    const Matrix w(device, kSize, 1, ElementType::bf16, 1), g(device, kSize, 1, ElementType::f32);
    const Matrix states(device, kSize, 3, ElementType::f32, 3);
    Matrix norm(device, 1, 1, ElementType::f32);
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
  const Device device;
  for (const ElementType type : kTypes) {
    const Matrix all(device, 9001, 1, type);
    const Numbers numbers = all.get();
    for (const std::int64_t first : {0, 1, 8, 13}) {
      for (const std::int64_t size : {1, 6, 8, 100, 8900}) {
        Matrix sum(device, 1, 1, ElementType::f32);
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
  const Device device;
  for (const ElementType to : kTypes) {
    for (const ElementType from : kTypes) {
      for (const auto& [first, other] : {std::pair{0, 0}, {3, 3}, {5, 2}, {8, 24}, {1, 9}}) {
        for (const std::int64_t size : {0, 1, 4, 8, 515}) {
          const Matrix into(device, 600, 1, to, 1), what(device, 600, 1, from, 2);
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
  const Device device;
  const Queue& queue = device.queue();
  constexpr std::int64_t kRows = 300;
  for (const ElementType type : kTypes) {
    for (const std::int64_t columns : {24, 37, 272}) {
      for (const auto& [first, width] : {std::pair{0, 24}, {8, 8}, {3, 16}, {8, 13}}) {
        const Matrix all(device, kRows, columns, type, 1), row(device, width, 1, type, 2);
        const Matrix part(device, kRows, width, type, 3);
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
        const Matrix copy(device, kRows, width, type);
        copy_columns(queue, {*copy, 0}, {*all, first}, width);
        expect_near(copy.get(), e_part, tolerance_of(type), "copy of " + what);
        add_columns(queue, {*all, first}, *part);
        expect_near(all.get(), e, 2 * tolerance_of(type), "sum of " + what);
        const Matrix sums(device, columns, 1, ElementType::f32, 4);
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

// out = stream + (branch + bias) · mask · kept, by what is_kept() says of each number.
void expect_dropout(const Device& device, std::int64_t rows, std::int64_t columns,
                    const std::vector<ElementType>& types, bool biased) {
  const Dropout dropout{.seed = 7,
                        .site = 2,
                        .layer = 3,
                        .rate = 0.25,
                        .kept = 1 / 0.75F,
                        .places = {.part = 4, .offset = 3, .first_sequence = 5}};
  const Matrix stream(device, rows, columns, types[0], 1), branch(device, rows, columns, types[1]);
  const Matrix bias(device, columns, 1, types[1], 3), out(device, rows, columns, types[0]);
  const Matrix dropped(device, rows, columns, types[1]);
  const Matrix mask(device, rows, columns, ElementType::u8),
      mask_alone(device, rows, columns, ElementType::u8);
  Numbers e = stream.get(), e_mask(e.size()), e_dropped = branch.get();
  const Numbers more = bias.get();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::size_t i = at(columns, r, c);
      e_mask[i] = is_kept(7, {2, 3, 5 + (r + 3) / 4, (r + 3) % 4, c}, 0.25) ? 1 : 0;
      e[i] += (e_dropped[i] + (biased ? more[index(c)] : 0)) * e_mask[i] / 0.75;
      e_dropped[i] *= e_mask[i] / 0.75;
    }
  }
  residual(device.queue(), *out, *stream, *branch, biased ? &*bias : nullptr, &*mask, dropout);
  drop(device.queue(), *dropped, *mask_alone, *branch, dropout);
  const std::string what = fmt::format("{} x {}, biased {}", rows, columns, biased);
  expect_near(mask.get(), e_mask, 0, what);
  expect_near(mask_alone.get(), e_mask, 0, what);
  expect_near(out.get(), e, tolerance_of(types[0]), what);
  expect_near(dropped.get(), e_dropped, tolerance_of(types[1]), what);
}

TEST(Widths, OfRowsThatAreDroppedFromMayBeAny) {
  const Device device;
  for (const std::int64_t columns : kWidths) {
    for (const ElementType type : kTypes) {
      for (const std::int64_t rows : {1, columns > 300 ? 5 : 75}) {
        expect_dropout(device, rows, columns, {type, type}, columns % 16 == 8);
      }
    }
  }
  expect_dropout(device, 9, 264, {ElementType::f32, ElementType::bf16}, true);
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// ---- Both ends
// --------------------------------------------------------------------------------

// Padded to sixteen rows, as products in 8 bits take it.
TEST(Widths, OfTransposedNumbersMayBeAny) {
  const Device device;
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {5, 7}, {40, 136}, {136, 48}, {264, 16}, {200, 272}, {128, 128}}) {
    const std::int64_t padded = (rows + 15) / 16 * 16;
    const Matrix in(device, rows, columns, ElementType::e4m3),
        out(device, columns, padded, ElementType::e4m3, 2);
    View into = *out;
    into.scales = in->scales;
    transpose(device.queue(), into, *in, columns);
    const Numbers numbers = in.get();
    Numbers expected(index(columns * padded));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        expected[at(padded, c, r)] = numbers[at(columns, r, c)];
      }
    }
    const std::vector<float> found = downloaded(device.queue(), into);
    expect_near({found.begin(), found.end()}, expected, 0, fmt::format("{} x {}", rows, columns));
  }
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

TEST(Widths, OfLogitsMayBeAny) {
  const Device device;
  const Queue& queue = device.queue();
  constexpr std::int64_t kRows = 5, kFirst = 100;
  for (const ElementType type : kTypes) {
    for (const auto& [columns, words] :
         {std::pair<std::int64_t, std::int64_t>{5, 5}, {8, 7}, {13, 13}, {101, 96}, {1000, 999}}) {
      const Matrix logits(device, kRows, columns, type);
      const Matrix largest(device, kRows, 1, ElementType::f32),
          sum(device, kRows, 2, ElementType::f32);
      Matrix labels(device, kRows, 1, ElementType::f32);
      labels.set({kFirst, kFirst + 3, 0, 5000, kFirst + 2});
      Numbers e_logits = logits.get(), e_largest(kRows), e_sum = sum.get();
      for (std::int64_t r = 0; r < kRows; ++r) {
        const double* row = &e_logits[at(columns, r, 0)];
        e_largest[index(r)] = *std::max_element(row, row + words);
        double all = 0;
        for (std::int64_t c = 0; c < words; ++c) all += std::exp(row[c] - e_largest[index(r)]);
        const auto label = static_cast<std::int64_t>(labels.get()[index(r)]) - kFirst;
        const bool here = label >= 0 && label < words;
        e_sum[at(2, r, 0)] = all;
        e_sum[at(2, r, 1)] = here ? row[label] : 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          double& x = e_logits[at(columns, r, c)];
          x = c < words ? (std::exp(x - e_largest[index(r)]) / all - (c == label ? 1 : 0)) / 64 : 0;
        }
      }
      const LocalWords local{kFirst, words};
      cross_entropy_max(queue, *largest, *logits, local);
      cross_entropy_sum(queue, *sum, *sum, *logits, *largest, *labels, local);
      const Matrix gradient(device, kRows, columns, type, 3);
      cross_entropy_gradient(queue, *gradient, *logits, *largest, *sum, *labels, local, 64);
      const std::string what = fmt::format("{} of {}", words, columns);
      expect_near(largest.get(), e_largest, 0, what);
      expect_near(sum.get(), e_sum, 2e-6, what);
      expect_near(gradient.get(), e_logits, tolerance_of(type), what);
    }
  }
}

// Words that come again and again, far apart too, and words of other ranks; and one word only, more
// often than a block keeps.
void expect_embedding(const Device& device, std::int64_t rows, std::int64_t columns, int different,
                      ElementType of_table) {
  constexpr std::int64_t kWords = 9, kFirst = 4;
  const Matrix table(device, kWords, columns, of_table, 1);
  const Matrix dout(device, rows, columns, ElementType::bf16, 2);
  Matrix tokens(device, rows, 1, ElementType::f32);
  std::vector<float> words(index(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    words[index(i)] = different == 1 ? 6 : static_cast<float>(mixed(index(i)) % 17);
  }
  tokens.set(words);
  const Numbers before = table.get(), d = dout.get();
  Numbers e(index(rows * columns)), e_table = before;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto word = static_cast<std::int64_t>(words[index(i)]) - kFirst;
    if (word < 0 || word >= kWords) continue;
    for (std::int64_t c = 0; c < columns; ++c) {
      e[at(columns, i, c)] = before[at(columns, word, c)];
      e_table[at(columns, word, c)] += d[at(columns, i, c)];
    }
  }
  for (const ElementType type : {ElementType::f32, of_table}) {
    const Matrix out(device, rows, columns, type);
    embedding(device.queue(), *out, *tokens, *table, kFirst);
    expect_near(out.get(), e, 0, "embedding");
  }
  embedding_gradient(device.queue(), *table, *tokens, *dout, kFirst);
  const double tolerance = of_table == ElementType::f32 ? 1e-5 : tolerance_of(of_table);
  expect_near(table.get(), e_table, tolerance, "its gradient");
}

TEST(Widths, OfEmbeddedTokensMayBeAny) {
  const Device device;
  for (const ElementType of_table : {ElementType::f32, ElementType::bf16}) {
    for (const std::int64_t columns : {3, 16, 40}) {
      expect_embedding(device, 700, columns, 17, of_table);
    }
    expect_embedding(device, 90, 4104, 17, of_table);
    expect_embedding(device, 5000, 24, 1, of_table);
  }
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// ---- Experts
// ----------------------------------------------------------------------------------

// More experts than a warp has lanes; the first of equal ones is chosen first.
TEST(Widths, OfExpertsThatAreChosenMayBeAny) {
  const Device device;
  constexpr std::int64_t kRows = 7;
  for (const auto& [experts, chosen] :
       {std::pair<std::int64_t, std::int64_t>{3, 2}, {33, 4}, {70, 8}}) {
    Matrix logits(device, kRows, experts, ElementType::f32);
    std::vector<float> scores;
    for (std::int64_t i = 0; i < kRows * experts; ++i) {
      scores.push_back(static_cast<float>(mixed(index(i)) % 11) / 4);
    }
    logits.set(scores);
    Numbers e_experts, e_gates;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float* row = &scores[at(experts, r, 0)];
      std::vector<std::int64_t> order(index(experts));
      for (std::int64_t k = 0; k < experts; ++k) order[index(k)] = k;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return row[a] > row[b]; });
      double sum = 0;
      for (std::int64_t j = 0; j < chosen; ++j)
        sum += std::exp(static_cast<double>(row[order[index(j)]]));
      for (std::int64_t j = 0; j < chosen; ++j) {
        e_experts.push_back(static_cast<double>(order[index(j)]));
        e_gates.push_back(std::exp(static_cast<double>(row[order[index(j)]])) / sum);
      }
    }
    const Matrix gates(device, kRows, chosen, ElementType::f32);
    const Matrix which(device, kRows, chosen, ElementType::f32);
    route(device.queue(), *gates, *which, *logits, nullptr);
    expect_near(which.get(), e_experts, 0, "experts");
    expect_near(gates.get(), e_gates, 2e-6, "gates");
  }
}

}  // namespace
}  // namespace trainyard
