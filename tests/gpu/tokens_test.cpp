// Kernels of tokens at widths and places that are no multiples of eight: dropout, the embedding and
// the head, experts. Expected are sums in double of what the device stores, by the definition of
// each operation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/gpu/matrices.h"

namespace trainyard {
namespace {

// Expects out = stream + (branch + bias) · mask · kept, with is_kept() for each number.
void expect_dropout(const TestDevice& device, std::int64_t rows, std::int64_t columns,
                    const std::vector<ElementType>& types, bool biased) {
  const Dropout dropout{.seed = 7,
                        .site = 2,
                        .layer = 3,
                        .rate = 0.25,
                        .kept = 1 / 0.75F,
                        .places = {.part = 4, .offset = 3, .first_sequence = 5}};
  const DeviceMatrix stream(device, rows, columns, types[0], 1),
      branch(device, rows, columns, types[1]);
  const DeviceMatrix bias(device, columns, 1, types[1], 3), out(device, rows, columns, types[0]);
  const DeviceMatrix dropped(device, rows, columns, types[1]);
  const DeviceMatrix mask(device, rows, columns, ElementType::u8),
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
  const TestDevice device;
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

// ---- Both ends ----------------------------------------------------------------------------------

// Padded to sixteen rows, as products in 8 bits require.
TEST(Widths, OfTransposedNumbersMayBeAny) {
  const TestDevice device;
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {5, 7}, {40, 136}, {136, 48}, {264, 16}, {200, 272}, {128, 128}}) {
    const std::int64_t padded = (rows + 15) / 16 * 16;
    const DeviceMatrix in(device, rows, columns, ElementType::e4m3),
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
  const TestDevice device;
  const Queue& queue = device.queue();
  constexpr std::int64_t kRows = 5, kFirst = 100;
  for (const ElementType type : kTypes) {
    for (const auto& [columns, words] :
         {std::pair<std::int64_t, std::int64_t>{5, 5}, {8, 7}, {13, 13}, {101, 96}, {1000, 999}}) {
      const DeviceMatrix logits(device, kRows, columns, type);
      const DeviceMatrix largest(device, kRows, 1, ElementType::f32),
          sum(device, kRows, 2, ElementType::f32);
      DeviceMatrix labels(device, kRows, 1, ElementType::f32);
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
      const DeviceMatrix gradient(device, kRows, columns, type, 3);
      cross_entropy_gradient(queue, *gradient, *logits, *largest, *sum, *labels, local, 64);
      const std::string what = fmt::format("{} of {}", words, columns);
      expect_near(largest.get(), e_largest, 0, what);
      expect_near(sum.get(), e_sum, 2e-6, what);
      expect_near(gradient.get(), e_logits, tolerance_of(type), what);
    }
  }
}

// Tokens that repeat, some far apart, and tokens of other ranks; or a single token, more often than
// a block keeps.
void expect_embedding(const TestDevice& device, std::int64_t rows, std::int64_t columns,
                      int different, ElementType of_table) {
  constexpr std::int64_t kWords = 9, kFirst = 4;
  const DeviceMatrix table(device, kWords, columns, of_table, 1);
  const DeviceMatrix dout(device, rows, columns, ElementType::bf16, 2);
  DeviceMatrix tokens(device, rows, 1, ElementType::f32);
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
    const DeviceMatrix out(device, rows, columns, type);
    embedding(device.queue(), *out, *tokens, *table, kFirst);
    expect_near(out.get(), e, 0, "embedding");
  }
  embedding_gradient(device.queue(), *table, *tokens, *dout, kFirst);
  const double tolerance = of_table == ElementType::f32 ? 1e-5 : tolerance_of(of_table);
  expect_near(table.get(), e_table, tolerance, "its gradient");
}

TEST(Widths, OfEmbeddedTokensMayBeAny) {
  const TestDevice device;
  for (const ElementType of_table : {ElementType::f32, ElementType::bf16}) {
    for (const std::int64_t columns : {3, 16, 40}) {
      expect_embedding(device, 700, columns, 17, of_table);
    }
    expect_embedding(device, 90, 4104, 17, of_table);
    expect_embedding(device, 5000, 24, 1, of_table);
  }
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// ---- Experts ------------------------------------------------------------------------------------

// Rows are put in the order of experts and summed up again; a dropped row has no place.
void expect_permutation(const TestDevice& device, std::int64_t columns, std::int64_t chosen,
                        const std::vector<ElementType>& types) {
  constexpr std::int64_t kRows = 21;
  const std::int64_t places = kRows * chosen * 3 / 4;
  std::vector<std::int64_t> copies(index(kRows * chosen));
  for (std::size_t i = 0; i < copies.size(); ++i) copies[i] = static_cast<std::int64_t>(i);
  std::sort(copies.begin(), copies.end(),
            [](std::int64_t a, std::int64_t b) { return mixed(index(a)) < mixed(index(b)); });
  std::vector<float> copy_of_place, place_of_copy(copies.size(), std::bit_cast<float>(-1));
  for (std::int64_t place = 0; place < places; ++place) {
    copy_of_place.push_back(std::bit_cast<float>(static_cast<int>(copies[index(place)])));
    place_of_copy[index(copies[index(place)])] = std::bit_cast<float>(static_cast<int>(place));
  }
  DeviceMatrix to(device, places, 1, ElementType::f32),
      back(device, kRows, chosen, ElementType::f32);
  to.set(copy_of_place);
  back.set(place_of_copy);
  const DeviceMatrix tokens(device, kRows, columns, types[0]),
      rows(device, places, columns, types[1]);
  const DeviceMatrix residual(device, kRows, columns, types[0], 3);
  const DeviceMatrix sum(device, kRows, columns, types[0]);
  const Numbers before = tokens.get();
  Numbers e_rows(index(places * columns)), e_sum = residual.get();
  for (std::int64_t place = 0; place < places; ++place) {
    const std::int64_t token = copies[index(place)] / chosen;
    for (std::int64_t c = 0; c < columns; ++c) {
      e_rows[at(columns, place, c)] = before[at(columns, token, c)];
      e_sum[at(columns, token, c)] += before[at(columns, token, c)];
    }
  }
  const std::string what = fmt::format("{} columns, {} chosen", columns, chosen);
  gather_rows(device.queue(), *rows, *tokens, *to, static_cast<int>(chosen));
  expect_near(rows.get(), e_rows, 0, what);
  unpermute(device.queue(), *sum, *rows, *back, {*residual});
  expect_near(sum.get(), e_sum, tolerance_of(types[0]), what);
}

TEST(Widths, OfTokensThatGoToExpertsMayBeAny) {
  const TestDevice device;
  for (const std::int64_t columns : {1, 5, 40, 264, 4104}) {
    for (const ElementType type : kTypes) {
      for (const std::int64_t chosen : {1, 2, 6}) {
        expect_permutation(device, columns, chosen, {type, type});
      }
    }
  }
  expect_permutation(device, 264, 8, {ElementType::bf16, ElementType::f32});
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// Scores that are not numbers are chosen last, the first of them first. A token that gets such an
// expert has gates that are not-a-number.
TEST(RoutedTokens, HaveExpertsWhereTheirScoresAreNoNumbers) {
  const TestDevice device;
  constexpr std::int64_t kExperts = 40;
  const float none = std::nanf("");
  DeviceMatrix logits(device, 3, kExperts, ElementType::f32);
  std::vector<float> scores(3 * kExperts, none);
  scores[at(kExperts, 1, 37)] = 2;
  for (std::int64_t e = 0; e < kExperts; ++e) scores[at(kExperts, 2, e)] = static_cast<float>(e);
  scores[at(kExperts, 2, 39)] = none;
  logits.set(scores);
  const DeviceMatrix gates(device, 3, 2, ElementType::f32), which(device, 3, 2, ElementType::f32);
  route(device.queue(), *gates, *which, *logits, nullptr);
  EXPECT_EQ(which.get(), (Numbers{0, 1, 37, 0, 38, 37}));
  const Numbers found = gates.get();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(found[i])) << i;
  EXPECT_NEAR(found[4], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// Expected is what the host's ranks receive (executor/transport/stand_in_transport.cpp).
TEST(Widths, OfMessagesThatNobodySentMayBeAny) {
  const TestDevice device;
  for (const std::int64_t columns : kWidths) {
    for (const ElementType type : kTypes) {
      const DeviceMatrix out(device, 3, columns, type);
      Numbers expected;
      for (std::int64_t i = 0; i < 3 * columns; ++i) {
        expected.push_back(static_cast<double>(message_noise(5, static_cast<std::uint64_t>(i))));
      }
      fill_with_noise(device.queue(), *out, 5);
      expect_near(out.get(), expected, tolerance_of(type), fmt::format("{} columns", columns));
    }
  }
  EXPECT_TRUE(device.status().ok()) << device.status().message();
}

// More experts than a warp has lanes; of equal scores the first is chosen first.
TEST(Widths, OfExpertsThatAreChosenMayBeAny) {
  const TestDevice device;
  constexpr std::int64_t kRows = 7;
  for (const auto& [experts, chosen] :
       {std::pair<std::int64_t, std::int64_t>{3, 2}, {33, 4}, {70, 8}}) {
    DeviceMatrix logits(device, kRows, experts, ElementType::f32);
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
    const DeviceMatrix gates(device, kRows, chosen, ElementType::f32);
    const DeviceMatrix which(device, kRows, chosen, ElementType::f32);
    route(device.queue(), *gates, *which, *logits, nullptr);
    expect_near(which.get(), e_experts, 0, "experts");
    expect_near(gates.get(), e_gates, 2e-6, "gates");
  }
}

}  // namespace
}  // namespace trainyard
