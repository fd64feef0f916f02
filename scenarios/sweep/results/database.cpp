#include "scenarios/sweep/results/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace trainyard {
namespace {

// The message as one line, even if it repeats parts of a broken file.
tl::unexpected<Error> error_of(sqlite3* connection) {
  constexpr std::size_t kLongestMessage = 200;
  std::string message = std::string(sqlite3_errmsg(connection)).substr(0, kLongestMessage);
  const auto control = [](unsigned char c) { return c < ' '; };
  std::ranges::replace_if(message, control, '?');
  return failure("", std::move(message));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

void Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
}

void Statement::bind(int parameter, double value) {
  if (std::isnan(value)) return bind_null(parameter);
  sqlite3_bind_double(statement_.get(), parameter, value);
}

void Statement::bind(int parameter, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(), nullptr,
                      SQLITE_UTF8);
}

void Statement::bind_null(int parameter) { sqlite3_bind_null(statement_.get(), parameter); }

Expected<bool> Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(statement_.get());
  if (result == SQLITE_DONE) return false;
  return error_of(sqlite3_db_handle(statement_.get()));
}

Expected<void> Statement::run() {
  while (true) {
    const auto row = step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
  }
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL
             ? std::numeric_limits<double>::quiet_NaN()
             : sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Expected<Database> Database::open(const std::filesystem::path& file, Access access) {
  const int flags =
      access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(file.c_str(), &connection, flags, nullptr);
  Database database(connection);
  if (result != SQLITE_OK) return error_of(connection);
  constexpr int kPatience = 10'000;  // ms to wait for another reader or writer
  sqlite3_busy_timeout(connection, kPatience);
  if (access == Access::write) return database;
  const auto only_reads = database.run("PRAGMA query_only = 1");
  return only_reads ? Expected<Database>(std::move(database)) : tl::unexpected(only_reads.error());
}

Expected<void> Database::run(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return {};
  }
  return error_of(connection_.get());
}

Expected<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                        &statement, nullptr);
  if (result != SQLITE_OK) return error_of(connection_.get());
  return Statement(statement);
}

Expected<std::int64_t> Database::integer(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? statement->integer(0) : 0;
}

bool Database::is_no_database() const {
  return sqlite3_errcode(connection_.get()) == SQLITE_NOTADB;
}

}  // namespace trainyard
