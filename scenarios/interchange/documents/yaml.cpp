#include "scenarios/interchange/documents/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <unordered_set>

namespace trainyard {
namespace {

constexpr std::size_t kLargestYaml = std::size_t{1} << 20;  // bytes
constexpr std::size_t kMostYamlValues = 100'000;

std::size_t line_of(const YAML::Mark& mark) { return static_cast<std::size_t>(mark.line) + 1; }

bool is_one_of(std::string_view text, const std::array<std::string_view, 9>& words) {
  return std::ranges::find(words, text) != words.end();
}

template <typename Number>
std::optional<Json> yaml_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole ? std::optional<Json>(value) : std::nullopt;
}

Json plain_value(const std::string& text) {
  constexpr std::array<std::string_view, 9> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                     "YES",  "on",   "On",   "ON"};
  constexpr std::array<std::string_view, 9> kFalse = {"false", "False", "FALSE", "no", "No",
                                                      "NO",    "off",   "Off",   "OFF"};
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (is_one_of(text, kTrue)) return true;
  if (is_one_of(text, kFalse)) return false;
  if (const auto value = yaml_number<std::int64_t>(text)) return *value;
  const bool digits = text.find_first_of("0123456789") != text.npos;
  if (const auto value = yaml_number<double>(text); value && digits) return *value;
  return text;
}

// Ignores all events after the first error: the parser cannot be stopped, but the size of the text
// bounds its work.
class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(const ForeignFile& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, anchor, "", nullptr);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fail(mark, "found an alias; allowed: every value written out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    const bool key = !open_.empty() && open_.back()->is_object() && !keys_.back();
    add(mark, anchor, quoted ? "" : tag, quoted || key ? Json(value) : plain_value(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, tag, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, tag, Json::object());
  }
  void OnMapEnd() override { close(); }

  Json root;
  std::optional<Error> error;

 private:
  void fail(const YAML::Mark& mark, std::string message) {
    if (!error) error = file_.error_in_line(line_of(mark), std::move(message)).value();
  }

  Json* add(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag, Json value) {
    if (anchor != YAML::NullAnchor) fail(mark, "found an anchor; allowed: every value written out");
    if (!tag.empty() && tag != "?") fail(mark, "found a tag; allowed: plain values");
    if (++values_ > kMostYamlValues) {
      fail(mark,
           fmt::format("found more than {} values; allowed: at most as many", kMostYamlValues));
    }
    if (error) return nullptr;
    if (open_.empty()) return &(root = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    if (!keys_.back()) {
      if (!value.is_string()) {
        fail(mark, "found a key that is no text; allowed: a name");
      } else if (!seen_.back().insert(value.get_ref<const std::string&>()).second) {
        fail(mark, fmt::format("found the key {} twice; allowed: once", shown(value)));
      } else {
        keys_.back() = value.get<std::string>();
      }
      return nullptr;
    }
    Json& member = append_member(parent, *keys_.back(), std::move(value));
    keys_.back().reset();
    return &member;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag, Json container) {
    if (open_.size() >= kDeepestNesting) {
      fail(mark, fmt::format("nested deeper than {} levels", kDeepestNesting));
    }
    Json* added = add(mark, anchor, tag, std::move(container));
    if (added == nullptr) return;
    open_.push_back(added);
    keys_.emplace_back();
    seen_.emplace_back();
  }

  void close() {
    if (error || open_.empty()) return;
    open_.pop_back();
    keys_.pop_back();
    seen_.pop_back();
  }

  const ForeignFile& file_;
  std::vector<Json*> open_;
  // For each open object, the key that waits for its value.
  std::vector<std::optional<std::string>> keys_;
  std::vector<std::unordered_set<std::string>> seen_;  // for each open object, its keys so far
  std::size_t values_ = 0;
};

}  // namespace

Expected<Json> parse_yaml(const ForeignFile& file) {
  if (file.text.size() > kLargestYaml) {
    return file.error(
        fmt::format("has {} bytes; allowed: at most {} (1 MiB)", file.text.size(), kLargestYaml));
  }
  std::istringstream stream(file.text);
  YamlBuilder builder(file);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& exception) {
    if (!builder.error) {
      return file.error_in_line(
          line_of(exception.mark),
          fmt::format("found text that is not YAML ({})", shown(std::string_view(exception.msg))));
    }
  }
  if (builder.error) return tl::unexpected(*builder.error);
  return std::move(builder.root);
}

}  // namespace trainyard
