// Which numbers of the whole network a rank holds: for each number of a weight or gradient, its
// place in the unsharded tensor and its initial value; for each row of a token buffer, its token.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/setting.h"
#include "model/program/program.h"

namespace trainyard {

// A tensor of the unsharded network: its name and its layer (−1: none).
using TensorName = std::pair<std::string, int>;

// Whether a tensor of this name has a row for each token of the vocabulary, padding included.
bool is_of_vocabulary(std::string_view name);

// How many numbers of a tensor are filled or compared between two signs of life; they take well
// below a second.
inline constexpr std::int64_t kBetweenBeats = std::int64_t{1} << 22;

class Holdings {
 public:
  // Requires: all three outlive it.
  Holdings(const Setting& setting, const Program& program, const RankLayout& layout, int rank);

  // Name of the weight or gradient in `buffer`; both copies of a tied matrix have the same name.
  TensorName name(const ProgramBuffer& buffer, int layer) const;
  // Place of a number in the whole tensor; nothing: it pads the buffer or the vocabulary.
  std::optional<Element> element(const ProgramBuffer& buffer, std::int64_t number) const;

  // Initial values of a weight buffer, filled by as many threads as there is work for. Each thread
  // calls `goes_on` after every kBetweenBeats numbers.
  std::vector<double> initial_weights(
      const ProgramBuffer& buffer, int layer, const std::function<void()>& goes_on = [] {}) const;
  // Tokens of one micro-batch of one step, as many positions ahead as the buffer says.
  std::vector<double> tokens(const ProgramBuffer& buffer, int microbatch, std::int64_t step) const;

  const RankCoordinates& at() const { return at_; }

 private:
  struct Part {
    double* numbers;  // of the whole buffer
    std::size_t first, end;
  };
  void fill_weights(const ProgramBuffer& buffer, int layer, const Part& part,
                    const std::function<void()>& goes_on) const;
  const ProgramBuffer& whole(const ProgramBuffer& buffer) const;
  std::int64_t first_of(const ProgramBuffer& buffer) const;
  int layer_of(const ProgramBuffer& buffer, int layer) const;

  const Setting& setting_;
  const Program& program_;
  const RankLayout& layout_;
  int rank_;
  RankCoordinates at_;
};

}  // namespace trainyard
