// Workers that answer what they were not asked, and clients that do not know the secret of the
// listener.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <sstream>
#include <thread>

#include "scenarios/sweep/answer.h"
#include "scenarios/sweep/workers/lease_queue.h"
#include "scenarios/sweep/workers/pool.h"
#include "scenarios/sweep/workers/remote.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kSizes = R"("vary": [
    { "key": "cluster.nodes", "from": 1, "to": 32, "steps": 32 },
    { "key": "plan.micro_batch", "values": [1, 2] } ])";

using Spoil = std::function<void(AnsweredLease&)>;

// Answers the first lease with a spoiled answer.
void serve_badly(const Sweep& sweep, int socket, const Spoil& spoil) {
  Lease lease;
  if (::recv(socket, &lease, sizeof(lease), MSG_WAITALL) != sizeof(lease)) return;
  PointAnswerer answerer(sweep);
  auto answered = answer_lease(answerer, lease, nullptr);
  spoil(*answered);
  send_all(socket, bytes_of(*answered));
}

// Runs such a worker beside an honest one, and returns what is in the file then.
std::string answered_beside(const Spoil& spoil, const Sweep& sweep, const fs::path& file) {
  std::array<int, 2> bad{}, good{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, bad.data()), 0);
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, good.data()), 0);
  std::thread honest([&] { serve_leases(sweep, good[1]); });
  std::thread dishonest([&] { serve_badly(sweep, bad[1], spoil); });
  {
    WorkerPool pool;
    pool.add({.socket = bad[0]});
    pool.add({.socket = good[0]});
    auto store = SweepStore::open(file, sweep, kSession);
    const auto outcome = pool.run(sweep, *store, {});
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    if (outcome) {
      EXPECT_TRUE(outcome->complete());
      EXPECT_EQ(outcome->lost_workers, 1);
    }
  }
  honest.join();
  dishonest.join();
  ::close(good[1]);
  ::close(bad[1]);
  return dump(file);
}

TEST(WorkerPool, LosesAWorkerThatAnswersOtherPointsThanItsLease) {
  const auto sweep = sweep_from(kSizes);
  ASSERT_TRUE(sweep.has_value());
  const fs::path whole = sweep_folder() / "whole.sqlite";
  run(*sweep, whole);
  const std::string right = dump(whole);
  const std::vector<std::pair<std::string, Spoil>> bad = {
      {"before", [](AnsweredLease& answered) { answered.rows.front().point = -1; }},
      {"behind", [](AnsweredLease& answered) { answered.rows.back().point = 1000; }},
      {"twice", [](AnsweredLease& answered) { answered.rows.push_back(answered.rows.back()); }},
      {"status",
       [](AnsweredLease& answered) { answered.rows.front().status = static_cast<PointStatus>(7); }},
      {"lease", [](AnsweredLease& answered) { ++answered.lease.first; }}};
  for (const auto& [name, spoil] : bad) {
    EXPECT_EQ(answered_beside(spoil, *sweep, sweep_folder() / (name + ".sqlite")), right) << name;
  }
}

TEST(LeaseQueue, HandsOutWhatAWorkerDiedOnPointByPointBehindAllElse) {
  LeaseQueue queue({{0, 4}, {10, 3}}, 2);
  EXPECT_EQ(queue.next(), (Lease{0, 2}));
  EXPECT_EQ(queue.next(), (Lease{2, 2}));
  EXPECT_TRUE(queue.lose({2, 2}));
  queue.give_back({0, 2});
  std::vector<Lease> rest;
  while (const auto lease = queue.next()) rest.push_back(*lease);
  EXPECT_EQ(rest, (std::vector<Lease>{{0, 2}, {10, 2}, {12, 1}, {2, 1}, {3, 1}}));
}

