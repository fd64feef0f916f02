// Workers of a sweep on other machines, or on this one, that were started by somebody else: they
// come in over TCP (IPv4) through a door that knows them by a secret. Who told them the address is
// no matter of this file. A machine that vanishes without a word is noticed in half a minute.
#pragma once

#include <chrono>
#include <string>

#include "scenarios/sweep/worker_pool.h"

namespace trainyard {

class WorkerDoor {
 public:
  static Expected<WorkerDoor> open();
  WorkerDoor(WorkerDoor&& other) noexcept;
  WorkerDoor& operator=(WorkerDoor&&) = delete;
  ~WorkerDoor();

  // What a worker has to know to come in: one line, with the secret in it.
  const std::string& address() const { return address_; }

  // Waits until so many are in, or for `patience`.
  WorkerPool admit(int workers, std::chrono::milliseconds patience) const;

 private:
  WorkerDoor(int socket, std::string secret, std::string address)
      : socket_(socket), secret_(std::move(secret)), address_(std::move(address)) {}

  int socket_;
  std::string secret_, address_;
};

// A worker's socket for serve_leases.
Expected<int> come_in(const std::string& address);

}  // namespace trainyard
