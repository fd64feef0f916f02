// What the rules of a plan share: arithmetic that cannot overflow, and the wording of errors.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "model/plan/validity.h"

namespace trainyard {

using Count = std::int64_t;  // products of two ints fit; longer products saturate
constexpr Count kMostRanks = std::numeric_limits<int>::max();

Count saturating_product(std::initializer_list<Count> factors);

constexpr bool divides(Count divisor, Count number) { return divisor > 0 && number % divisor == 0; }

// The divisor of `number` that `legal` accepts and that is closest to `found` (of two equally close
// ones the smaller); 0: none.
Count nearest_divisor(Count number, Count found, const std::function<bool(Count)>& legal);

// p·v; saturates.
Count chunk_count(const Proposal& proposal);

// An error at a key of `plan`.
Error refusal(std::string_view key, std::string message);

// A name from a document for an error message: quoted, one line, at most 80 characters.
std::string quoted(std::string_view text);

}  // namespace trainyard
