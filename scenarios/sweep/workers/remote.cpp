#include "scenarios/sweep/workers/remote.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHandshake{5};
constexpr std::size_t kSecret = 32;  // hexadecimal digits
constexpr std::string_view kWelcome = "trainyard sweep\n";

Error system_error(const char* what) {
  return {"sweep", fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

Expected<std::string> new_secret() {
  std::array<unsigned char, kSecret / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return tl::unexpected(system_error("no secret for the workers"));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// The addresses of this host's interfaces, the loopback last.
std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {"127.0.0.1"};
  std::vector<std::string> addresses;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
                        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    sockaddr_in address{};
    std::memcpy(&address, at->ifa_addr, sizeof(address));
    std::array<char, INET_ADDRSTRLEN> text{};
    if (::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) != nullptr) {
      addresses.emplace_back(text.data());
    }
  }
  ::freeifaddrs(first);
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof(value));
}

// Notices a machine that is gone: after 20 s of silence come three probes; data that was sent gets
// the same time to be acknowledged, because probes are not sent then.
void watch(int socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 4);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 32'000);  // ms
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

void limit_waiting(int socket, std::chrono::seconds time) {
  const timeval limit{.tv_sec = time.count(), .tv_usec = 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof(limit));
  }
}

bool hears(int socket, std::string_view expected) {
  std::string heard(expected.size(), '\0');
  const ssize_t count = ::recv(socket, heard.data(), heard.size(), MSG_WAITALL);
  return count == static_cast<ssize_t>(expected.size()) && heard == expected;
}

// Both sides prove that they know the secret, the worker first.
bool greets_worker(int socket, const std::string& secret) {
  limit_waiting(socket, kHandshake);
  const bool known =
      hears(socket, secret) && send_all(socket, fmt::format("{}{}", kWelcome, secret));
  limit_waiting(socket, std::chrono::seconds(0));
  watch(socket);
  return known;
}
bool greets_listener(int socket, const std::string& secret) {
  const bool known =
      send_all(socket, secret) && hears(socket, fmt::format("{}{}", kWelcome, secret));
  limit_waiting(socket, std::chrono::seconds(0));
  watch(socket);
  return known;
}

sockaddr_in socket_address(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = htons(port);
  return address;
}

// Returns −1 if nobody answers.
int connected(const std::string& host, std::uint16_t port) {
  in_addr number{};
  if (::inet_pton(AF_INET, host.c_str(), &number) != 1) return -1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  limit_waiting(socket, kHandshake);  // limits connect, too
  const sockaddr_in address = socket_address(number.s_addr, port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket;
  }
  ::close(socket);
  return -1;
}

}  // namespace

Expected<WorkerListener> WorkerListener::open() {
  auto secret = new_secret();
  if (!secret) return tl::unexpected(secret.error());
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return tl::unexpected(system_error("no socket for the workers"));
  WorkerListener listener(socket, std::move(*secret), "");
  sockaddr_in address = socket_address(htonl(INADDR_ANY), 0);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  const bool listens = ::bind(socket, raw, size) == 0 && ::listen(socket, SOMAXCONN) == 0 &&
                       ::getsockname(socket, raw, &size) == 0;
  if (!listens) return tl::unexpected(system_error("no port for the workers"));
  listener.address_ = fmt::format("{} {} {}", listener.secret_, ntohs(address.sin_port),
                                  fmt::join(own_addresses(), " "));
  return listener;
}

WorkerListener::WorkerListener(WorkerListener&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      secret_(std::move(other.secret_)),
      address_(std::move(other.address_)) {}

WorkerListener::~WorkerListener() {
  if (socket_ >= 0) ::close(socket_);
}

WorkerPool WorkerListener::accept(int workers, std::chrono::milliseconds patience) const {
  WorkerPool pool;
  const auto end = Clock::now() + patience;
  while (static_cast<int>(pool.workers().size()) < workers) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) break;
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    if (greets_worker(socket, secret_)) {
      pool.add({.socket = socket});
    } else {
      ::close(socket);
    }
  }
  return pool;
}

Expected<int> connect_to_sweep(const std::string& address) {
  std::istringstream words(address);
  std::string secret, host;
  std::uint16_t port = 0;
  words >> secret >> port;
  std::string tried;
  while (words >> host) {
    const int socket = connected(host, port);
    if (socket >= 0 && greets_listener(socket, secret)) return socket;
    if (socket >= 0) ::close(socket);
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", host);
  }
  return failure("sweep", fmt::format("rank 0 cannot be reached at port {} of {}", port, tried));
}

}  // namespace trainyard
