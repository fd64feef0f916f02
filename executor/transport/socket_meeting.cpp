#include "executor/transport/socket_meeting.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "executor/transport/rank_call.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

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
  const char* why() const {
    return status == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(status);
  }
  addrinfo* first = nullptr;
  int status = 0;
};

// A socket; below 0: the negative error number.
int listening(const char* port) {
  const Addresses here(nullptr, port);
  if (here.first == nullptr) return -EADDRNOTAVAIL;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(socket, here.first->ai_addr, here.first->ai_addrlen) == 0 &&
      ::listen(socket, SOMAXCONN) == 0) {
    return socket;
  }
  const int error = errno;
  ::close(socket);
  return -error;
}

int ready(int socket) {
  const int yes = 1;
  if (socket >= 0) ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return socket;
}

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

// The address of a host whose name may only be known once it has started: asks until the time is
// up.
Expected<sockaddr_in> address_of(const char* host, const char* port, Clock::time_point until) {
  constexpr std::chrono::milliseconds kAskAgain{200};
  for (;;) {
    const Addresses there(host, port);
    if (there.status == 0) {
      sockaddr_in address{};
      std::memcpy(&address, there.first->ai_addr, sizeof(address));
      return address;
    }
    const auto now = Clock::now();
    if (now >= until) {
      return failure("MASTER_ADDR",
                     fmt::format("found \"{}\", which has no address: {}", host, there.why()));
    }
    std::this_thread::sleep_until(std::min(until, now + kAskAgain));
  }
}

