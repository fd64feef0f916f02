#include "executor/supervision/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "executor/supervision/process_state.h"
#include "executor/transport/rank_call.h"

namespace trainyard {
namespace {

const BoardHead* waiting_or_working(const Boards& boards, int rank) {
  const auto& board = boards[static_cast<std::size_t>(rank)];
  return board && !has_ended(board->head().state) ? &board->head() : nullptr;
}

bool contains(const std::vector<int>& list, int rank) {
  return std::find(list.begin(), list.end(), rank) != list.end();
}

// Who waits for whom among the ranks that are seen.
class Standstill {
 public:
  Standstill(const Boards& boards, const RunWords& words,
             const std::function<bool(int process)>& stopped)
      : boards_(boards), stopped_(stopped) {
    for (int rank = 0; rank < static_cast<int>(boards.size()); ++rank) {
      const BoardHead* head = waiting_or_working(boards, rank);
      if (head == nullptr) continue;
      waits_[rank] = computes(*head) ? Waits{} : words.waits(boards, rank);
    }
  }

  Culprits culprits() const {
    Culprits found;
    for (auto choose : {&Standstill::stopped, &Standstill::computing, &Standstill::in_full_calls}) {
      found.ranks = (this->*choose)();
      found.is_tie = choose == &Standstill::in_full_calls && are_together(found.ranks);
      if (!found.ranks.empty()) break;
    }
    for (const auto& [rank, waits] : waits_) {
      if (contains(found.ranks, rank)) continue;
      for (const auto* others : {&waits.for_ranks, &waits.with, &waits.passed}) {
        const auto is_for = [&](int other) { return contains(found.ranks, other); };
        if (std::none_of(others->begin(), others->end(), is_for)) continue;
        found.waiting.push_back(rank);
        break;
      }
    }
    if (found.ranks.empty()) blame_the_unseen(found);
    if (found.ranks.empty() && found.unseen.empty()) blame_all(found);
    return found;
  }

 private:
  const BoardHead& head(int rank) const { return boards_[static_cast<std::size_t>(rank)]->head(); }

  // Ranks that wait for nobody: they compute, or are in a call that lacks nobody.
  std::vector<int> in_full_calls() const {
    std::vector<int> found;
    for (const auto& [rank, waits] : waits_) {
      if (waits.for_ranks.empty()) found.push_back(rank);
    }
    return found;
  }
  std::vector<int> computing() const {
    std::vector<int> found = in_full_calls();
    std::erase_if(found, [this](int rank) { return !computes(head(rank)); });
    return found;
  }
  // Stopped ranks among those, and among the senders whose messages they receive.
  std::vector<int> stopped() const {
    std::vector<int> found;
    for (const int rank : in_full_calls()) {
      found.push_back(rank);
      for (const int other : waits_.at(rank).passed) {
        if (waits_.contains(other)) found.push_back(other);
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase_if(found, [this](int rank) { return !stopped_(head(rank).process); });
    return found;
  }
  bool are_together(const std::vector<int>& ranks) const {
    const auto is_with = [&](int rank) { return contains(waits_.at(ranks.front()).with, rank); };
    return ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), is_with);
  }

  void blame_the_unseen(Culprits& found) const {
    for (const auto& [rank, waits] : waits_) {
      for (const int other : waits.for_ranks) {
        if (boards_[static_cast<std::size_t>(other)]) continue;
        found.unseen.push_back(other);
        if (!contains(found.waiting, rank)) found.waiting.push_back(rank);
      }
    }
    std::sort(found.unseen.begin(), found.unseen.end());
    found.unseen.erase(std::unique(found.unseen.begin(), found.unseen.end()), found.unseen.end());
  }

  // The ranks wait for each other in a circle, which a checked program rules out.
  void blame_all(Culprits& found) const {
    for (const auto& [rank, waits] : waits_) found.ranks.push_back(rank);
  }

  const Boards& boards_;
  const std::function<bool(int process)>& stopped_;
  std::map<int, Waits> waits_;  // by rank that has not ended
};

}  // namespace

RunWords words_of(const Program& program, const RankLayout& layout) {
  return {[&program, &layout](int rank, std::int64_t operation) {
            return described_operation(program, layout, rank, operation);
          },
          [&program, &layout](const Boards& boards, int rank) {
            return waits_in(program, layout, boards, rank);
          }};
}

bool has_ended(RankState state) {
  return state == RankState::done || state == RankState::failed || state == RankState::terminated;
}

std::optional<std::string> failure_of(const Boards& boards, const RunWords& words) {
  std::optional<std::string> other;
  for (const auto& board : boards) {
    if (!board || board->head().state != RankState::failed) continue;
    const std::string_view message = board->head().message.data();
    std::string sentence = sentence_of(board->head(), message, words.described);
    if (message != kAnotherRank) return sentence;
    other = std::move(sentence);
  }
  return other;
}

std::optional<std::string> death_of(const Boards& boards, const RunWords& words) {
  const BoardHead* first = nullptr;
  int told = 0;
  for (const auto& board : boards) {
    // Looks at the process first: it may finish between the two looks.
    if (!board || is_alive(board->head().process)) continue;
    const RankState state = board->head().state;
    if (!has_ended(state)) return sentence_of(board->head(), "was killed", words.described);
    if (state != RankState::terminated) continue;
    if (told++ == 0) first = &board->head();
  }
  if (first == nullptr) return std::nullopt;
  return sentence_of(
      *first, told == 1 ? "was told to end (SIGTERM)" : "and others were told to end (SIGTERM)",
      words.described);
}

Culprits culprits_of(const Boards& boards, const RunWords& words,
                     const std::function<bool(int process)>& stopped) {
  return Standstill(boards, words, stopped).culprits();
}

std::optional<std::string> standstill_of(const Boards& boards, const RunWords& words,
                                         Seconds timeout) {
  constexpr std::size_t kNamed = 3;  // culprits described one by one
  const Culprits culprits = culprits_of(boards, words, is_stopped);
  const std::vector<int>&ranks = culprits.ranks, &waiting = culprits.waiting;
  const auto head = [&boards](int rank) -> const BoardHead& {
    return boards[static_cast<std::size_t>(rank)]->head();
  };
  const auto sentence = [&](int rank) {
    const bool stopped = is_stopped(head(rank).process);
    return sentence_of(head(rank), (stopped ? "is stopped and " : "") + not_gone_on(timeout),
                       words.described);
  };
  if (ranks.empty() && waiting.empty()) return std::nullopt;
  if (ranks.empty()) {
    return fmt::format("{}; it waits for {} on another host", sentence(waiting.front()),
                       ranks_listed(culprits.unseen));
  }
  if (culprits.is_tie) {
    return fmt::format(
        "{} on {} have not gone on for {:.0f} s: {}; all of them have come there, and which one "
        "keeps the others cannot be told",
        ranks_listed(ranks), head(ranks.front()).host.data(), timeout.value(),
        place_of(head(ranks.front()), words.described));
  }
  std::string text = sentence(ranks.front());
  const std::size_t named = std::min(ranks.size(), kNamed);
  for (std::size_t i = 1; i < named; ++i) text += "; " + sentence(ranks[i]);
  if (named < ranks.size()) {
    const std::vector<int> others(ranks.begin() + kNamed, ranks.end());
    text += fmt::format("; and so it is with {}", ranks_listed(others));
  }
  if (waiting.empty()) return text;
  return fmt::format("{}; {} {} for {}", text, ranks_listed(waiting),
                     waiting.size() == 1 ? "waits" : "wait", ranks.size() == 1 ? "it" : "them");
}

}  // namespace trainyard
