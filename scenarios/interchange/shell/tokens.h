// The words and operators of a shell script, one after another, with its variables put in. Quotes,
// escapes, comments, continued lines and here-documents are resolved as a shell does. Nothing is
// run: command substitutions, and variables that the file does not set, stay as they are written.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "scenarios/interchange/documents/foreign_file.h"

namespace trainyard {

struct ShellToken {
  enum class Kind { word, sign, arithmetic, end };
  Kind kind = Kind::end;
  std::string text;  // "\n" is a sign
  std::size_t line = 1;
  bool quoted = false;  // a part was quoted, so it is no reserved word
  std::string array;    // the word is this array as a whole: "${NAME[@]}"

  bool is_sign(std::string_view sign) const { return kind == Kind::sign && text == sign; }
  bool is_word(std::string_view word) const {
    return kind == Kind::word && !quoted && text == word;
  }
};

// Marks a place in a word where an unquoted variable had blanks: the word ends there.
inline constexpr char kWordEnd = '\x01';

struct ShellVariables {
  std::map<std::string, std::string, std::less<>> texts;
  std::map<std::string, std::vector<ShellToken>, std::less<>> arrays;
};

class ShellTokens {
 public:
  // Requires: both outlive this. Each token uses the variables as they are at that moment.
  ShellTokens(const ForeignFile& file, const ShellVariables& variables)
      : file_(file), variables_(variables), text_(file.text) {}

  // `first`: a command may begin here, so "((" begins arithmetic.
  Expected<ShellToken> next(bool first);
  // Whether "(" follows at once, without a blank, which begins an array.
  bool opens_array() const { return at_ < text_.size() && text_[at_] == '('; }
  // Whether an unset variable is empty, as in conditions, or stays as written.
  void take_unset_as_empty(bool empty) { empty_ = empty; }

 private:
  char take();
  bool at_end() const { return at_ >= text_.size(); }
  bool continued() const;
  void skip_line();
  void skip_blanks();
  void skip_here_documents();
  Expected<ShellToken> sign();
  Expected<ShellToken> arithmetic();
  Expected<ShellToken> word();
  Expected<void> read_part(ShellToken& word);
  Expected<void> read_quoted(ShellToken& word);
  Expected<void> read_double_quoted(ShellToken& word);
  Expected<void> read_backquoted(ShellToken& word);
  Expected<void> end_quote(std::size_t begin);
  void read_expansion(std::string& word, bool quoted);
  std::string_view bracket(char open, char close);
  void append(std::string& word, std::string_view value, bool quoted);
  static std::string joined(const std::vector<ShellToken>& elements);
  std::string value_of_braces(std::string_view inside, std::string_view whole);
  std::string value_of_name(std::string_view name, std::string_view whole) const;
  std::string value_of_arithmetic(std::string_view inside, std::string_view whole);
  std::string expanded(std::string_view text);

  const ForeignFile& file_;
  const ShellVariables& variables_;
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, expanded_ = 0;
  int depth_ = 0;
  bool empty_ = false;
  bool delimiter_next_ = false;  // the next word ends a here-document
  std::vector<std::string> here_documents_;
};

// The name of a variable at the beginning of the text; empty: there is none.
std::string_view shell_name(std::string_view text);

}  // namespace trainyard
