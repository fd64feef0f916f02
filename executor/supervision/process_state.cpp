#include "executor/supervision/process_state.h"

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <string>

namespace trainyard {
namespace {

// The state letter of proc(5); 0: there is no such process.
char state_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() ? text[end + 2] : '\0';
}

}  // namespace

bool is_alive(int process) {
  const char state = state_of(process);
  return ::kill(process, 0) == 0 && state != 'Z' && state != 'X';
}

bool is_stopped(int process) {
  const char state = state_of(process);
  return state == 'T' || state == 't';
}

}  // namespace trainyard
