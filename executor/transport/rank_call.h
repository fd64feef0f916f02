// The calls of a transport that a rank can be in, as others see it from outside, and lists of ranks
// in words.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

enum class RankCall : std::uint8_t {
  none,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  exchange_ring,
  send,
  receive,
  broadcast,
  wait,
};
std::string_view name_of(RankCall call);  // "all-reduce"; empty: none

// "rank 2", "ranks 1, 3 to 6 and 9". Requires: ascending, not empty.
std::string ranks_listed(const std::vector<int>& ranks);

// Publishes the call that the rank is in, for as long as this object lives.
class WithinCall {
 public:
  WithinCall(std::atomic<RankCall>& where, RankCall call) : where_(where) { where_.store(call); }
  ~WithinCall() { where_.store(RankCall::none); }
  WithinCall(const WithinCall&) = delete;
  WithinCall& operator=(const WithinCall&) = delete;

 private:
  std::atomic<RankCall>& where_;
};

}  // namespace trainyard
