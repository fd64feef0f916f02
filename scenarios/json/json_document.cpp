#include "scenarios/json/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace trainyard {
namespace {

constexpr std::size_t kLongestShown = 80;  // characters

// Bytes of the first `characters` characters; an invalid byte counts as one.
std::size_t prefix_length(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  while (at < text.size() && characters > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
    --characters;
  }
  return at;
}

std::string shortened(std::string text) {
  const std::size_t whole = prefix_length(text, kLongestShown);
  if (whole == text.size()) return text;
  text.resize(prefix_length(text, kLongestShown - 1));
  return text + "…";
}

std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const std::size_t line = before.rfind('\n');
  const std::size_t start = line == std::string_view::npos ? 0 : line + 1;
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     before.size() - start + 1);
}

// The library's explanation of a syntax error, without its position and token.
std::string explanation(std::string_view what) {
  if (const std::size_t reason = what.rfind(" - "); reason != std::string_view::npos) {
    what.remove_prefix(reason + 3);
  }
  constexpr std::string_view kExpected = "; expected ";
  const std::size_t expected = what.rfind(kExpected);
  const bool says = expected != std::string_view::npos;
  if (says) what.remove_prefix(expected + kExpected.size());
  return fmt::format("{}{}", says ? "expected " : "", what.substr(0, what.find("; last read")));
}

// Builds the value event by event: no recursion, so the text cannot overflow the stack.
class JsonBuilder {
 public:
  explicit JsonBuilder(std::string_view text) : text_(text) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }

  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = open_.back();
    level.key = name;
    if (level.keys.insert(name).second) return true;
    return fail(pointer(), "found this key twice; allowed: once");
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& exception) {
    const std::size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    constexpr int kNumberOverflow = 406;
    if (exception.id == kNumberOverflow) {
      return fail(pointer(),
                  fmt::format("found {}; allowed: a number below 1.8e308", shortened(token)));
    }
    const std::string_view rest = text_.substr(at);
    return fail(line_and_column(text_, at),
                fmt::format("found {}; allowed: JSON ({})",
                            rest.empty() ? "the end of the file" : shown(rest.substr(0, 20)),
                            explanation(exception.what())));
  }

  Json root;
  Error error;

 private:
  struct Level {
    Json* container = nullptr;
    std::string key;                       // in an object: the last key read
    std::unordered_set<std::string> keys;  // in an object: all keys so far
  };

  Json* add(Json element) {
    if (open_.empty()) return &(root = std::move(element));
    Level& level = open_.back();
    if (level.container->is_array()) {
      return &level.container->get_ref<Json::array_t&>().emplace_back(std::move(element));
    }
    // `keys` knows that it is new.
    return &append_member(*level.container, level.key, std::move(element));
  }

  bool open(Json container) {
    if (open_.size() >= kDeepestNesting) {
      return fail(pointer(), fmt::format("nested deeper than {} levels", kDeepestNesting));
    }
    open_.push_back({.container = add(std::move(container))});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool fail(std::string where, std::string message) {
    error = {std::move(where), std::move(message)};
    return false;
  }

  // The pointer of the value that is being read.
  std::string pointer() const {
    std::string path;
    for (const Level& level : open_) {
      const bool within = &level != &open_.back();  // its open member is already counted
      path += level.container->is_array()
                  ? fmt::format("/{}", level.container->size() - (within ? 1 : 0))
                  : pointer_step(level.key);
    }
    return path;
  }

  std::string_view text_;
  std::vector<Level> open_;
};

// Encodings other than plain UTF-8 are named, because the parser's message would not.
std::string encoding_problem(std::string_view text) {
  constexpr std::string_view kAllowed = "allowed: UTF-8 without a byte-order mark";
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") ||
      text.starts_with("\xFE\xFF")) {
    return fmt::format("found a byte-order mark; {}", kAllowed);
  }
  if (text.find('\0') != std::string_view::npos)
    return fmt::format("found a NUL byte; {}", kAllowed);
  return {};
}

}  // namespace

Expected<Json> parse_json(std::string_view text) {
  if (std::string problem = encoding_problem(text); !problem.empty()) {
    return failure("", std::move(problem));
  }
  JsonBuilder builder(text);
  if (Json::sax_parse(text, &builder)) return std::move(builder.root);
  return tl::unexpected(std::move(builder.error));
}

Json& append_member(Json& object, const std::string& key, Json value) {
  auto& members = object.get_ref<Json::object_t&>();
  return static_cast<std::vector<std::pair<const std::string, Json>>&>(members)
      .emplace_back(key, std::move(value))
      .second;
}

std::string text_of(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string shown(const Json& value) {
  if (value.is_string()) return shown(std::string_view(value.get_ref<const std::string&>()));
  if (value.is_object()) {
    if (value.empty()) return "an empty object";
    return fmt::format("an object of {} key{}", value.size(), value.size() == 1 ? "" : "s");
  }
  if (value.is_array()) {
    return value.empty() ? "an empty list" : fmt::format("a list of {}", value.size());
  }
  return shortened(json_line(value));
}

std::string shown(std::string_view text) {
  return shortened(json_line(std::string(text.substr(0, prefix_length(text, kLongestShown)))));
}

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char c : key.substr(0, prefix_length(key, kLongestShown))) {
    step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  std::string escaped = json_line(step);  // control characters and invalid bytes
  return escaped.substr(1, escaped.size() - 2);
}

}  // namespace trainyard
