// Colour, used only on a terminal whose user did not switch it off (https://no-color.org).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace trainyard {

class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}

  std::string strong(std::string_view text) const { return coded("1", text); }
  std::string faint(std::string_view text) const { return coded("2", text); }
  std::string good(std::string_view text) const { return coded("32", text); }
  std::string bad(std::string_view text) const { return coded("1;31", text); }
  // colour of useful time
  std::string work(std::string_view text) const { return coded("36", text); }
  // of all other time
  std::string overhead(std::string_view text) const { return coded("33", text); }

 private:
  std::string coded(std::string_view code, std::string_view text) const;

  bool colour_;
};

bool is_terminal(std::FILE* stream);
Style style_for(std::FILE* stream);

}  // namespace trainyard
