// What an export target cannot express. Only the first refusal is kept, as the error of the export.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "model/expected.h"

namespace trainyard {

class Refusals {
 public:
  explicit Refusals(std::string target) : target_(std::move(target)) {}

  // `allowed`: what the target can express for the key at `pointer`.
  void add(std::string pointer, std::string_view found, std::string_view allowed) {
    if (error_) return;
    error_ = Error{std::move(pointer),
                   fmt::format("found {}; allowed in {}: {}", found, target_, allowed)};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string target_;
  std::optional<Error> error_;
};

}  // namespace trainyard
