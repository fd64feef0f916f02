// Workers of a sweep on other machines, or on this one, that were started by somebody else: they
// connect over TCP (IPv4) to a listener that knows them by a secret. Who told them the address is
// no matter of this file. A machine that vanishes without a word is noticed in half a minute.
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

  // What a worker has to know to connect: one line, with the secret in it.
  const std::string& address() const { return address_; }

  // Waits until so many have connected, or for `patience`.
  WorkerPool accept(int workers, std::chrono::milliseconds patience) const;

 private:
  WorkerListener(int socket, std::string secret, std::string address)
      : socket_(socket), secret_(std::move(secret)), address_(std::move(address)) {}

  int socket_;
  std::string secret_, address_;
};

// A worker's socket for serve_leases.
Expected<int> connect_to_sweep(const std::string& address);

}  // namespace trainyard
