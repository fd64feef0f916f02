#include "tests/executor/transport/socket_ranks.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "executor/transport/socket_transport.h"

namespace trainyard {
namespace {

bool is_free(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return bound;
}

// A TCP port that nobody listens on. Below those that the system gives to connections (from 32768
// on): one of these may be taken, by another test, before a rank listens on it.
std::string free_port() {
  constexpr int kFirst = 20000, kPorts = 12000;
  static std::atomic<int> asked{0};
  int port = 0;
  do {
    port = kFirst + (::getpid() * 16 + asked++) % kPorts;
  } while (!is_free(port));
  return std::to_string(port);
}

}  // namespace

void on_socket_ranks(int ranks, const std::function<void(Transport&)>& work) {
  const std::string port = free_port();
  Plan plan;
  plan.data_parallel = ranks;
  const RankLayout layout(plan, 1);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::atomic<RankCall> call{RankCall::none};
      const Rendezvous at{.rank = rank, .ranks = ranks, .address = "127.0.0.1", .port = port};
      const auto transport = make_socket_transport(at, layout, call, Seconds(60));
      ASSERT_TRUE(transport) << transport.error().message;
      work(**transport);
      (void)(*transport)->wait_for_messages();  // which others still wait for
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace trainyard
