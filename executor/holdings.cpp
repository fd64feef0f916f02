#include "executor/holdings.h"

#include <algorithm>
#include <thread>

#include "executor/cpu/kernels/kernels.h"
#include "model/first_exception.h"

namespace trainyard {

bool is_of_vocabulary(std::string_view name) {
  return name.starts_with("embedding table") || name.starts_with("head weight");
}

Holdings::Holdings(const Setting& setting, const Program& program, const RankLayout& layout,
                   int rank)
    : setting_(setting),
      program_(program),
      layout_(layout),
      rank_(rank),
      at_(layout.coordinates(rank)) {}

const ProgramBuffer& Holdings::whole(const ProgramBuffer& buffer) const {
  return buffer.part_of < 0 ? buffer : program_.buffer(buffer.part_of);
}

std::int64_t Holdings::first_of(const ProgramBuffer& buffer) const {
  if (buffer.among == Group::none) return 0;
  return buffer.rows * layout_.members(buffer.among, rank_).index_of(rank_);
}

// The head's tensors for a further predicted token belong to the MTP layer that predicts it.
int Holdings::layer_of(const ProgramBuffer& buffer, int layer) const {
  const int prediction = whole(buffer).prediction;
  return prediction == 0 ? layer : setting_.model.layers + prediction - 1;
}

TensorName Holdings::name(const ProgramBuffer& buffer, int layer) const {
  std::string name(whole(buffer).name);
  constexpr std::string_view kHead = "head weight";
  if (setting_.model.tied_embeddings && name.starts_with(kHead)) {
    name.replace(0, kHead.size(), "embedding table");
  }
  return {std::move(name), layer_of(buffer, layer)};
}

std::optional<Element> Holdings::element(const ProgramBuffer& buffer, std::int64_t number) const {
  const ProgramBuffer& all = whole(buffer);
  const std::int64_t k = first_of(buffer) + number;
  if (k >= all.rows * all.columns) return std::nullopt;
  const Element found = whole_element(all.cut, all.rows, at_, {k / all.columns, k % all.columns});
  if (is_of_vocabulary(all.name) && found.row >= setting_.model.vocabulary) return std::nullopt;
  return found;
}

// Fills numbers first … end − 1 of a buffer.
void Holdings::fill_weights(const ProgramBuffer& buffer, int layer, const Part& part,
                            const std::function<void()>& goes_on) const {
  std::optional<WeightRow> row;
  std::int64_t of = -1;
  for (std::size_t k = part.first; k < part.end; ++k) {
    if ((k + 1) % kBetweenBeats == 0) goes_on();
    const auto place = element(buffer, static_cast<std::int64_t>(k));
    if (!place) continue;
    if (place->row != of) {
      of = place->row;
      row.emplace(setting_, WeightPlace{whole(buffer).name, layer_of(buffer, layer), of});
    }
    part.numbers[k] = (*row)[place->column];
  }
}

std::vector<double> Holdings::initial_weights(const ProgramBuffer& buffer, int layer,
                                              const std::function<void()>& goes_on) const {
  constexpr std::size_t kOfAThread = 1 << 22;  // numbers per thread: about a tenth of a second
  std::vector<double> numbers(static_cast<std::size_t>(buffer.rows * buffer.columns));
  const std::size_t threads = std::clamp<std::size_t>(
      numbers.size() / kOfAThread, 1, std::max(1U, std::thread::hardware_concurrency()));
  const auto fill = [&, size = numbers.size()](std::size_t part) {
    fill_weights(buffer, layer,
                 {numbers.data(), size * part / threads, size * (part + 1) / threads}, goes_on);
  };
  FirstException failed;
  std::vector<std::jthread> others;  // join where they go out of scope
  for (std::size_t part = 1; part < threads; ++part) {
    if (!add_thread(others, failed, [&fill, part] { fill(part); })) fill(part);
  }
  fill(0);
  others.clear();
  failed.rethrow();
  return numbers;
}

std::vector<double> Holdings::tokens(const ProgramBuffer& buffer, int microbatch,
                                     std::int64_t step) const {
  const Where where{setting_, at_, {.microbatch = microbatch}, 0, step};
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(buffer.rows));
  for (Eigen::Index row = 0; row < buffer.rows; ++row) {
    const TokenPlace place = token_place(where, row, buffer.rows);
    numbers.push_back(token_at(setting_, place.sequence, place.position + buffer.ahead));
  }
  return numbers;
}

}  // namespace trainyard
