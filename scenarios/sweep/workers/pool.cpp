#include "scenarios/sweep/workers/pool.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "model/interrupted.h"
#include "scenarios/sweep/answer.h"

namespace trainyard {
namespace {

constexpr int kPatience = 100;  // ms between checks for an interruption

template <typename Value>
void append(std::string& bytes, const Value& value) {
  std::array<char, sizeof(Value)> raw{};
  std::memcpy(raw.data(), &value, sizeof(Value));
  bytes.append(raw.data(), raw.size());
}

void append_text(std::string& bytes, const std::string& text) {
  append(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

template <typename Value>
bool take(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof(Value)) return false;
  std::memcpy(&value, bytes.data(), sizeof(Value));
  bytes.remove_prefix(sizeof(Value));
  return true;
}

bool take_text(std::string_view& bytes, std::string& text) {
  std::uint64_t size = 0;
  if (!take(bytes, size) || bytes.size() < size) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

bool take_row(std::string_view& bytes, PointRow& row) {
  return take(bytes, row.point) && take(bytes, row.status) && take_text(bytes, row.overrides) &&
         take_text(bytes, row.note) && take_text(bytes, row.plan) && take(bytes, row.figures);
}

// Whether the rows are points of the lease, in order; the constraints may exclude some.
bool answers_lease(const AnsweredLease& answered) {
  const Lease& lease = answered.lease;
  std::int64_t next = 0;  // of the lease
  return std::ranges::all_of(answered.rows, [&](const PointRow& row) {
    const bool known = static_cast<std::size_t>(row.status) < kStatusNames.size();
    const bool here = row.point >= lease.first + next && row.point < lease.first + lease.count;
    if (!known || !here) return false;
    next = row.point - lease.first + 1;
    return true;
  });
}

// None at the end, when the other side is gone.
std::optional<Lease> receive_lease(int socket) {
  Lease lease;
  const ssize_t count = ::recv(socket, &lease, sizeof(lease), MSG_WAITALL);
  return count == sizeof(lease) ? std::optional(lease) : std::nullopt;
}

}  // namespace

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void serve_leases(const Sweep& sweep, int socket) {
  PointAnswerer answerer(sweep);
  while (const auto lease = receive_lease(socket)) {
    const auto answered = answer_lease(answerer, *lease, nullptr);
    if (!answered || !send_all(socket, bytes_of(*answered))) break;
  }
}

// Begins with the length of the rest.
std::string bytes_of(const AnsweredLease& answered) {
  std::string rest;
  append(rest, answered.lease);
  append(rest, static_cast<std::uint64_t>(answered.rows.size()));
  for (const PointRow& row : answered.rows) {
    append(rest, row.point);
    append(rest, row.status);
    append_text(rest, row.overrides);
    append_text(rest, row.note);
    append_text(rest, row.plan);
    append(rest, row.figures);
  }
  std::string bytes;
  append(bytes, static_cast<std::uint64_t>(rest.size()));
  return bytes + rest;
}

std::optional<AnsweredLease> answered_of(std::string_view bytes) {
  std::uint64_t size = 0;
  std::uint64_t rows = 0;
  AnsweredLease answered;
  const bool begins = take(bytes, size) && bytes.size() == size && take(bytes, answered.lease) &&
                      take(bytes, rows) && rows <= bytes.size() / sizeof(PointRow::figures);
  if (!begins) return std::nullopt;
  answered.rows.resize(rows);
  for (PointRow& row : answered.rows) {
    if (!take_row(bytes, row)) return std::nullopt;
  }
  return bytes.empty() ? std::optional(std::move(answered)) : std::nullopt;
}

WorkerPool::~WorkerPool() {
  for (Worker& worker : workers_) end(worker);
}

void WorkerPool::end(Worker& worker) {
  ::close(worker.socket);
  worker.socket = -1;
  if (worker.process <= 0) return;
  ::kill(worker.process, SIGKILL);
  ::waitpid(worker.process, nullptr, 0);
}

// One sweep, answered by the workers.
class WorkerPool::Run {
 public:
  Run(const Sweep& sweep, std::vector<Worker>& workers, LeaseQueue queue, SweepWriter writer,
      SweepOutcome& outcome)
      : sweep_(sweep),
        workers_(workers),
        queue_(std::move(queue)),
        writer_(writer),
        outcome_(outcome) {}

  Expected<void> until_done(const std::atomic<bool>* interrupted) {
    hand_out();
    while (is_waiting() && !is_set(interrupted)) {
      if (auto done = receive(); !done) return done;
      hand_out();
      if (auto done = writer_.commit_when_due(); !done) return done;
    }
    const bool stopped = is_set(interrupted);
    if (stopped || queue_.empty()) return {};
    return failure("", "every worker died; what was answered is kept, run again to continue");
  }

 private:
  bool is_waiting() const {
    return std::ranges::any_of(workers_, [](const Worker& worker) { return !!worker.lease; });
  }

  void hand_out() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (worker.lease) continue;
      worker.lease = queue_.next();
      if (!worker.lease) return;
      std::string bytes;
      append(bytes, *worker.lease);
      if (send_all(worker.socket, bytes)) continue;
      queue_.give_back(*worker.lease);  // the worker was gone before
      drop(i--);
    }
  }