TEST(LeaseQueue, GivesUpAPointThatTwoWorkersDiedOn) {
  LeaseQueue queue({{0, 3}}, 1);
  EXPECT_TRUE(queue.lose(queue.next().value()));
  EXPECT_TRUE(queue.lose(queue.next().value()));
  EXPECT_EQ(queue.next(), (Lease{2, 1}));
  EXPECT_EQ(queue.next(), (Lease{0, 1}));
  EXPECT_FALSE(queue.lose({0, 1}));
  EXPECT_EQ(queue.next(), (Lease{1, 1}));
  EXPECT_EQ(queue.next(), std::nullopt);
}

// Answers leases until the point `deadly`, where it dies.
void serve_until(const Sweep& sweep, int socket, std::int64_t deadly) {
  PointAnswerer answerer(sweep);
  Lease lease;
  while (::recv(socket, &lease, sizeof(lease), MSG_WAITALL) == sizeof(lease)) {
    if (deadly >= lease.first && deadly < lease.first + lease.count) break;
    send_all(socket, bytes_of(*answer_lease(answerer, lease, nullptr)));
  }
  ::close(socket);
}

// Runs a sweep among `workers` workers, with one point that kills a worker.
Expected<SweepOutcome> answered_by(int workers, const Sweep& sweep, std::int64_t deadly,
                                   const fs::path& file) {
  std::vector<std::jthread> threads;  // end when the pool does
  WorkerPool pool;
  for (int i = 0; i < workers; ++i) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    pool.add({.socket = ends[0]});
    threads.emplace_back(
        [&sweep, socket = ends[1], deadly] { serve_until(sweep, socket, deadly); });
  }
  auto store = SweepStore::open(file, sweep, kSession);
  return pool.run(sweep, *store, {});
}

// 64 points are leased in pairs among three workers, and one by one among 40.
TEST(WorkerPool, LosesTwoWorkersToAPointThatKillsThemAndRefusesIt) {
  const auto sweep = sweep_from(kSizes);
  ASSERT_TRUE(sweep.has_value());
  const fs::path whole = sweep_folder() / "whole.sqlite";
  run(*sweep, whole);
  std::istringstream right(dump(whole));
  for (const int workers : {3, 40}) {
    const fs::path file = sweep_folder() / fmt::format("{}.sqlite", workers);
    const auto outcome = answered_by(workers, *sweep, 7, file);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_TRUE(outcome->complete());
    EXPECT_EQ(outcome->lost_workers, 2);
    right.clear();
    right.seekg(0);
    std::istringstream found(dump(file));
    std::string expected, line;
    for (int point = 0; std::getline(right, expected); ++point) {
      ASSERT_TRUE(std::getline(found, line));
      if (point != 7) {
        EXPECT_EQ(line, expected);
        continue;
      }
      EXPECT_THAT(line, HasSubstr(R"("note":"two workers died on it")"));
      EXPECT_THAT(line, HasSubstr(R"("status":"refused")"));
      EXPECT_THAT(line, HasSubstr(R"("overrides":{"cluster.nodes":)"));
    }
  }
}

TEST(WorkerListener, LetsInWhoKnowsTheSecretAndWatchesThem) {
  const auto listener = WorkerListener::open();
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  std::string wrong = listener->address();
  wrong.front() = wrong.front() == '0' ? '1' : '0';
  Expected<int> stranger = 0;
  Expected<int> worker = 0;
  std::thread others([&] {
    stranger = connect_to_sweep(wrong);
    worker = connect_to_sweep(listener->address());
  });
  const WorkerPool pool = listener->accept(1, std::chrono::minutes(1));
  others.join();
  EXPECT_FALSE(stranger.has_value());
  ASSERT_TRUE(worker.has_value()) << worker.error().message;
  ASSERT_EQ(pool.workers().size(), 1u);
  // A wait for an answer ends like a silent connection: after 20 s, then three probes 4 s apart.
  for (const int socket : {pool.workers().front().socket, *worker}) {
    int milliseconds = 0;
    socklen_t size = sizeof(milliseconds);
    EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
    EXPECT_EQ(milliseconds, 32'000);
  }
  ::close(*worker);
}

}  // namespace
}  // namespace trainyard
