// What a reader of another tool's file gives back: a document of ours, and what a user must know of
// it. A file that says something this program cannot take is refused, never read in part.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct Imported {
  std::string document;                  // JSON text
  std::string summary;                   // one line
  std::vector<std::string> assumptions;  // what the file does not say, and what stands instead
  std::vector<std::string> ignored;      // what it says that changes neither time nor memory
};

}  // namespace trainyard
