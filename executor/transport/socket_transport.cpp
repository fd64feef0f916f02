#include "executor/transport/socket_transport.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "executor/exchange_counts.h"
#include "executor/transport/socket_meeting.h"
#include "executor/transport/socket_peer.h"

namespace trainyard {
namespace {

// Tags: messages of one tag between two ranks keep their order. Groups have their number as tag,
// sends kMessages plus their way, broadcasts their own.
constexpr int kMessages = 100;
constexpr int kBroadcast = 99;

class SocketTransport final : public Transport {
 public:
  SocketTransport(std::vector<SocketPeer> peers, int rank, const RankLayout& layout,
                  std::atomic<RankCall>& call)
      : Transport(rank, static_cast<int>(peers.size())),
        peers_(std::move(peers)),
        layout_(layout),
        call_(call) {}

  // Each member sums up its part in the order of members and spreads it, so all have the same sum.
  Expected<void> all_reduce(Group group, float* numbers, std::int64_t count,
                            Reduction how) override {
    const WithinCall within(call_, RankCall::all_reduce);
    const std::vector<int> members = members_of(group);
    const Counts counts = part_counts(static_cast<int>(members.size()), count);
    std::vector<float> mine(index(counts.front()));
    auto done = reduce(group, numbers, counts, mine.data(), how);
    return done ? spread(group, mine.data(), counts, numbers) : done;
  }
  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    const WithinCall within(call_, RankCall::reduce_scatter);
    return reduce(group, all, counts, mine, Reduction::sum);
  }
  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    const WithinCall within(call_, RankCall::all_gather);
    return spread(group, mine, counts, all);
  }
  Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    const WithinCall within(call_, RankCall::all_to_all);
    const std::vector<int> members = members_of(group);
    for (std::size_t i = 0; i < members.size(); ++i) {
      post(members[i], tag_of(group), to, to_counts[i]);
      to += to_counts[i];
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (auto done = take(members[i], tag_of(group), from, from_counts[i]); !done) return done;
      from += from_counts[i];
    }
    return {};
  }
  Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                      std::int64_t count) override {
    const WithinCall within(call_, RankCall::exchange_ring);
    const std::vector<int> members = members_of(group);
    const auto size = members.size();
    const auto self = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank()) -
                                               members.begin());
    const int next = members[(self + 1) % size], previous = members[(self + size - 1) % size];
    const bool on = way == RingWay::on;
    post(on ? next : previous, tag_of(group), mine, count);
    return take(on ? previous : next, tag_of(group), received, count);
  }
  Expected<void> send(int to, int way, const float* numbers, std::int64_t count) override {
    const WithinCall within(call_, RankCall::send);
    post(to, kMessages + way, numbers, count);
    return pump(0);
  }
  Expected<void> receive(int from, int way, float* numbers, std::int64_t count) override {
    const WithinCall within(call_, RankCall::receive);
    return take(from, kMessages + way, numbers, count);
  }
  // Errors are ignored: a failed connection fails again where somebody waits for it.
  void move_messages() override { (void)pump(0); }
  Expected<void> wait_for_messages() override {
    const WithinCall within(call_, RankCall::wait);
    for (;;) {
      const auto waiting = std::find_if(peers_.begin(), peers_.end(),
                                        [](const SocketPeer& peer) { return peer.has_to_send(); });
      if (waiting == peers_.end()) return {};
      if (!waiting->is_there()) return gone(static_cast<int>(waiting - peers_.begin()));
      if (auto done = pump(-1); !done) return done;
    }
  }
  Expected<void> broadcast(std::string& bytes, int from) override {
    const WithinCall within(call_, RankCall::broadcast);
    if (rank() != from) {
      auto message = arrived(from, kBroadcast);
      if (!message) return tl::unexpected(message.error());
      bytes.assign(message->begin(), message->end());
      return {};
    }
    for (int to = 0; to < ranks(); ++to) {
      if (to != rank()) peers_[index(to)].post(kBroadcast, bytes.data(), bytes.size());
    }
    return wait_for_messages();
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::int64_t tag_of(Group group) { return static_cast<std::int64_t>(group); }
  std::vector<int> members_of(Group group) const {
    std::vector<int> list;
    list.reserve(peers_.size());
    if (group == Group::all) {
      for (int i = 0; i < ranks(); ++i) list.push_back(i);
      return list;
    }
    const GroupMembers members = layout_.members(group, rank());
    for (int i = 0; i < members.size(); ++i) list.push_back(members[i]);
    return list;
  }

  void post(int to, std::int64_t tag, const float* numbers, std::int64_t count) {
    const std::size_t size = index(count) * sizeof(float);
    if (to != rank()) return peers_[index(to)].post(tag, numbers, size);
    const auto* bytes = reinterpret_cast<const char*>(numbers);
    own_[tag].emplace_back(bytes, bytes + size);
  }
  Expected<void> take(int from, std::int64_t tag, float* numbers, std::int64_t count) {
    auto message = arrived(from, tag);
    if (!message) return tl::unexpected(message.error());
    if (message->size() != index(count) * sizeof(float)) {
      return failure("", fmt::format("rank {} sent {} bytes, expected were {}", from,
                                     message->size(), index(count) * sizeof(float)));
    }
    if (count > 0) std::memcpy(numbers, message->data(), message->size());
    return {};
  }
  Expected<RawBytes> arrived(int from, std::int64_t tag) {
    if (from == rank()) {
      RawBytes message = std::move(own_[tag].front());
      own_[tag].pop_front();
      return message;
    }
    for (;;) {
      if (auto message = peers_[index(from)].taken(tag)) return *std::move(message);
      if (!peers_[index(from)].is_there()) return tl::unexpected(gone(from).error());
      if (auto done = pump(-1); !done) return tl::unexpected(done.error());
    }
  }

  Expected<void> reduce(Group group, const float* all, const Counts& counts, float* mine,
                        Reduction how) {
    const std::vector<int> members = members_of(group);
    std::size_t self = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == rank()) self = i;
      post(members[i], tag_of(group), all, counts[i]);
      all += counts[i];
    }
    std::vector<float> part(index(counts[self]));
    for (std::size_t i = 0; i < members.size(); ++i) {
      auto done = take(members[i], tag_of(group), part.data(), counts[self]);
      if (!done) return done;
      for (std::size_t k = 0; k < part.size(); ++k) {
        mine[k] = i == 0                  ? part[k]
                  : how == Reduction::max ? std::max(mine[k], part[k])
                                          : mine[k] + part[k];
      }
    }
    return {};
  }
  Expected<void> spread(Group group, const float* mine, const Counts& counts, float* all) {
    const std::vector<int> members = members_of(group);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] != rank()) continue;
      for (const int to : members) post(to, tag_of(group), mine, counts[i]);
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (auto done = take(members[i], tag_of(group), all, counts[i]); !done) return done;
      all += counts[i];
    }
    return {};
  }

  Expected<void> gone(int peer) const { return failed(peer, kHasGone); }
  Expected<void> failed(int peer, std::string_view what) const {
    return failure("", fmt::format("{} failed: rank {} {}", name_of(call_.load()), peer, what));
  }

  // Sends and receives what goes without waiting, after up to `wait` milliseconds until anything
  // does (−1: no limit).
  Expected<void> pump(int wait) {
    std::vector<pollfd> watched;
    std::vector<SocketPeer*> whose;
    watched.reserve(peers_.size());
    whose.reserve(peers_.size());
    for (SocketPeer& peer : peers_) {
      if (!peer.is_there()) continue;
      const auto events = static_cast<short>(peer.has_to_send() ? POLLIN | POLLOUT : POLLIN);
      watched.push_back({peer.socket(), events, 0});
      whose.push_back(&peer);
    }
    if (::poll(watched.data(), watched.size(), wait) < 0 && errno != EINTR) {
      return system_failure("poll");
    }
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (auto done = move_some(*whose[i], watched[i].revents); !done) return done;
    }
    return {};
  }

  // Sends and receives what the peer is ready for.
  Expected<void> move_some(SocketPeer& peer, short ready) const {
    if ((ready & POLLOUT) != 0) {
      if (auto done = peer.send_some(); !done) return done;
    }
    if ((ready & (POLLIN | POLLHUP | POLLERR)) == 0) return {};
    const auto done = peer.receive_some();
    if (done) return {};
    return failed(static_cast<int>(&peer - peers_.data()), done.error().message);
  }

  std::vector<SocketPeer> peers_;
  std::map<std::int64_t, std::deque<RawBytes>> own_;
  const RankLayout& layout_;
  std::atomic<RankCall>& call_;
};

}  // namespace

Expected<std::unique_ptr<Transport>> make_socket_transport(const Rendezvous& at,
                                                           const RankLayout& layout,
                                                           std::atomic<RankCall>& call,
                                                           Seconds timeout) {
  auto peers = met_peers(at, timeout);
  if (!peers) return tl::unexpected(peers.error());
  return std::make_unique<SocketTransport>(*std::move(peers), at.rank, layout, call);
}

}  // namespace trainyard
