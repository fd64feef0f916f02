// Options of another tool by name, whatever file they come from, each with its place. Getters never
// fail; they remember the first value that is not allowed, and error() returns it.
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
  std::vector<std::string> words;  // none: a flag without value, which is set
  std::string where;               // file and line, or file and JSON pointer
  bool read = false;
};

class Options {
 public:
  // without_value: words after a flag may have nothing to do with it, as on a command line.
  enum class Flags { with_value, without_value };
  explicit Options(std::string file, Flags flags = Flags::with_value)
      : file_(std::move(file)), flags_(flags) {}

  // A later value replaces an earlier one, as on command lines.
  void set(const std::string& name, Option option) { options_[name] = std::move(option); }
  // Renames option `earlier` to `name`, unless the file has that too.
  void rename(std::string_view earlier, std::string_view name);
  // Sets an option for every leaf of a tree but null. Its name is the keys on the way, joined by
  // `separator` ("optimizer.name"), or the last key alone if `separator` is empty.
  void set_tree(const Json& tree, std::string_view separator);

  bool has(std::string_view name);
  // Whether the option is set, and not to false.
  bool flag(std::string_view name);
  std::optional<bool> said(std::string_view name);  // none: the option is absent
  std::optional<std::int64_t> count(std::string_view name, std::int64_t least,
                                    std::int64_t most = 100'000'000);
  int degree(std::string_view name, int fallback = 1);  // a whole number from 1
  std::optional<double> number(std::string_view name);
  std::string text(std::string_view name);  // "": the option is absent
  std::vector<std::string> words(std::string_view name);
  // One of the allowed words; `fallback` if the option is absent.
  std::string choice(std::string_view name, std::span<const std::string_view> allowed,
                     std::string_view fallback);

  // Remembers the error "found --x 3; allowed: …" at the option's place, or the file's if it is
  // absent.
  void refuse(std::string_view name, std::string_view allowed);
  void fail(Error error);
  const std::optional<Error>& error() const { return error_; }
  const std::string& file() const { return file_; }

  // What was assumed when the options were read.
  void assume(std::vector<std::string> assumptions) { assumptions_ = std::move(assumptions); }
  const std::vector<std::string>& assumptions() const { return assumptions_; }

  // Whether the option is set to a value that means nothing: false, 0, none.
  bool is_off(std::string_view name) const;
  // The options that nobody has asked for, in order of name.
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
