#include "model/cost/messages/transfer_rounds.h"

#include <algorithm>

#include "model/cost/messages/collective_steps.h"

namespace trainyard {
namespace {

// Every member (domain, place) sends to (domain + domains, place + places).
std::vector<Transfer> shifted(const GroupLinks& links, int domains, int places, Bytes bytes) {
  const int r = links.ranks_per_domain;
  std::vector<Transfer> transfers;
  for (int member = 0; member < links.size; ++member) {
    const int domain = (member / r + domains) % links.domains;
    transfers.push_back({member, domain * r + (member % r + places) % r, bytes});
  }
  return transfers;
}

}  // namespace

TransferRound ring_round(const GroupLinks& links, int repeats, Bytes part) {
  TransferRound round{.repeats = repeats, .latency = ring_pace(links).latency, .way = Way::rings};
  for (int member = 0; member < links.size; ++member) {
    round.transfers.push_back({member, (member + 1) % links.size, part});
  }
  return round;
}

TransferRound inside_ring_round(const GroupLinks& links, int repeats, Bytes part) {
  return {.repeats = repeats,
          .latency = links.inside_latency,
          .way = Way::all_links,
          .transfers = shifted(links, 0, 1, part)};
}

TransferRound across_ring_round(const GroupLinks& links, int repeats, Bytes part) {
  return {
      .repeats = repeats, .latency = links.across_latency, .transfers = shifted(links, 1, 0, part)};
}

TransferRound inside_shift(const GroupLinks& links, int places, Bytes bytes) {
  return {.latency = links.inside_latency, .transfers = shifted(links, 0, places, bytes)};
}

TransferRound across_shift(const GroupLinks& links, int domains, int places, Bytes bytes) {
  return {.latency = links.across_latency, .transfers = shifted(links, domains, places, bytes)};
}

TransferRounds recursive_rounds(const GroupLinks& links, Bytes message) {
  TransferRounds rounds;
  const Bytes part = message / links.size;
  const int m = links.domains;
  const int r = links.ranks_per_domain;
  for (int far = 1; far < m; far *= 2) {
    rounds.push_back(across_shift(links, far, 0, std::min(far, m - far) * part));
  }
  for (int far = 1; far < r; far *= 2) {
    rounds.push_back(inside_shift(links, far, std::min(far, r - far) * m * part));
  }
  return rounds;
}

TransferRound switch_round(const GroupLinks& links, Way way, Bytes bytes) {
  const bool inside = way == Way::switch_inside;
  return {.latency = inside ? links.inside_latency : links.across_latency,
          .way = way,
          .overhead = inside ? kMulticastOverhead : 1,
          .transfers = shifted(links, 0, 0, bytes)};
}

}  // namespace trainyard
