// Errors as values (docs/adr/0002-errors.md). `Error` says where (a JSON pointer, a file, a call)
// and what was found and what is allowed, in one line. Alias of tl::expected until C++23 can
// replace it.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace trainyard {

struct Error {
  std::string where;    // JSON pointer ("/plan/tensor_parallel"), file or call; may be empty
  std::string message;  // found …, allowed …: one line, no trailing full stop
};

template <typename T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string where, std::string message) {
  return tl::unexpected<Error>(Error{std::move(where), std::move(message)});
}

}  // namespace trainyard
