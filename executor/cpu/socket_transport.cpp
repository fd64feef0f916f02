#include "executor/cpu/socket_transport.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "executor/exchange_counts.h"
#include "executor/whereabouts.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
using RawBytes = std::vector<char>;

// Messages of one tag between two ranks arrive in their order: one for each group, way and the
// rest.
constexpr int kMessages = 100;
constexpr int kBroadcast = 99;

struct MessageHead {
  std::int64_t tag = 0, size = 0;
};

Expected<void> system_failure(std::string_view call) {
  return failure("", fmt::format("{} failed: {}", call, std::strerror(errno)));
}

// A connection to one peer: what waits to leave, what has come in part, what has arrived.
class Peer {
 public:
  explicit Peer(int socket = -1) : socket_(socket) {}
  ~Peer() {
    if (socket_ >= 0) ::close(socket_);
  }
  Peer(Peer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Peer& operator=(Peer&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }

  int socket() const { return socket_; }
  bool has_to_send() const { return !leaving_.empty(); }
  bool is_there() const { return socket_ >= 0 && !closed_; }

  void post(std::int64_t tag, const void* data, std::size_t size) {
    const MessageHead head{tag, static_cast<std::int64_t>(size)};
    RawBytes message(sizeof(head) + size);
    std::memcpy(message.data(), &head, sizeof(head));
    if (size > 0) std::memcpy(message.data() + sizeof(head), data, size);
    leaving_.push_back(std::move(message));
  }
  std::optional<RawBytes> taken(std::int64_t tag) {
    auto& queue = arrived_[tag];
    if (queue.empty()) return std::nullopt;
    RawBytes message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

  // As much as goes without waiting.
  Expected<void> send_some() {
    while (!leaving_.empty()) {
      const RawBytes& message = leaving_.front();
      const auto sent = ::send(socket_, message.data() + sent_, message.size() - sent_,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return would_wait() ? Expected<void>{} : system_failure("send");
      sent_ += static_cast<std::size_t>(sent);
      if (sent_ < message.size()) return {};
      leaving_.pop_front();
      sent_ = 0;
    }
    return {};
  }
  void receive_some() {
    while (is_whole()) keep();
  }

 private:
  static bool would_wait() { return errno == EAGAIN || errno == EINTR; }

  // Whether the next head or message has come in full, with what goes without waiting.
  bool is_whole() {
    const std::size_t wanted = head_ ? static_cast<std::size_t>(head_->size) : sizeof(MessageHead);
    coming_.resize(wanted);
    if (got_ == wanted) return true;
    const auto got = ::recv(socket_, coming_.data() + got_, wanted - got_, MSG_DONTWAIT);
    // A rank that is done closes: that is nobody's failure but of who waits for it.
    closed_ = got == 0 || (got < 0 && !would_wait());
    if (got > 0) got_ += static_cast<std::size_t>(got);
    return got_ == wanted;
  }
  void keep() {
    got_ = 0;
    if (head_) {
      arrived_[head_->tag].push_back(std::exchange(coming_, {}));
      head_.reset();
      return;
    }
    head_.emplace();
    std::memcpy(&*head_, coming_.data(), sizeof(MessageHead));
    coming_.clear();
  }

  int socket_;
  bool closed_ = false;
  std::deque<RawBytes> leaving_;
  std::size_t sent_ = 0, got_ = 0;
  std::optional<MessageHead> head_;
  RawBytes coming_;
  std::map<std::int64_t, std::deque<RawBytes>> arrived_;
};

// ---- Meeting -----------------------------------------------------------------------------------

struct Addresses {
  explicit Addresses(const char* host, const char* port) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = host == nullptr ? AI_PASSIVE : 0;
    status = ::getaddrinfo(host, port, &hints, &first);
  }
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  addrinfo* first = nullptr;
  int status = 0;
};

int listening(const char* port) {
  const Addresses here(nullptr, port);
  if (here.first == nullptr) return -1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(socket, here.first->ai_addr, here.first->ai_addrlen) == 0 &&
      ::listen(socket, SOMAXCONN) == 0) {
    return socket;
  }
  ::close(socket);
  return -1;
}

int ready(int socket) {
  const int yes = 1;
  if (socket >= 0) ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return socket;
}

// Tries until the other one listens, or the time is up.
int connected(const char* host, const char* port, Clock::time_point until) {
  const Addresses there(host, port);
  while (there.first != nullptr) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket, there.first->ai_addr, there.first->ai_addrlen) == 0) return ready(socket);
    ::close(socket);
    if (Clock::now() > until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return -1;
}

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

