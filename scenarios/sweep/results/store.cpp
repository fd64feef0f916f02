#include "scenarios/sweep/results/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "scenarios/json/file.h"
#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/sha256.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

Error at_file(const fs::path& file, const Error& error) {
  return {shown_path(file), error.message};
}

std::string points_table() {
  std::string columns =
      "point INTEGER PRIMARY KEY, status TEXT NOT NULL, note TEXT, "
      "overrides TEXT NOT NULL, plan TEXT";
  for (const std::string_view name : kFigureNames) columns += fmt::format(", {} REAL", name);
  return columns;
}

std::string creation() {
  return fmt::format(
      "CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
      "CREATE TABLE inputs (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL);"
      "CREATE TABLE sessions (session INTEGER PRIMARY KEY, version TEXT NOT NULL, "
      "host TEXT NOT NULL, workers INTEGER NOT NULL, started TEXT NOT NULL);"
      "CREATE TABLE leases (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, "
      "session INTEGER NOT NULL REFERENCES sessions);"
      "CREATE TABLE points ({});"
      "PRAGMA application_id = {}; PRAGMA user_version = {};",
      points_table(), kApplicationId, kStoreVersion);
}

std::string insertion_of_row() {
  std::string sql = fmt::format("INSERT INTO points ({}) VALUES (?1", columns_of_points());
  for (std::size_t i = 1; i < kFigures + 5; ++i) sql += fmt::format(", ?{}", i + 1);
  return sql + ")";
}

Expected<void> set(Database& database, std::string_view key, std::string_view value) {
  auto insert = database.prepare("INSERT INTO sweep VALUES (?1, ?2)");
  if (!insert) return tl::unexpected(insert.error());
  insert->bind(1, key);
  insert->bind(2, value);
  return insert->run();
}

Expected<void> describe(Database& database, const Sweep& sweep, const Session& session) {
  for (const auto& [key, value] : {std::pair<std::string_view, std::string>{"name", sweep.name},
                                   {"identity", identity_of(sweep, session.version)},
                                   {"document", sweep.text},
                                   {"file", sweep.origin->file.string()},
                                   {"csv", sweep.csv ? sweep.csv->text() : ""},
                                   {"points", fmt::format("{}", sweep.points)}}) {
    if (auto done = set(database, key, value); !done) return done;
  }
  auto insert = database.prepare("INSERT OR IGNORE INTO inputs VALUES (?1, ?2)");
  if (!insert) return tl::unexpected(insert.error());
  for (const SweepInput& input : sweep.inputs) {
    insert->bind(1, input.name);
    insert->bind(2, input.hash);
    if (auto done = insert->run(); !done) return done;
  }
  return {};
}

// Everything or nothing, even if the program is killed in between.
Expected<void> create(Database& database, const Sweep& sweep, const Session& session) {
  if (auto done = database.run("BEGIN IMMEDIATE"); !done) return done;
  if (auto done = database.run(creation()); !done) return done;
  if (auto done = describe(database, sweep, session); !done) return done;
  return database.run("COMMIT");
}

Expected<void> check_same(Database& database, const Sweep& sweep, const Session& session) {
  auto select = database.prepare("SELECT value FROM sweep WHERE key = 'identity'");
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (*row && select->text(0) == identity_of(sweep, session.version)) return {};
  return failure("",
                 "found the results of another sweep, or of the same with other inputs or "
                 "another version; allowed: a new file, or results of this sweep");
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

// Fails unless the database is empty or a result file.
Expected<bool> is_new(Database& database) {
  const auto tables = database.integer("SELECT count(*) FROM sqlite_master");
  if (!tables) return tl::unexpected(tables.error());
  if (*tables == 0) return true;
  const auto known = check_result_file(database);
  return known ? Expected<bool>(false) : tl::unexpected(known.error());
}

}  // namespace

std::string identity_of(const Sweep& sweep, const std::string& version) {
  std::string text = sweep.text + version;
  for (const SweepInput& input : sweep.inputs) text += "\n" + input.hash;
  return sha256(text);
}

