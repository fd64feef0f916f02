// Workers of a sweep on other machines, or on this one, that somebody else starts: they connect
// over TCP (IPv4) to a listener and prove that they know its secret. How they get the address is
// not part of this file. A machine that vanishes silently is noticed within half a minute.
#pragma once

#include <chrono>
#include <string>

#include "scenarios/sweep/workers/pool.h"

namespace trainyard {

class WorkerListener {
 public:
  static Expected<WorkerListener> open();
  WorkerListener(WorkerListener&& other) noexcept;
  WorkerListener& operator=(WorkerListener&&) = delete;
  ~WorkerListener();

  // What a worker needs to connect: one line that includes the secret.
  const std::string& address() const { return address_; }

  // Waits until so many workers have connected, but no longer than `patience`.
  WorkerPool accept(int workers, std::chrono::milliseconds patience) const;

 private:
  WorkerListener(int socket, std::string secret, std::string address)
      : socket_(socket), secret_(std::move(secret)), address_(std::move(address)) {}

  int socket_;
  std::string secret_, address_;
};

// Connects a worker; returns its socket for serve_leases.
Expected<int> connect_to_sweep(const std::string& address);

}  // namespace trainyard
