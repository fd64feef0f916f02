// A thin layer over SQLite with errors as values: a connection, and statements that are prepared
// once and used many times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/expected.h"

struct sqlite3;
struct sqlite3_stmt;

namespace trainyard {

class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  // Binds a parameter, counted from 1; a NaN is bound as NULL. Text must live until the statement
  // has run.
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view value);
  void bind_null(int parameter);

  // Steps to the next row; false after the last. A statement that has ended can be bound again.
  Expected<bool> step();
  // Runs the statement to its end.
  Expected<void> run();
  void reset();

  // Values of the present row; columns count from 0.
  std::int64_t integer(int column) const;
  double number(int column) const;  // NaN for NULL
  std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Access { read, write };
  static Expected<Database> open(const std::filesystem::path& file, Access access);

  // Runs SQL that has no results.
  Expected<void> run(const std::string& sql);
  Expected<Statement> prepare(std::string_view sql);
  Expected<std::int64_t> integer(std::string_view sql);  // the first column of the first row

  // Whether the last failure was because the file is no database.
  bool is_no_database() const;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(sqlite3* connection) : connection_(connection) {}

  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace trainyard
