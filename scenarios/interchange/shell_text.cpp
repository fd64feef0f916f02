#include "scenarios/interchange/shell_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace trainyard {
namespace {

constexpr std::size_t kLongestWord = std::size_t{1} << 16;
constexpr std::size_t kMostWords = 200'000;
constexpr std::size_t kMostExpanded = std::size_t{1} << 24;  // bytes that variables stand for

bool is_name(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (!first && c >= '0' && c <= '9');
}

struct Word {
  std::string text;
  std::size_t line = 1;
};

class Lexer {
 public:
  explicit Lexer(const ForeignFile& file) : file_(file), text_(file.text) {}

  Expected<std::vector<Word>> read() {
    while (skip_blanks()) {
      Word word{"", line_};
      while (at_ < text_.size() && !ends_word(text_[at_])) {
        if (auto done = read_part(word); !done) return tl::unexpected(done.error());
      }
      if (word.text.size() > kLongestWord || words_.size() >= kMostWords ||
          expanded_ > kMostExpanded) {
        return file_.error_in_line(word.line, "found more text than a command line has");
      }
      keep(std::move(word));
    }
    return std::move(words_);
  }

 private:
  static bool ends_word(char c) {
    return std::string_view(" \t\r\n;&|()<>").find(c) != std::string_view::npos;
  }

  char next() {
    const char c = text_[at_++];
    line_ += c == '\n' ? 1 : 0;
    return c;
  }

  bool continued() const {
    return text_.substr(at_).starts_with("\\\n") || text_.substr(at_).starts_with("\\\r\n");
  }

  // Blanks, operators and comments; whether a word follows.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      if (continued()) {
        while (next() != '\n') {
        }
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') next();
      } else if (ends_word(text_[at_])) {
        next();
      } else {
        return true;
      }
    }
    return false;
  }

  Expected<void> read_part(Word& word) {
    if (continued()) {
      while (next() != '\n') {
      }
      return {};
    }
    const char c = text_[at_];
    if (c == '\'') return read_quoted(word);
    if (c == '"') return read_double_quoted(word);
    if (c == '$') {
      read_expansion(word);
    } else {
      next();
      if (c == '\\' && at_ < text_.size()) word.text += next();
      if (c != '\\') word.text += c;
    }
    return {};
  }

  Expected<void> read_quoted(Word& word) {
    const std::size_t begin = line_;
    for (next(); at_ < text_.size() && text_[at_] != '\'';) word.text += next();
    return end_quote(begin);
  }

  Expected<void> read_double_quoted(Word& word) {
    const std::size_t begin = line_;
    for (next(); at_ < text_.size() && text_[at_] != '"';) {
      if (text_[at_] == '$') {
        read_expansion(word);
        continue;
      }
      const bool escaped =
          text_[at_] == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\"\\$`\n").find(text_[at_ + 1]) != std::string_view::npos;
      if (escaped) next();
      const char c = next();
      if (!(escaped && c == '\n')) word.text += c;
    }
    return end_quote(begin);
  }

  Expected<void> end_quote(std::size_t begin) {
    if (at_ >= text_.size()) return file_.error_in_line(begin, "found a quote without its end");
    next();
    return {};
  }

  // $NAME, ${NAME}, ${NAME:-default}; what the file does not set stays as it is written.
  void read_expansion(Word& word) {
    const std::size_t begin = at_;
    next();
    if (at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '{'))
      return read_bracket(word, begin);
    while (at_ < text_.size() && is_name(text_[at_], at_ == begin + 1)) next();
    append(word, text_.substr(begin + 1, at_ - begin - 1), text_.substr(begin, at_ - begin));
  }

  void read_bracket(Word& word, std::size_t begin) {
    const char open = text_[at_];
    const char close = open == '(' ? ')' : '}';
    int depth = 0;
    do {
      const char c = next();
      depth += c == open ? 1 : c == close ? -1 : 0;
    } while (depth > 0 && at_ < text_.size());
    const std::string_view whole = text_.substr(begin, at_ - begin);
    std::string_view inside = whole.substr(2);
    if (inside.ends_with(close)) inside.remove_suffix(1);
    if (inside.ends_with("[@]") || inside.ends_with("[*]")) return;  // its words were read already
    const std::size_t otherwise = inside.find(":-");
    std::string_view fallback = whole;
    if (open == '{' && otherwise != std::string_view::npos) {
      fallback = inside.substr(otherwise + 2);
      inside = inside.substr(0, otherwise);
    }
    append(word, open == '{' ? inside : std::string_view(), fallback);
  }

  // A word that is too long already is refused at its end, and grows no more.
  void append(Word& word, std::string_view name, std::string_view fallback) {
    if (word.text.size() > kLongestWord) return;
    const auto known = variables_.find(name);
    const std::string_view value =
        known == variables_.end() ? fallback : std::string_view(known->second);
    expanded_ += value.size();
    word.text += value;
  }

  // NAME=value is remembered, not kept.
  void keep(Word word) {
    std::size_t end = 0;
    while (end < word.text.size() && is_name(word.text[end], end == 0)) ++end;
    if (end > 0 && end < word.text.size() && word.text[end] == '=') {
      variables_[word.text.substr(0, end)] = word.text.substr(end + 1);
    } else {
      words_.push_back(std::move(word));
    }
  }

  const ForeignFile& file_;
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, expanded_ = 0;
  std::vector<Word> words_;
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace

Expected<Options> parse_command_line(const ForeignFile& file) {
  auto words = Lexer(file).read();
  if (!words) return tl::unexpected(words.error());
  Options options(file.name, Options::Flags::without_value);
  std::string name;
  Option option;
  const auto flush = [&] {
    if (!name.empty()) options.set(name, std::move(option));
  };
  for (Word& word : *words) {
    if (!word.text.starts_with("--") || word.text.size() == 2) {
      option.words.push_back(std::move(word.text));
      continue;
    }
    flush();
    option = {{}, fmt::format("{}: line {}", file.name, word.line)};
    const std::size_t equals = std::min(word.text.find('='), word.text.size());
    name = word.text.substr(2, equals - 2);
    std::ranges::replace(name, '-', '_');
    if (equals < word.text.size()) option.words.push_back(word.text.substr(equals + 1));
  }
  flush();
  return options;
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c != '\0') {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace trainyard
