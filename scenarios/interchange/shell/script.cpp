#include "scenarios/interchange/shell/script.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scenarios/interchange/shell/condition.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 24;  // of words and elements of arrays
constexpr std::size_t kBytesOfAWord = 64;                 // beside its text
constexpr std::size_t kDeepestBlocks = 256;

// Splits a text at the given characters.
std::vector<std::string> pieces_of(std::string_view text, std::string_view ends) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(ends), text.size());
    if (end > 0) pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}
constexpr std::string_view kAllEnds = " \t\r\n\x01";
constexpr std::string_view kWordEnds = "\x01";

bool has_options(std::string_view text) {
  return text.starts_with("--") || text.find(" --") != std::string_view::npos ||
         text.find("\n--") != std::string_view::npos;
}

class Script {
 public:
  explicit Script(const ForeignFile& file) : file_(file), tokens_(file, variables_) {}

  Expected<ShellCommands> read() {
    while (true) {
      auto token = tokens_.next(first_);
      if (!token) return tl::unexpected(token.error());
      if (token->kind == ShellToken::Kind::end) break;
      if (auto done = take(*std::move(token)); !done) return tl::unexpected(done.error());
      if (bytes_ > kMostBytes || blocks_.size() > kDeepestBlocks) {
        return file_.error("found more text than a command line has");
      }
    }
    if (!blocks_.empty()) return file_.error("found an if, a case or a loop without its end");
    if (std::ranges::none_of(commands_.words,
                             [](const ShellWord& word) { return word.text.starts_with("--"); })) {
      take_unused();
    }
    return std::move(commands_);
  }

 private:
  struct Block {
    enum class Kind { conditional, choice, loop };
    Kind kind = Kind::loop;
    bool around = true;  // whether the code around the block is live
    bool taken = false;  // a branch was taken
    bool live = true;    // whether the current branch is live
    std::string subject;
  };

  bool live() const { return !skips_ && (blocks_.empty() || blocks_.back().live); }

  Expected<void> take(ShellToken token) {
    const bool first = std::exchange(first_, false);
    if (token.kind == ShellToken::Kind::sign) return take_sign(token);
    if (token.kind == ShellToken::Kind::arithmetic) return {};
    if (first && !token.quoted) {
      auto known = take_reserved(token);
      if (!known) return tl::unexpected(known.error());
      if (*known) return {};
    }
    return take_word(std::move(token), first);
  }

  Expected<void> take_sign(const ShellToken& sign) {
    first_ = sign.text != "<" && sign.text != ">" && !sign.text.starts_with("<<");
    if (sign.text == "\n" || sign.text == ";" || sign.text == ";;") {
      skips_ = false;
      value_.reset();
    }
    begins_ = begins_ || sign.text.starts_with(";") || sign.text.starts_with("|") ||
              sign.text.starts_with("&");
    if (sign.text == "&&" && value_) skips_ = !*value_;
    if (sign.text == "||" && value_) skips_ = *value_;
    const bool next_case =
        sign.text == ";;" && !blocks_.empty() && blocks_.back().kind == Block::Kind::choice;
    return next_case ? read_pattern() : Expected<void>{};
  }

  // Handles a reserved word; false: the word is none.
  Expected<bool> take_reserved(const ShellToken& token) {
    const std::string& word = token.text;
    Expected<void> done;
    if (word == "if" || word == "elif" || word == "else" || word == "fi") {
      done = take_branch(token);
    } else if (word == "case") {
      done = begin_case(token.line);
    } else if (word == "for" || word == "while" || word == "until" || word == "select") {
      done = begin_loop(token.line);
    } else if (word == "esac" || word == "done") {
      close();
    } else if (word == "[" || word == "[[" || word == "test") {
      done = take_test(token);
    } else if (word != "then" && word != "do" && word != "{" && word != "}") {
      return false;
    } else {
      first_ = true;
    }
    return done ? Expected<bool>(true) : tl::unexpected(done.error());
  }

  void close() {
    if (!blocks_.empty()) blocks_.pop_back();
  }

  Expected<void> take_branch(const ShellToken& token) {
    first_ = true;
    if (token.text == "fi") {
      close();
      return {};
    }
    if (token.text == "if") {
      const bool around = live();
      blocks_.push_back({Block::Kind::conditional, around, false, false, {}});
    }
    if (blocks_.empty() || blocks_.back().kind != Block::Kind::conditional) {
      return file_.error_in_line(token.line, fmt::format("found {} without if", token.text));
    }
    bool holds = true;
    if (token.text != "else") {
      const auto condition = read_condition(token.line);
      if (!condition) return tl::unexpected(condition.error());
      holds = *condition;
    }
    open_branch(holds);
    return {};
  }

