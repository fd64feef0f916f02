// Writes the result file of a sweep: an SQLite database (write-ahead log) whose schema is versioned
// in `user_version` and described in docs/sweeps.md. Rows come in leases, which are consecutive
// points that were answered together. A lease and its rows are written in one transaction, so an
// incomplete lease is never in the file, and running the sweep again continues with the missing
// leases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/sweep/results/database.h"
#include "scenarios/sweep/results/point_row.h"
#include "scenarios/sweep/sweep.h"

namespace trainyard {

inline constexpr int kStoreVersion = 3;

// Points first … first + count − 1.
struct Lease {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct AnsweredLease {
  Lease lease;
  std::vector<PointRow> rows;
};

// One start of the program that writes to the file.
struct Session {
  std::string version;  // of Trainyard
  std::string host;
  int workers = 1;
};

// Text that differs between sweeps: the document, what it refers to, and the version that answers.
std::string identity_of(const Sweep& sweep, const std::string& version);

// The exclusive right to write a result file, as long as this lives; others may read it.
class FileLock {
 public:
  static Expected<FileLock> take(const std::filesystem::path& file);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

class SweepStore {
 public:
  // Creates the file or continues it; refuses a file that is something else or of another sweep.
  static Expected<SweepStore> open(const std::filesystem::path& file, const Sweep& sweep,
                                   const Session& session);

  // The points that no lease in the file covers, in order.
  Expected<std::vector<Lease>> missing(std::int64_t points);
  // Adds a lease, to be written with the next commit. If that fails, everything since the last
  // commit is rolled back, so that no part of a lease remains.
  Expected<void> add(const AnsweredLease& answered);
  Expected<void> commit();

 private:
  SweepStore(FileLock lock, Database database)
      : lock_(std::move(lock)), database_(std::move(database)) {}
  Expected<void> begin_session(const Session& session);
  Expected<void> insert(const AnsweredLease& answered);

  FileLock lock_;
  Database database_;
  std::optional<Statement> insert_row_, insert_lease_;
  std::int64_t session_ = 0;
  bool in_transaction_ = false;
};

}  // namespace trainyard
