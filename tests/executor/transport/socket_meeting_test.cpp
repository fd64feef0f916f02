// How ranks that use TCP find rank 0, and what they say if they cannot.
#include "executor/transport/socket_meeting.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <list>
#include <string>
#include <thread>

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

Rendezvous second_of_two(const std::string& address, const std::string& port) {
  return {.rank = 1, .ranks = 2, .address = address, .port = port};
}

// Names below .invalid have no address, anywhere (RFC 2606).
TEST(SocketMeeting, SaysThatTheNameOfRankZeroHasNoAddress) {
  const auto met = met_peers(second_of_two("no-such-host.invalid", "29500"), Seconds(0.5));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().where, "MASTER_ADDR");
  const std::string& message = met.error().message;
  const std::string begin = R"(found "no-such-host.invalid", which has no address: )";
  ASSERT_TRUE(message.starts_with(begin)) << message;
  const std::string why = message.substr(begin.size());
  // The first is the error with a network, the second the one without.
  EXPECT_TRUE(why == ::gai_strerror(EAI_NONAME) || why == ::gai_strerror(EAI_AGAIN)) << why;
}

// Another listener has the port already.
TEST(SocketMeeting, SaysWhichRankCannotListenWhere) {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(taken, generic, size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ::getsockname(taken, generic, &size);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const auto met =
      met_peers({.rank = 0, .ranks = 2, .address = "127.0.0.1", .port = port}, Seconds(0.5));
  ::close(taken);
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().where, "MASTER_PORT");
  const std::string& message = met.error().message;
  EXPECT_TRUE(message.starts_with("rank 0 of 2 cannot listen on ")) << message;
  // The system's message, in the language of the locale.
  EXPECT_TRUE(message.ends_with(", port " + port + ": " + std::strerror(EADDRINUSE))) << message;
}

// Another service has the port. Its answer is not taken for a rank's, whatever numbers it contains.
TEST(SocketMeeting, SaysThatWhatAnswersIsNoRankZero) {
  for (const std::string& words :
       {std::string("HTTP/1.1 400 Bad Request"), std::string(1000, '\0')}) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener, generic, size), 0);
    ASSERT_EQ(::listen(listener, 1), 0);
    ::getsockname(listener, generic, &size);
    auto service = std::async(std::launch::async, [listener, &words] {
      const int caller = ::accept(listener, nullptr, nullptr);
      (void)::send(caller, words.data(), words.size(), MSG_NOSIGNAL);
      return caller;
    });
    const std::string port = std::to_string(ntohs(address.sin_port));
    const auto met = met_peers(second_of_two("127.0.0.1", port), Seconds(5));
    ::close(service.get());
    ::close(listener);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().message,
              "what answers rank 1 of 2 at 127.0.0.1:" + port + " is not rank 0 of its run");
  }
}

// The name may become known only when its host starts, so no rank gives up before the time is up.
TEST(SocketMeeting, AsksForTheNameUntilTheTimeIsUp) {
  const auto begin = Clock::now();
  EXPECT_FALSE(met_peers(second_of_two("no-such-host.invalid", "29500"), Seconds(0.5)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(500));
}

// Listens but accepts no connections, so that a further one is not answered.
class SilentHost {
 public:
  SilentHost() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    (void)::bind(listener_.socket(), generic, size);
    ::listen(listener_.socket(), 0);
    ::getsockname(listener_.socket(), generic, &size);
    port_ = std::to_string(ntohs(address.sin_port));
    for (int i = 0; i < 8; ++i) {
      const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      callers_.emplace_back(caller);
      (void)::connect(caller, generic, size);
    }
  }
  const std::string& port() const { return port_; }

 private:
  SocketPeer listener_;
  std::list<SocketPeer> callers_;
  std::string port_;
};

TEST(SocketMeeting, WaitsNoLongerForASilentHostThanItIsTold) {
  const SilentHost host;
  auto met = std::async(std::launch::async, [&] {
    return met_peers(second_of_two("127.0.0.1", host.port()), Seconds(0.5));
  });
  // The system itself would give up only after two minutes.
  ASSERT_EQ(met.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  const auto peers = met.get();
  ASSERT_FALSE(peers);
  EXPECT_EQ(peers.error().message, "rank 0 of 2 never came to 127.0.0.1:" + host.port());
}

// ---- Strangers ----------------------------------------------------------------------------------

// A port that nobody listens on.
std::string unused_port() {
  const SocketPeer socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  (void)::bind(socket.socket(), generic, size);
  ::getsockname(socket.socket(), generic, &size);
  return std::to_string(ntohs(address.sin_port));
}

// A connection of something that is no rank, as soon as the port has a listener.
SocketPeer stranger_at(const std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  for (;;) {
    SocketPeer stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(stranger.socket(), generic, sizeof(address)) == 0) return stranger;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Whether two ranks meet within this time if a stranger has come to rank 0 before rank 1 and said
// `words`.
bool meet_beside_a_stranger(const std::string& words, std::chrono::seconds within) {
  const std::string port = unused_port();
  const auto begin = Clock::now();
  auto first = std::async(std::launch::async, [&] {
    return met_peers({.rank = 0, .ranks = 2, .address = "127.0.0.1", .port = port}, Seconds(60));
  });
  const SocketPeer stranger = stranger_at(port);
  (void)::send(stranger.socket(), words.data(), words.size(), MSG_NOSIGNAL);
  const auto second =
      met_peers(second_of_two("127.0.0.1", port), Seconds(static_cast<double>(within.count())));
  const bool met = first.get() && second;
  return met && Clock::now() - begin < within;
}

TEST(SocketMeeting, DoesNotWaitForAStrangerThatSaysNothing) {
  EXPECT_TRUE(meet_beside_a_stranger("", std::chrono::seconds(30)));
}

// The first number of the stranger happens to be that of a rank.
TEST(SocketMeeting, TakesNoStrangerForARank) {
  std::string words(200, '\0');
  words.front() = 1;
  EXPECT_TRUE(meet_beside_a_stranger(words, std::chrono::seconds(30)));
}

// A signal without effect ends neither a wait nor its time limit.
TEST(SocketMeeting, WaitsNoLongerThanItIsToldWhereASignalComes) {
  const auto before = std::signal(SIGUSR1, [](int) {});
  const std::string port = unused_port();
  std::promise<pthread_t> waiting;
  auto met = std::async(std::launch::async, [&] {
    waiting.set_value(::pthread_self());
    return met_peers({.rank = 0, .ranks = 2, .address = "127.0.0.1", .port = port}, Seconds(1));
  });
  const pthread_t thread = waiting.get_future().get();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::pthread_kill(thread, SIGUSR1);
  }
  const auto ended = met.wait_for(std::chrono::seconds(30));
  EXPECT_EQ(ended, std::future_status::ready);
  if (ended != std::future_status::ready) (void)stranger_at(port);  // so that the test ends
  const auto peers = met.get();
  std::signal(SIGUSR1, before);
  ASSERT_FALSE(peers);
  EXPECT_EQ(peers.error().message, "rank 1 of 2 never came to 127.0.0.1:" + port);
}

}  // namespace
}  // namespace trainyard
