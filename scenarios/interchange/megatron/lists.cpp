#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "scenarios/interchange/megatron/megatron.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostEntries = 100'000;
constexpr int kDeepest = 64;

Error no_list(std::string_view text) {
  return {"",
          fmt::format("found {}; allowed: lists of numbers, added and multiplied", shown(text))};
}

// sum := product ('+' product)*; product := (list | '(' sum ')' | number '*' …) ('*' number)?
class ListParser {
 public:
  explicit ListParser(std::string_view text) : text_(text) {}

  std::optional<std::vector<int>> parse() {
    auto values = sum(0);
    return at_ == text_.size() ? values : std::nullopt;
  }

 private:
  using List = std::optional<std::vector<int>>;

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::optional<int> number() {
    peek();
    int value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc() || value < 0) return std::nullopt;
    at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
    return value;
  }

  List sum(int depth) {
    List values = product(depth);
    while (values && take('+')) {
      const List more = product(depth);
      if (!more || values->size() + more->size() > kMostEntries) return std::nullopt;
      values->insert(values->end(), more->begin(), more->end());
    }
    return values;
  }

  List product(int depth) {
    List values = primary(depth);
    while (values && take('*')) {
      const auto times = number();
      if (!times) return std::nullopt;
      const std::vector<int> once = std::move(*values);
      const int copies = once.empty() ? 0 : *times;
      repeated_ += once.size() * static_cast<std::size_t>(copies);
      if (repeated_ > kMostEntries) return std::nullopt;
      values.emplace();
      for (int i = 0; i < copies; ++i) values->insert(values->end(), once.begin(), once.end());
    }
    return values;
  }

  List primary(int depth) {
    if (depth >= kDeepest) return std::nullopt;
    if (take('(')) {
      List values = sum(depth + 1);
      return take(')') ? values : std::nullopt;
    }
    if (!take('[')) return std::nullopt;
    std::vector<int> values;
    if (take(']')) return values;
    do {
      const auto value = number();
      if (!value || values.size() >= kMostEntries) return std::nullopt;
      values.push_back(*value);
    } while (take(','));
    return take(']') ? List(values) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t repeated_ = 0;  // entries that repetitions made, even if dropped again
};

std::optional<std::string> written_out(std::string_view text);

// Takes a letter, or the contents of a parenthesis, off `text`.
std::optional<std::string> take_unit(std::string_view& text) {
  const char first = text.front();
  text.remove_prefix(1);
  if (first != '(') return std::string(1, first);
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(0, end);
  text.remove_prefix(end + 1);
  return written_out(inside);
}

// Takes the "*3" after a unit off `text`; 1 if there is none.
std::optional<std::size_t> take_times(std::string_view& text) {
  std::size_t times = 1;
  if (!text.starts_with('*')) return times;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, times);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return times;
}

// Writes out "(ab|c)*3" and "x*3", as Megatron-LM's two substitutions do.
std::optional<std::string> written_out(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto unit = take_unit(text);
    const auto times = unit ? take_times(text) : std::nullopt;
    if (!times || *times > kMostEntries) return std::nullopt;
    if (out.size() + unit->size() * *times > kMostEntries) return std::nullopt;
    for (std::size_t i = 0; i < *times; ++i) out += *unit;
  }
  return out;
}

std::string repeated(std::string_view unit, int times) {
  if (times == 0) return "";
  return times == 1 ? std::string(unit) : fmt::format("{}*{}", unit, times);
}

}  // namespace

Expected<std::vector<int>> parse_python_list(std::string_view text) {
  const auto values = ListParser(text).parse();
  if (values) return *values;
  return tl::unexpected(no_list(text));
}

std::string python_list(const std::vector<int>& values) {
  std::vector<std::string> parts;
  for (auto at = values.begin(); at != values.end();) {
    const auto end = std::find_if(at, values.end(), [&](int value) { return value != *at; });
    parts.push_back(fmt::format("[{}]*{}", *at, end - at));
    at = end;
  }
  return fmt::format("({})", fmt::join(parts, "+"));
}

namespace {

std::string mtp_text(int layers) { return std::string(static_cast<std::size_t>(layers), 'm'); }

}  // namespace

Expected<std::vector<int>> parse_pipeline_layout(std::string_view text, int mtp_layers) {
  std::string plain(text);
  std::erase(plain, ',');
  const auto whole = written_out(plain);
  const auto bad = [&](std::string_view what) {
    return failure("", fmt::format("found {}; allowed: {}", shown(text), what));
  };
  if (!whole || whole->find_first_not_of("ELtm|") != std::string::npos) {
    return bad("E, t and L, stages between |");
  }
  const auto predicting = static_cast<std::size_t>(std::ranges::count(*whole, 'm'));
  const std::string end = mtp_text(mtp_layers) + "L";
  if (predicting + 1 != end.size() || (predicting > 0 && !whole->ends_with(end))) {
    return bad(mtp_layers == 0 ? "no layer of multi-token prediction (m)"
                               : fmt::format("{} at the end", end));
  }
  const bool ends = whole->starts_with('E') && whole->ends_with('L') &&
                    std::ranges::count(*whole, 'E') == 1 && std::ranges::count(*whole, 'L') == 1;
  if (!ends) return bad("the embedding E first and the loss L last");
  std::vector<int> layers(1);
  for (const char c : *whole) {
    if (c == '|') layers.push_back(0);
    layers.back() += c == 't' ? 1 : 0;
  }
  return layers;
}

std::string pipeline_layout(const std::vector<int>& layers, int mtp_layers) {
  std::string text = "E";
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    text += (chunk == 0 ? "" : "|") + repeated("t", layers[chunk]);
  }
  return text + mtp_text(mtp_layers) + "L";
}

}  // namespace trainyard
