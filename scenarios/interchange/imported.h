// What a reader of another tool's file returns: one of our documents, and what a user must know
// about it. A file that says something this program cannot represent is refused, never read in
// part.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct Imported {
  std::string document;                  // JSON text
  std::string summary;                   // one line
  std::vector<std::string> assumptions;  // what the file leaves out, and what is assumed
  std::vector<std::string> ignored;      // what it says without effect on time or memory
};

}  // namespace trainyard