  void open_branch(bool holds) {
    Block& block = blocks_.back();
    block.live = block.around && !block.taken && holds;
    block.taken = block.taken || holds;
  }

  // The tokens up to the word `end` where a command may begin; takes that, too.
  Expected<std::vector<ShellToken>> tokens_until(std::string_view end, std::size_t line) {
    std::vector<ShellToken> tokens;
    bool first = true;
    while (true) {
      auto token = tokens_.next(first);
      if (!token) return tl::unexpected(token.error());
      if (token->kind == ShellToken::Kind::end) {
        return file_.error_in_line(line, fmt::format("found no \"{}\" to what begins here", end));
      }
      if (first && token->is_word(end)) return tokens;
      first = token->kind == ShellToken::Kind::sign;
      if (!token->is_sign(";") && !token->is_sign("\n")) tokens.push_back(*std::move(token));
    }
  }

  Expected<bool> read_condition(std::size_t line) {
    tokens_.take_unset_as_empty(true);
    const auto tokens = tokens_until("then", line);
    tokens_.take_unset_as_empty(false);
    first_ = true;
    if (!tokens) return tl::unexpected(tokens.error());
    return decide(*tokens, line, blocks_.back().around && !blocks_.back().taken);
  }

  // Whether a condition holds. `asked`: the answer matters, so an assumption is noted.
  bool decide(const std::vector<ShellToken>& tokens, std::size_t line, bool asked) {
    const ShellCondition condition = shell_condition(tokens);
    if (!condition.decided && asked) {
      commands_.assumptions.push_back(
          fmt::format("line {}: a condition that asks the machine is taken as no", line));
    }
    return condition.decided && condition.holds;
  }

  // A test: [ … ] && what follows.
  Expected<void> take_test(const ShellToken& bracket) {
    std::vector<ShellToken> tokens = {bracket};
    const std::string_view end = bracket.text == "[" ? "]" : bracket.text == "[[" ? "]]" : "";
    tokens_.take_unset_as_empty(true);
    while (!tokens.back().is_word(end)) {
      auto token = tokens_.next(false);
      if (!token) return tl::unexpected(token.error());
      if (token->kind == ShellToken::Kind::end) break;
      if (token->is_sign("\n") || token->is_sign(";")) break;
      tokens.push_back(*std::move(token));
    }
    tokens_.take_unset_as_empty(false);
    if (live()) value_ = decide(tokens, bracket.line, true);
    return {};
  }

  Expected<void> begin_case(std::size_t line) {
    auto subject = tokens_.next(false);
    if (!subject) return tl::unexpected(subject.error());
    const bool around = live();
    blocks_.push_back({Block::Kind::choice, around, false, false, std::move(subject->text)});
    auto in = tokens_until("in", line);
    return in ? read_pattern() : tl::unexpected(in.error());
  }

  // The pattern of a case: a | b )
  Expected<void> read_pattern() {
    bool holds = false;
    while (true) {
      auto token = tokens_.next(false);
      if (!token) return tl::unexpected(token.error());
      if (token->kind == ShellToken::Kind::end || token->is_sign(")")) break;
      if (token->is_word("esac")) {
        close();
        return {};
      }
      holds = holds || (token->kind == ShellToken::Kind::word &&
                        ::fnmatch(token->text.c_str(), blocks_.back().subject.c_str(), 0) == 0);
    }
    open_branch(holds);
    first_ = true;
    return {};
  }

  // Begins a loop. Its counter becomes unknown.
  Expected<void> begin_loop(std::size_t line) {
    const bool around = live();
    auto head = tokens_until("do", line);
    if (!head) return tl::unexpected(head.error());
    if (!head->empty()) {
      const std::string& name = head->front().text;
      variables_.texts.erase(name);
      variables_.arrays.erase(name);
    }
    blocks_.push_back({Block::Kind::loop, around, false, around, {}});
    first_ = true;
    return {};
  }

  Expected<void> take_word(ShellToken token, bool first) {
    const std::string_view name = shell_name(token.text);
    std::string_view rest = std::string_view(token.text).substr(name.size());
    const bool adds = rest.starts_with("+=");
    if (!name.empty() && (adds || rest.starts_with("="))) {
      rest.remove_prefix(adds ? 2 : 1);
      if (rest.empty() && tokens_.opens_array()) return take_array(std::string(name), adds);
      assign(std::string(name), std::string(rest), adds);
      first_ = first;  // a command may follow
      return {};
    }
    if (live()) keep(std::move(token));
    return {};
  }

