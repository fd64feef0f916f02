// Options of another tool by name, from whatever file they were written in, with the place of each.
// Readers take what they know and never fail; the first value that cannot be is remembered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

struct Option {
  std::vector<std::string> words;  // none: a flag that is set
  std::string where;               // file and line, or file and JSON pointer
  bool read = false;
};

class Options {
 public:
  // On a command line words may follow a flag that are none of its business.
  enum class Flags { with_value, without_value };
  explicit Options(std::string file, Flags flags = Flags::with_value)
      : file_(std::move(file)), flags_(flags) {}

  // A later value replaces an earlier one, as command lines do.
  void set(const std::string& name, Option option) { options_[name] = std::move(option); }
  // What a file calls `earlier` is `name`, unless it has that too.
  void rename(std::string_view earlier, std::string_view name);
  // Every leaf of a tree; `separator` joins the keys on the way ("optimizer.name"); empty: the last
  // key alone. A leaf that is null is absent.
  void set_tree(const Json& tree, std::string_view separator);

  bool has(std::string_view name);
  // Set, and not to false.
  bool flag(std::string_view name);
  std::optional<bool> said(std::string_view name);  // absent: nothing
  std::optional<std::int64_t> count(std::string_view name, std::int64_t least,
                                    std::int64_t most = 100'000'000);
  int degree(std::string_view name, int fallback = 1);  // from 1
  std::optional<double> number(std::string_view name);
  std::string text(std::string_view name);  // empty: absent
  std::vector<std::string> words(std::string_view name);
  // One of these words; `fallback` when it is absent.
  std::string choice(std::string_view name, std::span<const std::string_view> allowed,
                     std::string_view fallback);

  // "found --x 3; allowed: …" at the option's place, or at the file's where it is absent.
  void refuse(std::string_view name, std::string_view allowed);
  void fail(Error error);
  const std::optional<Error>& error() const { return error_; }
  const std::string& file() const { return file_; }

  // What was taken for granted where the options were read.
  void assume(std::vector<std::string> assumptions) { assumptions_ = std::move(assumptions); }
  const std::vector<std::string>& assumptions() const { return assumptions_; }

  // Set to nothing: false, 0, none.
  bool is_off(std::string_view name) const;
  // Names that nobody read, in order.
  std::vector<std::string> unread() const;

 private:
  Option* find(std::string_view name);

  std::string file_;
  Flags flags_;
  std::map<std::string, Option, std::less<>> options_;
  std::optional<Error> error_;
  std::vector<std::string> assumptions_;
};

}  // namespace trainyard