  void drop(std::size_t i) {
    end(workers_[i]);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
    ++outcome_.lost_workers;
  }

  Expected<void> lose(std::size_t i) {
    const std::optional<Lease> lease = workers_[i].lease;
    drop(i);
    if (!lease || queue_.lose(*lease)) return {};
    return writer_.write(refused_lease(sweep_, *lease, "two workers died on it"));
  }

  Expected<void> receive() {
    std::vector<pollfd> sockets;
    sockets.reserve(workers_.size());
    for (const Worker& worker : workers_) sockets.push_back({worker.socket, POLLIN, 0});
    ::poll(sockets.data(), sockets.size(), kPatience);
    for (std::size_t i = sockets.size(); i-- > 0;) {
      if (sockets[i].revents == 0) continue;
      if (auto done = receive_from(i); !done) return done;
    }
    return {};
  }

  Expected<void> receive_from(std::size_t i) {
    Worker& worker = workers_[i];
    std::array<char, 1 << 16> block{};
    const ssize_t count = ::recv(worker.socket, block.data(), block.size(), 0);
    if (count < 0 && errno == EINTR) return {};
    if (count <= 0) return lose(i);
    worker.received.append(block.data(), static_cast<std::size_t>(count));
    return take_answer(i);
  }

  Expected<void> take_answer(std::size_t i) {
    Worker& worker = workers_[i];
    std::uint64_t size = 0;
    std::string_view bytes = worker.received;
    if (!take(bytes, size) || bytes.size() < size) return {};
    const auto answered = answered_of(worker.received);
    const bool asked = answered && worker.lease && answered->lease == *worker.lease;
    if (!asked || !answers_lease(*answered)) return lose(i);
    worker.received.clear();
    worker.lease.reset();
    return writer_.write(*answered);
  }

  const Sweep& sweep_;
  std::vector<Worker>& workers_;
  LeaseQueue queue_;
  SweepWriter writer_;
  SweepOutcome& outcome_;
};

Expected<SweepOutcome> WorkerPool::run(const Sweep& sweep, SweepStore& store,
                                       const SweepOptions& options) {
  auto start = start_sweep(sweep, store, static_cast<int>(workers_.size()));
  if (!start) return tl::unexpected(start.error());
  SweepOutcome& outcome = start->outcome;
  Run run(sweep, workers_, std::move(start->queue), SweepWriter(store, options, outcome), outcome);
  const auto done = run.until_done(options.interrupted);
  return end_sweep(done, store, outcome);
}

}  // namespace trainyard
