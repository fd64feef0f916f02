// Calls that a rank can be in, as a look at it from outside shows them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

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

// What the rank is in, while it is.
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
