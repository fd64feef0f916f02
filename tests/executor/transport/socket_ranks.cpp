#include "tests/executor/transport/socket_ranks.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "executor/transport/socket_transport.h"

namespace trainyard {
namespace {

// A TCP port that nobody listens on.
std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ::bind(socket, generic, size);
  ::getsockname(socket, generic, &size);
  ::close(socket);
  return std::to_string(ntohs(address.sin_port));
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
