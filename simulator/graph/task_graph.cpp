#include "simulator/graph/task_graph.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace trainyard {
namespace {

// In the order of the enumerators. Traces show these names.
constexpr std::array<std::string_view, kStreams> kStreamNames = {
    "compute",       "tensor parallel", "context parallel", "expert parallel",
    "sends forward", "sends backward",  "receives",         "data parallel",
    "embedding",     "copies",          "fetches"};
static_assert(static_cast<int>(Stream::fetch) + 1 == kStreams && !kStreamNames.back().empty());

}  // namespace

std::string_view name_of(Stream stream) { return kStreamNames[static_cast<std::size_t>(stream)]; }

std::int32_t TaskList::add(const Task& task, std::span<const std::int32_t> after) {
  tasks.push_back(task);
  dependencies.insert(dependencies.end(), after.begin(), after.end());
  first_dependency.push_back(static_cast<std::int32_t>(dependencies.size()));
  return static_cast<std::int32_t>(tasks.size()) - 1;
}

std::span<const std::int32_t> TaskList::dependencies_of(std::int32_t task) const {
  const auto first = static_cast<std::size_t>(first_dependency[static_cast<std::size_t>(task)]);
  const auto last = static_cast<std::size_t>(first_dependency[static_cast<std::size_t>(task) + 1]);
  return std::span(dependencies).subspan(first, last - first);
}

std::vector<std::int32_t> TaskList::before_on_stream() const {
  std::vector<std::int32_t> before;
  before.reserve(tasks.size());
  std::array<std::int32_t, kStreams> last;
  last.fill(-1);
  for (const Task& task : tasks) {
    std::int32_t& on_stream = last[static_cast<std::size_t>(task.stream)];
    before.push_back(std::exchange(on_stream, static_cast<std::int32_t>(before.size())));
  }
  return before;
}

std::string TaskList::name_of(std::int32_t task) const {
  const auto place = static_cast<std::size_t>(task);
  return place < names.size() ? names[place] : fmt::format("task {}", task);
}

}  // namespace trainyard
