#include "scenarios/interchange/shell/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/interchange/shell/arithmetic.h"

namespace trainyard {
namespace {

constexpr std::size_t kLongestWord = std::size_t{1} << 16;
constexpr std::size_t kMostExpanded = std::size_t{1} << 24;  // bytes that variables may expand to
constexpr int kDeepestExpansion = 32;
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kEnds = " \t\r\n;&|()<>";
// Longest first.
constexpr auto kSigns = std::to_array<std::string_view>(
    {"<<<", "<<-", "<<", ";;", "&&", "||", "\n", ";", "&", "|", "(", ")", "<", ">"});

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// The name of a variable, or of the script's own arguments: 1, @, *.
std::string_view parameter_name(std::string_view text) {
  const std::string_view name = shell_name(text);
  if (!name.empty() || text.empty()) return name;
  if (is_one_of(text.front(), "@*")) return text.substr(0, 1);
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

// Whether the text is a variable that the file does not set, as written: $1, ${NAME}.
bool is_unset_parameter(std::string_view text) {
  if (!text.starts_with('$')) return false;
  text.remove_prefix(1);
  if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
  return !text.empty() && parameter_name(text) == text;
}

// The array that a whole word stands for: "${NAME[@]}", with quotes or without.
std::string whole_array(std::string_view word) {
  if (word.size() > 1 && word.front() == '"' && word.back() == '"') {
    word = word.substr(1, word.size() - 2);
  }
  if (!word.starts_with("${")) return {};
  const std::string_view name = shell_name(word.substr(2));
  const std::string_view rest = word.substr(2 + name.size());
  return rest == "[@]}" || rest == "[*]}" ? std::string(name) : std::string();
}

}  // namespace

std::string_view shell_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  std::size_t end = 0;
  while (end < text.size() &&
         (is_letter(text[end]) || (end > 0 && text[end] >= '0' && text[end] <= '9'))) {
    ++end;
  }
  return text.substr(0, end);
}

char ShellTokens::take() {
  const char c = text_[at_++];
  line_ += c == '\n' ? 1 : 0;
  return c;
}

bool ShellTokens::continued() const {
  return text_.substr(at_).starts_with("\\\n") || text_.substr(at_).starts_with("\\\r\n");
}

void ShellTokens::skip_line() {
  while (!at_end() && take() != '\n') {
  }
}

void ShellTokens::skip_blanks() {
  while (!at_end()) {
    if (continued()) {
      skip_line();
    } else if (text_[at_] == '#') {
      while (!at_end() && text_[at_] != '\n') take();
    } else if (is_one_of(text_[at_], kBlanks)) {
      take();
    } else {
      return;
    }
  }
}

// Skips the here-documents: all lines up to one that is just the delimiter, for each delimiter.
void ShellTokens::skip_here_documents() {
  for (const std::string& delimiter : std::exchange(here_documents_, {})) {
    while (!at_end()) {
      const std::size_t begin = at_;
      skip_line();
      std::string_view line = text_.substr(begin, at_ - begin);
      while (!line.empty() && is_one_of(line.front(), "\t")) line.remove_prefix(1);
      while (!line.empty() && is_one_of(line.back(), "\r\n")) line.remove_suffix(1);
      if (line == delimiter) break;
    }
  }
}

Expected<ShellToken> ShellTokens::next(bool first) {
  skip_blanks();
  if (at_end()) return ShellToken{.line = line_};
  if (first && text_.substr(at_).starts_with("((")) return arithmetic();
  if (is_one_of(text_[at_], kEnds)) return sign();
  auto read = word();
  if (!read) return read;
  if (read->text.size() > kLongestWord || expanded_ > kMostExpanded) {
    return file_.error_in_line(read->line, "found more text than a command line has");
  }
  if (delimiter_next_) here_documents_.push_back(read->text);
  delimiter_next_ = false;
  return read;
}

Expected<ShellToken> ShellTokens::sign() {
  const auto* const found = std::ranges::find_if(
      kSigns, [&](std::string_view known) { return text_.substr(at_).starts_with(known); });
  ShellToken token{ShellToken::Kind::sign, std::string(*found), line_};
  for (std::size_t i = 0; i < found->size(); ++i) take();
  if (token.text == "\n") skip_here_documents();
  delimiter_next_ = token.text == "<<" || token.text == "<<-";
  return token;
}

Expected<ShellToken> ShellTokens::arithmetic() {
  const std::size_t line = line_;
  std::string_view inside = bracket('(', ')');
  inside.remove_prefix(std::min<std::size_t>(inside.size(), 2));
  inside.remove_suffix(std::min<std::size_t>(inside.size(), 2));
  return ShellToken{ShellToken::Kind::arithmetic, value_of_arithmetic(inside, "?"), line};
}

Expected<ShellToken> ShellTokens::word() {
  ShellToken word{ShellToken::Kind::word, "", line_};
  const std::size_t begin = at_;
  while (!at_end() && !is_one_of(text_[at_], kEnds)) {
    if (auto done = read_part(word); !done) return tl::unexpected(done.error());
  }
  word.array = whole_array(text_.substr(begin, at_ - begin));
  return word;
}

Expected<void> ShellTokens::read_part(ShellToken& word) {
  if (continued()) {
    skip_line();
    return {};
  }
  const char c = text_[at_];
  if (c == '\'') return read_quoted(word);
  if (c == '"') return read_double_quoted(word);
  if (c == '`') return read_backquoted(word);
  if (c == '$') {
    read_expansion(word.text, false);
    return {};
  }
  take();
  if (c == '\\' && !at_end()) word.text += take();
  if (c != '\\') word.text += c;
  return {};
}

Expected<void> ShellTokens::read_quoted(ShellToken& word) {
  const std::size_t begin = line_;
  word.quoted = true;
  for (take(); !at_end() && text_[at_] != '\'';) word.text += take();
  return end_quote(begin);
}

Expected<void> ShellTokens::read_double_quoted(ShellToken& word) {
  const std::size_t begin = line_;
  word.quoted = true;
  for (take(); !at_end() && text_[at_] != '"';) {
    if (text_[at_] == '$') {
      read_expansion(word.text, true);
      continue;
    }
    const bool escaped =
        text_[at_] == '\\' && at_ + 1 < text_.size() && is_one_of(text_[at_ + 1], "\"\\$`\n");
    if (escaped) take();
    const char c = take();
    if (!(escaped && c == '\n')) word.text += c;
  }
  return end_quote(begin);
}

// Reads a command substitution, which stays as written.
Expected<void> ShellTokens::read_backquoted(ShellToken& word) {
  const std::size_t begin = line_;
  for (word.text += take(); !at_end() && text_[at_] != '`';) word.text += take();
  word.text += '`';
  return end_quote(begin);
}

Expected<void> ShellTokens::end_quote(std::size_t begin) {
  if (at_end()) return file_.error_in_line(begin, "found a quote without its end");
  take();
  return {};
}

// The text from an opening bracket to its closing one, both included.
std::string_view ShellTokens::bracket(char open, char close) {
  const std::size_t begin = at_;
  int depth = 0;
  do {
    const char c = take();
    depth += c == open ? 1 : c == close ? -1 : 0;
  } while (depth > 0 && !at_end());
  return text_.substr(begin, at_ - begin);
}

// $NAME, ${…}, $(( … )); a command's $( … ) stays as it is written.
void ShellTokens::read_expansion(std::string& word, bool quoted) {
  const std::size_t begin = at_;
  take();
  const char open = at_end() ? ' ' : text_[at_];
  if (open == '{' || open == '(') {
    std::string_view inside = bracket(open, open == '{' ? '}' : ')');
    const std::string_view whole = text_.substr(begin, at_ - begin);
    if (inside.starts_with("((") && inside.ends_with("))")) {
      inside = inside.substr(2, inside.size() - std::min<std::size_t>(inside.size(), 4));
      return append(word, value_of_arithmetic(inside, whole), quoted);
    }
    if (open == '(' || inside.size() < 2) return append(word, whole, true);
    return append(word, value_of_braces(inside.substr(1, inside.size() - 2), whole), quoted);
  }
  const std::string_view rest = text_.substr(at_);
  std::string_view name = shell_name(rest);
  if (name.empty()) name = parameter_name(rest.substr(0, 1));  // $12 is $1 followed by a 2
  at_ += name.size();
  const std::string_view whole = text_.substr(begin, at_ - begin);
  append(word, name.empty() ? std::string(whole) : value_of_name(name, whole), quoted);
}

// A word that is already too long grows no more; it is refused at its end.
void ShellTokens::append(std::string& word, std::string_view value, bool quoted) {
  if (word.size() > kLongestWord) return;
  expanded_ += value.size();
  for (const char c : value) word += !quoted && is_one_of(c, " \t\r\n") ? kWordEnd : c;
}

std::string ShellTokens::value_of_name(std::string_view name, std::string_view whole) const {
  const auto known = variables_.texts.find(name);
  const bool set = known != variables_.texts.end();
  if (set && !(empty_ && is_unset_parameter(known->second))) return known->second;
  return empty_ ? std::string() : std::string(whole);
}

std::string ShellTokens::joined(const std::vector<ShellToken>& elements) {
  std::string text;
  for (const ShellToken& element : elements) {
    if (text.size() > kLongestWord) break;
    text += (text.empty() ? "" : " ") + element.text;
  }
  return text;
}

// The value of NAME, NAME[@], NAME:-default, NAME-default or NAME:=default. A variable whose value
// is an unset variable counts as empty.
std::string ShellTokens::value_of_braces(std::string_view inside, std::string_view whole) {
  const std::string_view name = parameter_name(inside);
  std::string_view rest = inside.substr(name.size());
  if (rest.empty() || name.empty()) return value_of_name(name, whole);
  if (const auto array = variables_.arrays.find(name);
      array != variables_.arrays.end() && (rest == "[@]" || rest == "[*]")) {
    return joined(array->second);
  }
  const auto known = variables_.texts.find(name);
  const bool colon = rest.starts_with(":-") || rest.starts_with(":=");
  if (!colon && !rest.starts_with("-") && !rest.starts_with("=")) return std::string(whole);
  rest.remove_prefix(colon ? 2 : 1);
  const auto is_empty = [](const std::string& text) {
    return text.empty() || is_unset_parameter(text);
  };
  if (known != variables_.texts.end() && !(colon && is_empty(known->second))) return known->second;
  return expanded(rest);
}

std::string ShellTokens::value_of_arithmetic(std::string_view inside, std::string_view whole) {
  const std::string text = expanded(inside);
  const auto value = shell_number(text, [&](std::string_view name) {
    const auto known = variables_.texts.find(name);
    return known == variables_.texts.end() ? std::nullopt
                                           : std::optional<std::string_view>(known->second);
  });
  return value ? fmt::format("{}", *value) : std::string(whole);
}

// Expands a default or an expression, which may have variables and quotes of its own.
std::string ShellTokens::expanded(std::string_view text) {
  if (depth_ >= kDeepestExpansion || expanded_ > kMostExpanded) return std::string(text);
  const ForeignFile part{file_.name, file_.stem, std::string(text)};
  ShellTokens inner(part, variables_);
  inner.depth_ = depth_ + 1;
  inner.expanded_ = expanded_;
  inner.empty_ = empty_;
  ShellToken whole;
  while (!inner.at_end()) {
    if (!inner.read_part(whole)) return std::string(text);
  }
  expanded_ = inner.expanded_;
  std::ranges::replace(whole.text, kWordEnd, ' ');
  return whole.text;
}

}  // namespace trainyard