int accepted(int listener, Clock::time_point until) {
  for (;;) {
    pollfd watched{listener, POLLIN, 0};
    if (::poll(&watched, 1, milliseconds_until(until)) == 0) return -1;
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0 || errno != EINTR) return ready(socket);
  }
}

// In full, before the time is up.
template <typename T>
bool moved(int socket, T& what, bool out, Clock::time_point until) {
  auto* bytes = reinterpret_cast<char*>(&what);
  for (std::size_t done = 0; done < sizeof(T);) {
    pollfd watched{socket, static_cast<short>(out ? POLLOUT : POLLIN), 0};
    if (::poll(&watched, 1, milliseconds_until(until)) == 0) return false;
    const auto now = out ? ::send(socket, bytes + done, sizeof(T) - done, MSG_NOSIGNAL)
                         : ::recv(socket, bytes + done, sizeof(T) - done, 0);
    if (now <= 0) return false;
    done += static_cast<std::size_t>(now);
  }
  return true;
}

// Where a rank listens.
struct Place {
  std::int32_t rank = 0;
  std::array<char, 64> host{}, port{};
};

Place place_of(int rank, int socket, int listener) {
  Place place{.rank = rank};
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket >= 0 && ::getsockname(socket, generic, &size) == 0) {
    ::getnameinfo(generic, size, place.host.data(), place.host.size(), nullptr, 0, NI_NUMERICHOST);
  }
  size = sizeof(address);
  if (::getsockname(listener, generic, &size) == 0) {
    ::getnameinfo(generic, size, nullptr, 0, place.port.data(), place.port.size(), NI_NUMERICSERV);
  }
  return place;
}

class Meeting {
 public:
  Meeting(const Rendezvous& at, Seconds timeout)
      : at_(at),
        timeout_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(timeout.value()))),
        until_(Clock::now() + timeout_),
        listener_(listening(at.rank == 0 ? at.port.c_str() : "0")),
        peers_(static_cast<std::size_t>(at.ranks)),
        places_(peers_.size()) {}
  ~Meeting() {
    if (listener_ >= 0) ::close(listener_);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  Expected<std::vector<Peer>> peers() {
    if (listener_ < 0) return tl::unexpected(system_failure("bind").error());
    auto met = at_.rank == 0 ? gather() : join();
    if (met) met = meet_each_other();
    if (!met) return tl::unexpected(met.error());
    return std::move(peers_);
  }

 private:
  Expected<void> never_came(const std::vector<int>& ranks) const {
    return failure("", fmt::format("{} of {} never came to {}:{}", ranks_listed(ranks), at_.ranks,
                                   at_.address, at_.port));
  }

  // Rank 0 learns where everyone is and tells everyone; or who never came, to those who did.
  Expected<void> gather() {
    std::vector<int> absent = all_but_first();
    while (!absent.empty()) {
      Peer peer(accepted(listener_, until_));
      Place place;
      if (peer.socket() < 0) break;
      if (!moved(peer.socket(), place, false, until_)) continue;  // somebody else's
      if (std::erase(absent, place.rank) == 0) continue;
      const auto rank = static_cast<std::size_t>(place.rank);
      places_[rank] = place;
      peers_[rank] = std::move(peer);
    }
    tell(absent);
    return absent.empty() ? Expected<void>{} : never_came(absent);
  }
  // How many are absent and who, or where everyone is.
  void tell(std::vector<int>& absent) {
    const auto until = Clock::now() + timeout_;
    auto count = static_cast<std::int32_t>(absent.size());
    for (const Peer& peer : peers_) {
      // Whoever does not hear it has gone, and says so itself or is found missing later.
      bool heard = peer.socket() >= 0 && moved(peer.socket(), count, true, until);
      for (int& rank : absent) heard = heard && moved(peer.socket(), rank, true, until);
      if (!absent.empty()) continue;
      for (Place& place : places_) heard = heard && moved(peer.socket(), place, true, until);
    }
  }
  std::vector<int> all_but_first() const {
    std::vector<int> ranks(peers_.size() - 1);
    std::iota(ranks.begin(), ranks.end(), 1);
    return ranks;
  }

  // Rank 0 may have begun to wait as late as it was reached, and then says who is missing.
  Expected<void> join() {
    constexpr std::chrono::seconds kToHear{2};
    Peer first(connected(at_.address.c_str(), at_.port.c_str(), until_));
    Place own = place_of(at_.rank, first.socket(), listener_);
    until_ = Clock::now() + timeout_ + kToHear;
    std::int32_t count = 0;
    if (first.socket() < 0 || !moved(first.socket(), own, true, until_) ||
        !moved(first.socket(), count, false, until_)) {
      return never_came({0});
    }
    std::vector<int> absent(static_cast<std::size_t>(std::clamp(count, 0, at_.ranks)));
    for (int& rank : absent) {
      if (!moved(first.socket(), rank, false, until_)) return never_came({0});
    }
    if (!absent.empty()) return never_came(absent);
    for (Place& place : places_) {
      if (!moved(first.socket(), place, false, until_)) return never_came({0});
    }
    peers_[0] = std::move(first);
    until_ = Clock::now() + timeout_;
    return {};
  }

  // A rank calls those before it, rank 0 apart, and is called by those after it.
  Expected<void> meet_each_other() {
    if (at_.rank == 0) return {};
    for (int rank = 1; rank < at_.rank; ++rank) {
      const Place& there = places_[static_cast<std::size_t>(rank)];
      Peer peer(connected(there.host.data(), there.port.data(), until_));
      std::int32_t own = at_.rank;
      if (peer.socket() < 0 || !moved(peer.socket(), own, true, until_)) {
        return never_came({rank});
      }
      peers_[static_cast<std::size_t>(rank)] = std::move(peer);
    }
    for (int n = at_.rank + 1; n < at_.ranks; ++n) {
      Peer peer(accepted(listener_, until_));
      std::int32_t rank = -1;
      if (peer.socket() < 0 || !moved(peer.socket(), rank, false, until_)) {
        return never_came({n});
      }
      if (rank <= at_.rank || rank >= at_.ranks) return never_came({n});
      peers_[static_cast<std::size_t>(rank)] = std::move(peer);
    }
    return {};
  }

  const Rendezvous& at_;
  Clock::duration timeout_;
  Clock::time_point until_;
  int listener_;
  std::vector<Peer> peers_;
  std::vector<Place> places_;
};

