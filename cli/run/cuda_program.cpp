#include "cli/run/cuda_program.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "executor/cuda/cuda_backend.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace

std::optional<Error> become_cuda_program() {
  if (has_cuda()) return std::nullopt;
  std::error_code error;
  const fs::path program =
      fs::read_symlink("/proc/self/exe", error).parent_path() / "trainyard-cuda";
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> list;
  list.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) list.push_back(argument.data());
  list.push_back(nullptr);
  if (fs::exists(program, error)) ::execv(program.c_str(), list.data());
  return no_cuda_device();
}

}  // namespace trainyard
