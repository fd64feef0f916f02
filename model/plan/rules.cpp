#include "model/plan/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace trainyard {
namespace {

bool is_utf8_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

Count saturating_product(std::initializer_list<Count> factors) {
  Count product = 1;
  for (const Count factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::numeric_limits<Count>::max();
  }
  return product;
}

Count nearest_divisor(Count number, Count found, const std::function<bool(Count)>& legal) {
  Count nearest = 0;
  const auto consider = [&](Count divisor) {
    const Count distance = std::abs(divisor - found);
    const Count best = std::abs(nearest - found);
    if ((nearest == 0 || distance < best || (distance == best && divisor < nearest)) &&
        legal(divisor)) {
      nearest = divisor;
    }
  };
  constexpr Count kLargestTried = 1 << 20;  // beyond 2^40 the search stays quick, not complete
  for (Count divisor = 1; divisor * divisor <= number && divisor <= kLargestTried; ++divisor) {
    if (number % divisor != 0) continue;
    consider(divisor);
    consider(number / divisor);
  }
  return nearest;
}

Error refusal(std::string_view key, std::string message) {
  return {fmt::format("/plan/{}", key), std::move(message)};
}

Count chunk_count(const Proposal& proposal) {
  return saturating_product({proposal.request.pipeline_parallel, proposal.virtual_stages});
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 77;  // with quotes and ellipsis 80
  std::size_t kept = std::min(text.size(), kLongest);
  while (kept < text.size() && kept > 0 && is_utf8_continuation(text[kept])) --kept;
  std::string line(text.substr(0, kept));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, '?');
  return fmt::format("\"{}\"{}", line, kept < text.size() ? "…" : "");
}

}  // namespace trainyard