// ---- Talking
// --------------------------------------------------------------------------------------

class SocketTransport final : public Transport {
 public:
  SocketTransport(std::vector<Peer> peers, int rank, const RankLayout& layout,
                  std::atomic<RankCall>& call)
      : Transport(rank, static_cast<int>(peers.size())),
        peers_(std::move(peers)),
        layout_(layout),
        call_(call) {}

  // Each member adds up its part, in the order of members; so all have the same sum.
  Expected<void> all_reduce(Group group, float* numbers, int count, Reduction how) override {
    const Within within(call_, RankCall::all_reduce);
    const std::vector<int> members = members_of(group);
    const Counts counts = part_counts(static_cast<int>(members.size()), count);
    std::vector<float> mine(index(counts.front()));
    auto done = reduce(group, numbers, counts, mine.data(), how);
    return done ? spread(group, mine.data(), counts, numbers) : done;
  }
  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    const Within within(call_, RankCall::reduce_scatter);
    return reduce(group, all, counts, mine, Reduction::sum);
  }
  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    const Within within(call_, RankCall::all_gather);
    return spread(group, mine, counts, all);
  }
  Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    const Within within(call_, RankCall::all_to_all);
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
                      int count) override {
    const Within within(call_, RankCall::exchange_ring);
    const std::vector<int> members = members_of(group);
    const auto size = members.size();
    const auto self = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank()) -
                                               members.begin());
    const int next = members[(self + 1) % size], previous = members[(self + size - 1) % size];
    const bool on = way == RingWay::on;
    post(on ? next : previous, tag_of(group), mine, count);
    return take(on ? previous : next, tag_of(group), received, count);
  }
  Expected<void> send(int to, int way, const float* numbers, int count) override {
    const Within within(call_, RankCall::send);
    post(to, kMessages + way, numbers, count);
    return pump(0);
  }
  Expected<void> receive(int from, int way, float* numbers, int count) override {
    const Within within(call_, RankCall::receive);
    return take(from, kMessages + way, numbers, count);
  }
  Expected<void> wait_for_messages() override {
    const Within within(call_, RankCall::wait);
    for (;;) {
      const auto waiting = std::find_if(peers_.begin(), peers_.end(),
                                        [](const Peer& peer) { return peer.has_to_send(); });
      if (waiting == peers_.end()) return {};
      if (!waiting->is_there()) return gone(static_cast<int>(waiting - peers_.begin()));
      if (auto done = pump(-1); !done) return done;
    }
  }
  Expected<void> broadcast(std::string& bytes, int from) override {
    const Within within(call_, RankCall::broadcast);
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
  class Within {
   public:
    Within(std::atomic<RankCall>& where, RankCall call) : where_(where) { where_.store(call); }
    ~Within() { where_.store(RankCall::none); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    std::atomic<RankCall>& where_;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
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

  void post(int to, std::int64_t tag, const float* numbers, int count) {
    const std::size_t size = index(count) * sizeof(float);
    if (to != rank()) return peers_[index(to)].post(tag, numbers, size);
    const auto* bytes = reinterpret_cast<const char*>(numbers);
    own_[tag].emplace_back(bytes, bytes + size);
  }
  Expected<void> take(int from, std::int64_t tag, float* numbers, int count) {
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

  Expected<void> gone(int peer) const {
    return failure("", fmt::format("{} failed: rank {} {}", name_of(call_.load()), peer, kHasGone));
  }

  // Sends and receives what goes; waits at most so many milliseconds for that (−1: for ever).
  Expected<void> pump(int wait) {
    std::vector<pollfd> watched;
    std::vector<Peer*> whose;
    watched.reserve(peers_.size());
    whose.reserve(peers_.size());
    for (Peer& peer : peers_) {
      if (!peer.is_there()) continue;
      const auto events = static_cast<short>(peer.has_to_send() ? POLLIN | POLLOUT : POLLIN);
      watched.push_back({peer.socket(), events, 0});
      whose.push_back(&peer);
    }
    if (::poll(watched.data(), watched.size(), wait) < 0 && errno != EINTR) {
      return system_failure("poll");
    }
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if ((watched[i].revents & POLLOUT) != 0) {
        if (auto done = whose[i]->send_some(); !done) return done;
      }
      if ((watched[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) whose[i]->receive_some();
    }
    return {};
  }

  std::vector<Peer> peers_;
  std::map<std::int64_t, std::deque<RawBytes>> own_;
  const RankLayout& layout_;
  std::atomic<RankCall>& call_;
};

std::optional<int> number_in(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* text = std::getenv(name);
  int number = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  return error == std::errc{} && *end == '\0' ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<Rendezvous> rendezvous_in_environment() {
  const auto rank = number_in("RANK"), ranks = number_in("WORLD_SIZE");
  if (!rank || !ranks || *rank < 0 || *rank >= *ranks) return std::nullopt;
  Rendezvous at{.rank = *rank, .ranks = *ranks};
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread
  if (const char* address = std::getenv("MASTER_ADDR")) at.address = address;
  if (const char* port = std::getenv("MASTER_PORT")) at.port = port;
  // NOLINTEND(concurrency-mt-unsafe)
  return at;
}

std::optional<Error> wrong_rendezvous() {
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread
  const char *rank = std::getenv("RANK"), *ranks = std::getenv("WORLD_SIZE");
  if (rank == nullptr || ranks == nullptr) return std::nullopt;
  if (!rendezvous_in_environment()) {
    return Error{"RANK", fmt::format("found \"{}\" with WORLD_SIZE \"{}\"; allowed: 0 to "
                                     "WORLD_SIZE - 1, or neither of them",
                                     rank, ranks)};
  }
  const char* port = std::getenv("MASTER_PORT");
  // NOLINTEND(concurrency-mt-unsafe)
  const auto number = number_in("MASTER_PORT");
  if (port == nullptr || (number && *number >= 1 && *number <= 65535)) return std::nullopt;
  return Error{"MASTER_PORT", fmt::format("found \"{}\"; allowed: 1 to 65535", port)};
}

Expected<std::unique_ptr<Transport>> make_socket_transport(const Rendezvous& at,
                                                           const RankLayout& layout,
                                                           std::atomic<RankCall>& call,
                                                           Seconds timeout) {
  auto peers = Meeting(at, timeout).peers();
  if (!peers) return tl::unexpected(peers.error());
  return std::make_unique<SocketTransport>(*std::move(peers), at.rank, layout, call);
}

}  // namespace trainyard