  void assign(const std::string& name, std::string text, bool adds) {
    if (!live()) return;
    std::ranges::replace(text, kWordEnd, ' ');
    std::string& value = variables_.texts[name];
    value = adds ? value + text : std::move(text);
  }

  Expected<void> take_array(const std::string& name, bool adds) {
    std::vector<ShellToken> elements;
    while (true) {
      auto token = tokens_.next(false);
      if (!token) return tl::unexpected(token.error());
      if (token->kind == ShellToken::Kind::end || token->is_sign(")")) break;
      if (token->kind == ShellToken::Kind::word) add_pieces(*std::move(token), kWordEnds, elements);
    }
    if (!live()) return {};
    std::vector<ShellToken>& array = variables_.arrays[name];
    if (!adds) array.clear();
    std::ranges::move(elements, std::back_inserter(array));
    return {};
  }

  // Adds the elements of the array that the word is, else the words in it.
  void add_pieces(ShellToken token, std::string_view ends, std::vector<ShellToken>& words) {
    const auto array = variables_.arrays.find(token.array);
    if (!token.array.empty() && array != variables_.arrays.end()) {
      for (const ShellToken& element : array->second) {
        if (token.quoted) {
          add(element, words);
        } else {  // without quotes a shell also splits elements of arrays
          add_all(element.text, kAllEnds, element.line, words);
        }
      }
    } else if (token.text.find_first_of(ends) == std::string::npos) {
      if (token.quoted || !token.text.empty()) add(std::move(token), words);
    } else {
      add_all(token.text, ends, token.line, words);
    }
  }

  void add_all(std::string_view text, std::string_view ends, std::size_t line,
               std::vector<ShellToken>& words) {
    for (std::string& piece : pieces_of(text, ends)) {
      add({ShellToken::Kind::word, std::move(piece), line}, words);
    }
  }

  // Beyond the limit nothing more is copied, and the file is refused later.
  void add(ShellToken word, std::vector<ShellToken>& words) {
    if (bytes_ > kMostBytes) return;
    bytes_ += word.text.size() + kBytesOfAWord;
    words.push_back(std::move(word));
  }

  void keep(ShellToken token) {
    if (!token.array.empty() && !variables_.arrays.contains(token.array)) {
      commands_.assumptions.push_back(fmt::format("line {}: {} is empty, the file does not set it",
                                                  token.line,
                                                  shown(std::string_view(token.array))));
      return;
    }
    const bool command = takes_command(previous_) && has_options(token.text);
    std::vector<ShellToken> words;
    previous_ = token.text;
    add_pieces(std::move(token), command ? kAllEnds : kWordEnds, words);
    for (ShellToken& word : words) {
      commands_.words.push_back({std::move(word.text), word.line, std::exchange(begins_, false)});
    }
  }

  // Whether a quoted command comes next: `bash -lc "…"`, `eval "…"`.
  static bool takes_command(std::string_view word) {
    return word == "eval" ||
           (word.starts_with("-") && !word.starts_with("--") && word.ends_with("c"));
  }

  // Takes options from unused variables and arrays: the file only defines them for another script.
  void take_unused() {
    for (const auto& [name, elements] : variables_.arrays) {
      for (const ShellToken& element : elements) {
        if (!element.text.starts_with("--")) {
          commands_.words.push_back({element.text, element.line});
          continue;
        }
        for (std::string& piece : pieces_of(element.text, kAllEnds)) {
          commands_.words.push_back({std::move(piece), element.line});
        }
      }
    }
    for (const auto& [name, text] : variables_.texts) {
      if (!has_options(text)) continue;
      for (std::string& piece : pieces_of(text, kAllEnds)) {
        commands_.words.push_back({std::move(piece)});
      }
    }
  }

  const ForeignFile& file_;
  ShellVariables variables_;
  ShellTokens tokens_;
  ShellCommands commands_;
  std::vector<Block> blocks_;
  std::string previous_;       // the word before
  std::size_t bytes_ = 0;      // copied into words and arrays
  bool first_ = true;          // a command may begin
  bool begins_ = false;        // the next word begins a command, after `;`, `|` or `&`
  bool skips_ = false;         // skipping, after a test that decides `&&` or `||`
  std::optional<bool> value_;  // result of the test before `&&` or `||`
};

}  // namespace

Expected<ShellCommands> commands_of(const ForeignFile& file) { return Script(file).read(); }

}  // namespace trainyard
