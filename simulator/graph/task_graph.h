// What the simulator plays: for every rank a list of tasks on streams, with dependencies between
// them, and the groups over which ranks talk to each other. Ranks that run the same list share it,
// so a cluster's graph is as large as its classes of ranks, not as its ranks.
//
// A stream runs its tasks in the order of the list, one at a time (as a CUDA stream does); a task
// starts when its dependencies are done and its stream is free.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/collective.h"
#include "model/units.h"
#include "simulator/virtual_time.h"

namespace trainyard {

// Messages go forward in `pipeline` and back in `gradient`; `receive` is a stream of its own:
// waiting for a message holds up no send.
enum class Stream : std::uint8_t {
  compute,
  tensor,
  context,
  expert,
  pipeline,
  gradient,
  receive,
  data,
  embedding,
  copy,  // to the host
  fetch  // and back
};
inline constexpr int kStreams = 11;
std::string_view name_of(Stream stream);

enum class TaskKind : std::uint8_t {
  compute,     // takes its duration; slower on a slow rank and beside communication
  copy,        // takes its duration, whatever else runs
  collective,  // starts when every member of the group has come to it; ends for all at once
  send,        // to the group's other rank; done when the message is there
  receive,     // done when the message that was sent as the same one of its group is there
};

// A collective or a message. The n-th one of a group is the n-th one of each of its members.
struct Call {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  const CollectiveAlgorithm* algorithm = nullptr;  // of that operation
  Bytes message;                                   // S of handbook §6
  double stretch = 1;  // time on the links over the algorithm's closed form, as calibrated
  const CollectiveAlgorithm* otherwise = nullptr;  // on groups that cannot run that one
  // Of an exchange that sends a token once to each domain, where it is passed on at the same time:
  // what leaves a domain over the message, which is what moves inside one. 0: not of that kind.
  double leaving = 0;
  double contention = 1;  // how far it slows compute beside it (Conditions::overlap_slowdown)
  friend bool operator==(const Call&, const Call&) = default;
};

struct Task {
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  std::int32_t load = -1;     // in its rank's row of TaskGraph::loads; −1: it does what it says
  Picoseconds duration{0};    // compute, copy
  std::int32_t channel = -1;  // others: which of its rank's groups
  std::int32_t call = -1;     // collective, send: in TaskGraph::calls
};

// Memory that is taken when one task starts and given back when another ends.
struct Buffer {
  Bytes bytes;
  std::int32_t allocated_by = -1;  // −1: there from the beginning
  std::int32_t freed_by = -1;      // −1: stays
  std::int32_t owner = 0;          // what it is for, in the caller's numbering
};

// The tasks of one class of ranks. Dependencies name tasks by their place in the list.
struct TaskList {
  std::vector<Task> tasks;
  std::vector<std::int32_t> dependencies;            // of all tasks, one after the other
  std::vector<std::int32_t> first_dependency = {0};  // of each task, and one past the last
  std::vector<Buffer> buffers;
  std::vector<std::string> names;  // of each task, for sentences and traces; may be empty

  // Appends a task; returns its place.
  std::int32_t add(const Task& task, std::span<const std::int32_t> after = {});
  std::span<const std::int32_t> dependencies_of(std::int32_t task) const;
  // The last task before each one on its stream; −1: none.
  std::vector<std::int32_t> before_on_stream() const;
  // "3" where there are no names.
  std::string name_of(std::int32_t task) const;
};

struct TaskRank {
  std::int32_t list = 0;             // in TaskGraph::lists
  std::vector<std::int32_t> groups;  // channel -> TaskGraph::groups
  std::int32_t loads = -1;           // in TaskGraph::loads; −1: all its tasks do what they say
  friend bool operator==(const TaskRank&, const TaskRank&) = default;
};

// Members in the order of the group; for messages {sender, receiver}.
using TaskGroup = std::vector<std::int32_t>;
using GroupView = std::span<const std::int32_t>;

// Of runs that lie one after the other in `all`, each up to its entry of `ends`.
template <typename T>
std::span<const T> run_at(std::size_t run, const std::vector<T>& all,
                          const std::vector<std::size_t>& ends) {
  const std::size_t first = run == 0 ? 0 : ends[run - 1];
  return std::span(all).subspan(first, ends[run] - first);
}

// Groups of devices, in one piece of memory.
class GroupCopies {
 public:
  std::size_t size() const { return ends_.size(); }
  GroupView operator[](std::size_t copy) const { return run_at(copy, members_, ends_); }
  void add(GroupView members) {
    members_.insert(members_.end(), members.begin(), members.end());
    ends_.push_back(members_.size());
  }

 private:
  std::vector<std::int32_t> members_;
  std::vector<std::size_t> ends_;
};

// Unfolded, rank r is device r. Folded, a rank stands for all devices that behave as it does, and a
// group for as many groups of devices: `copies` has them, and their traffic shares the links. That
// all of them do behave alike is checked where it matters, on the links
// (simulator/graph/symmetry.h).
struct TaskGraph {
  std::vector<TaskList> lists;
  std::vector<TaskRank> ranks;
  std::vector<TaskGroup> groups;
  std::vector<Call> calls;
  std::vector<GroupCopies> copies = {};  // by group; empty: nothing is folded
  // Of ranks whose work is uneven: how much of its duration, or of the bytes of its call, a task
  // has. A call has as much as the busiest of its members.
  std::vector<std::vector<double>> loads = {};

  // In `lists`.
  std::size_t list_of(std::int32_t rank) const {
    return static_cast<std::size_t>(ranks[static_cast<std::size_t>(rank)].list);
  }

  double load_of(std::int32_t rank, const Task& task) const {
    const std::int32_t row = ranks[static_cast<std::size_t>(rank)].loads;
    if (task.load < 0 || row < 0) return 1;
    return loads[static_cast<std::size_t>(row)][static_cast<std::size_t>(task.load)];
  }

  bool folded() const { return !copies.empty(); }
};

}  // namespace trainyard