// Limits how long connect() waits too, for a host may not answer.
void limit_waiting(int socket, Clock::time_point until) {
  const suseconds_t milliseconds = std::max(1, milliseconds_until(until));  // 0 would be no limit
  const timeval limit{.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

// Tries until the other side listens; −1: the time is up.
int connected(const sockaddr_in& there, Clock::time_point until) {
  for (;;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_waiting(socket, until);
    const auto* generic = reinterpret_cast<const sockaddr*>(&there);
    if (::connect(socket, generic, sizeof(there)) == 0) return ready(socket);
    ::close(socket);
    if (Clock::now() > until) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Whether the socket can be read or written before the time is up; signals do not end the wait.
bool comes_to(int socket, short events, Clock::time_point until) {
  for (;;) {
    pollfd watched{socket, events, 0};
    const int found = ::poll(&watched, 1, milliseconds_until(until));
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

int accepted(int listener, Clock::time_point until) {
  while (comes_to(listener, POLLIN, until)) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0 || (errno != EINTR && errno != ECONNABORTED)) return ready(socket);
  }
  return -1;
}

// Sends or receives `what` in full; false: the time is up or the peer has gone.
template <typename T>
bool moved(int socket, T& what, bool out, Clock::time_point until) {
  auto* bytes = reinterpret_cast<char*>(&what);
  for (std::size_t done = 0; done < sizeof(T);) {
    if (!comes_to(socket, static_cast<short>(out ? POLLOUT : POLLIN), until)) return false;
    const auto now = out ? ::send(socket, bytes + done, sizeof(T) - done, MSG_NOSIGNAL)
                         : ::recv(socket, bytes + done, sizeof(T) - done, 0);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    done += static_cast<std::size_t>(now);
  }
  return true;
}

// Marks the messages of a rank, to tell it from a stranger that connects.
using Mark = std::array<char, 16>;
constexpr Mark kMark = {"trainyard rank"};

// Where a rank listens.
struct Place {
  Mark mark = kMark;
  std::int32_t rank = 0;
  std::array<char, 64> host{}, port{};
};

// A rank's number; from rank 0, the number of absent ranks.
struct Word {
  Mark mark = kMark;
  std::int32_t number = 0;
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

// How long a stranger that says nothing can hold the meeting up.
constexpr std::chrono::seconds kToSayWho{5};

// The next connection that introduces itself as a rank. Without a socket: none did before the time
// was up.
template <typename Words>
SocketPeer next_rank(int listener, Words& words, Clock::time_point until) {
  for (;;) {
    SocketPeer peer(accepted(listener, until));
    if (peer.socket() < 0) return peer;
    const auto limit = std::min(until, Clock::now() + kToSayWho);
    if (moved(peer.socket(), words, false, limit) && words.mark == kMark) return peer;
  }
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

  Expected<std::vector<SocketPeer>> peers() {
    if (listener_ < 0) return tl::unexpected(cannot_listen());
    auto met = at_.rank == 0 ? gather() : join();
    if (met) met = meet_each_other();
    if (!met) return tl::unexpected(met.error());
    return std::move(peers_);
  }

 private:
  Error cannot_listen() const {
    std::array<char, 64> host{};
    ::gethostname(host.data(), host.size() - 1);
    return {"MASTER_PORT",
            fmt::format("rank {} of {} cannot listen on {}, port {}: {}", at_.rank, at_.ranks,
                        host.data(), at_.rank == 0 ? at_.port : "of the system's choice",
                        std::strerror(-listener_))};
  }
  Expected<void> never_came(const std::vector<int>& ranks) const {
    return failure("", fmt::format("{} of {} never came to {}:{}", ranks_listed(ranks), at_.ranks,
                                   at_.address, at_.port));
  }

  Expected<void> no_rank() const {
    return failure("", fmt::format("what answers rank {} of {} at {}:{} is not rank 0 of its run",
                                   at_.rank, at_.ranks, at_.address, at_.port));
  }

  // Rank 0 learns where every rank listens and tells it to all; or who never came, to those who
  // did.
  Expected<void> gather() {
    std::vector<int> absent = all_from(1);
    while (!absent.empty()) {
      Place place;
      SocketPeer peer = next_rank(listener_, place, until_);
      if (peer.socket() < 0) break;
      if (std::erase(absent, place.rank) == 0) continue;
      const auto rank = static_cast<std::size_t>(place.rank);
      places_[rank] = place;
      peers_[rank] = std::move(peer);
    }
    tell(absent);
    return absent.empty() ? Expected<void>{} : never_came(absent);
  }
  // Tells each rank how many are absent and which, or where every rank listens.
  void tell(std::vector<int>& absent) {
    const auto until = Clock::now() + timeout_;
    Word count{.number = static_cast<std::int32_t>(absent.size())};
    for (const SocketPeer& peer : peers_) {
      // Whoever does not hear it has gone, and says so itself or is found missing later.
      bool heard = peer.socket() >= 0 && moved(peer.socket(), count, true, until);
      for (int& rank : absent) heard = heard && moved(peer.socket(), rank, true, until);
      if (!absent.empty()) continue;
      for (Place& place : places_) heard = heard && moved(peer.socket(), place, true, until);
    }
  }
  std::vector<int> all_from(int rank) const {
    std::vector<int> ranks(peers_.size() - static_cast<std::size_t>(rank));
    std::iota(ranks.begin(), ranks.end(), rank);
    return ranks;
  }

  // The timeout begins anew when rank 0 is reached, which may have started to wait only then, with
  // two seconds more to hear from it who is missing.
  Expected<void> join() {
    constexpr std::chrono::seconds kToHear{2};
    const auto there = address_of(at_.address.c_str(), at_.port.c_str(), until_);
    if (!there) return tl::unexpected(there.error());
    SocketPeer first(connected(*there, until_));
    Place own = place_of(at_.rank, first.socket(), listener_);
    until_ = Clock::now() + timeout_ + kToHear;
    Word count;
    if (first.socket() < 0 || !moved(first.socket(), own, true, until_) ||
        !moved(first.socket(), count, false, until_)) {
      return never_came({0});
    }
    if (count.mark != kMark || count.number < 0 || count.number >= at_.ranks) return no_rank();
    std::vector<int> absent(static_cast<std::size_t>(count.number));
    for (int& rank : absent) {
      if (!moved(first.socket(), rank, false, until_)) return never_came({0});
      if (rank <= 0 || rank >= at_.ranks) return no_rank();
    }
    if (!absent.empty()) return never_came(absent);
    for (Place& place : places_) {
      if (!moved(first.socket(), place, false, until_)) return never_came({0});
    }
    peers_[0] = std::move(first);
    until_ = Clock::now() + timeout_;
    return {};
  }

  // Connects to the ranks before this one except rank 0, and is called by those after it.
  Expected<void> meet_each_other() {
    if (at_.rank == 0) return {};
    for (int rank = 1; rank < at_.rank; ++rank) {
      const Place& there = places_[static_cast<std::size_t>(rank)];
      const auto address = address_of(there.host.data(), there.port.data(), until_);
      SocketPeer peer(address ? connected(*address, until_) : -1);
      Word own{.number = at_.rank};
      if (peer.socket() < 0 || !moved(peer.socket(), own, true, until_)) {
        return never_came({rank});
      }
      peers_[static_cast<std::size_t>(rank)] = std::move(peer);
    }
    for (std::vector<int> absent = all_from(at_.rank + 1); !absent.empty();) {
      Word who;
      SocketPeer peer = next_rank(listener_, who, until_);
      if (peer.socket() < 0) return never_came(absent);
      if (std::erase(absent, who.number) == 0) continue;
      peers_[static_cast<std::size_t>(who.number)] = std::move(peer);
    }
    return {};
  }

  const Rendezvous& at_;
  Clock::duration timeout_;
  Clock::time_point until_;
  int listener_;
  std::vector<SocketPeer> peers_;
  std::vector<Place> places_;
};

}  // namespace

Expected<std::vector<SocketPeer>> met_peers(const Rendezvous& at, Seconds timeout) {
  return Meeting(at, timeout).peers();
}

}  // namespace trainyard