Expected<FileLock> FileLock::take(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return failure(shown_path(file), fmt::format("cannot be written: {}", reason_of(errno)));
  }
  FileLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
  return failure(shown_path(file), "is being written by another sweep");
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<SweepStore> SweepStore::open(const fs::path& file, const Sweep& sweep,
                                      const Session& session) {
  auto lock = FileLock::take(file);
  if (!lock) return tl::unexpected(lock.error());
  auto database = Database::open(file, Database::Access::write);
  if (!database) return tl::unexpected(at_file(file, database.error()));
  SweepStore store(std::move(*lock), std::move(*database));
  const auto fresh = is_new(store.database_);
  if (!fresh) return tl::unexpected(at_file(file, fresh.error()));
  // Commits survive if the program is killed. Only if the machine loses power can the last commits
  // be lost, and then only whole ones.
  const auto ready = store.database_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
                         .and_then([&] {
                           return *fresh ? create(store.database_, sweep, session)
                                         : check_same(store.database_, sweep, session);
                         })
                         .and_then([&] { return store.begin_session(session); });
  if (!ready) return tl::unexpected(at_file(file, ready.error()));
  return store;
}

Expected<void> SweepStore::begin_session(const Session& session) {
  auto insert = database_.prepare(
      "INSERT INTO sessions (version, host, workers, started) VALUES (?1, ?2, ?3, ?4)");
  if (!insert) return tl::unexpected(insert.error());
  const std::string started = now();
  insert->bind(1, session.version);
  insert->bind(2, session.host);
  insert->bind(3, std::int64_t{session.workers});
  insert->bind(4, started);
  if (auto done = insert->run(); !done) return done;
  const auto number = database_.integer("SELECT max(session) FROM sessions");
  if (!number) return tl::unexpected(number.error());
  session_ = *number;
  auto row = database_.prepare(insertion_of_row());
  if (!row) return tl::unexpected(row.error());
  auto lease = database_.prepare("INSERT INTO leases VALUES (?1, ?2, ?3)");
  if (!lease) return tl::unexpected(lease.error());
  insert_row_ = std::move(*row);
  insert_lease_ = std::move(*lease);
  return {};
}

Expected<std::vector<Lease>> SweepStore::missing(std::int64_t points) {
  auto select = database_.prepare("SELECT first, count FROM leases ORDER BY first");
  if (!select) return tl::unexpected(select.error());
  std::vector<Lease> gaps;
  std::int64_t covered = 0;
  while (true) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    const std::int64_t next = *row ? select->integer(0) : points;
    if (next > covered) gaps.push_back({covered, next - covered});
    if (!*row) return gaps;
    covered = next + select->integer(1);
  }
}

Expected<void> SweepStore::add(const AnsweredLease& answered) {
  if (!in_transaction_) {
    if (auto done = database_.run("BEGIN"); !done) return done;
    in_transaction_ = true;
  }
  auto done = insert(answered);
  if (done) return done;
  in_transaction_ = false;
  static_cast<void>(database_.run("ROLLBACK"));  // the first error is the one to report
  return done;
}

Expected<void> SweepStore::insert(const AnsweredLease& answered) {
  const auto bind_text = [this](int parameter, const std::string& text) {
    if (text.empty()) {
      insert_row_->bind_null(parameter);
    } else {
      insert_row_->bind(parameter, std::string_view(text));
    }
  };
  for (const PointRow& row : answered.rows) {
    insert_row_->bind(1, row.point);
    insert_row_->bind(2, name_of(row.status));
    bind_text(3, row.note);
    bind_text(4, row.overrides);
    bind_text(5, row.plan);
    for (std::size_t i = 0; i < kFigures; ++i) {
      insert_row_->bind(static_cast<int>(i) + 6, row.figures[i]);
    }
    if (auto done = insert_row_->run(); !done) return done;
  }
  insert_lease_->bind(1, answered.lease.first);
  insert_lease_->bind(2, answered.lease.count);
  insert_lease_->bind(3, session_);
  return insert_lease_->run();
}

Expected<void> SweepStore::commit() {
  if (!in_transaction_) return {};
  in_transaction_ = false;
  return database_.run("COMMIT");
}

}  // namespace trainyard
