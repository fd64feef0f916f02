// What the simulator plays: for every rank a list of tasks on streams, with dependencies between
// them, and the groups of ranks that communicate. Ranks that run the same list share it, so a graph
// grows with the number of different lists rather than with the number of ranks.
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

// The streams of a rank. Sends of the forward pass go on `pipeline`, those of the backward pass on
// `gradient`; `receive` is apart, so that waiting for a message holds up no send.
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
  copy,  // device to host
  fetch  // host to device
};
inline constexpr int kStreams = 11;
std::string_view name_of(Stream stream);

enum class TaskKind : std::uint8_t {
  compute,     // takes its duration, longer on a slow rank or beside communication
  copy,        // takes its duration, whatever else runs
  collective,  // starts when all members of the group have reached it; ends for all at once
  send,        // to the group's other rank; done when the message has arrived
  receive,     // the n-th receive of a group is done when its n-th message has arrived
};

// A collective or a message. The n-th call of a group is the n-th one of each of its members.
struct Call {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  const CollectiveAlgorithm* algorithm = nullptr;  // of that operation
  Bytes message;                                   // S of handbook §6
  double stretch = 1;  // calibrated time on the links / the algorithm's closed form
  const CollectiveAlgorithm* otherwise = nullptr;  // used on groups that cannot run `algorithm`
  // For an exchange that sends a token once to each domain, where the token is passed on: the bytes
  // that leave a domain over `message`, the bytes that move inside one. 0: any other call.
  double leaving = 0;
  double contention = 1;  // how far it slows compute, 0 to 1 (Conditions::overlap_slowdown)
  friend bool operator==(const Call&, const Call&) = default;
};

struct Task {
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  std::int32_t load = -1;     // index in its rank's row of TaskGraph::loads; −1: a load of 1
  Picoseconds duration{0};    // of compute and copy tasks
  std::int32_t channel = -1;  // of other tasks: index in TaskRank::groups
  std::int32_t call = -1;     // of collectives and sends: index in TaskGraph::calls
};

// Memory that is allocated when one task starts and freed when another one ends.
struct Buffer {
  Bytes bytes;
  std::int32_t allocated_by = -1;  // −1: allocated before the step
  std::int32_t freed_by = -1;      // −1: never freed
  std::int32_t owner = 0;          // what the memory is for; the caller chooses the numbers
};

// The tasks of all ranks that run the same ones. Dependencies name tasks by their place in the
// list.
struct TaskList {
  std::vector<Task> tasks;
  std::vector<std::int32_t> dependencies;            // of task 0, then of task 1, …
  std::vector<std::int32_t> first_dependency = {0};  // of each task, and one past the last
  std::vector<Buffer> buffers;
  std::vector<std::string> names;  // of each task, for messages and traces; may be empty

  // Appends a task that waits for the tasks `after`; returns its place.
  std::int32_t add(const Task& task, std::span<const std::int32_t> after = {});
  std::span<const std::int32_t> dependencies_of(std::int32_t task) const;
  // For each task the one before it on its stream; −1: none.
  std::vector<std::int32_t> before_on_stream() const;
  // The task's name, or "task 3" where there are no names.
  std::string name_of(std::int32_t task) const;
};

struct TaskRank {
  std::int32_t list = 0;             // index in TaskGraph::lists
  std::vector<std::int32_t> groups;  // for each channel an index in TaskGraph::groups
  std::int32_t loads = -1;           // index in TaskGraph::loads; −1: all loads are 1
  friend bool operator==(const TaskRank&, const TaskRank&) = default;
};

// Members in order; a message's group is {sender, receiver}.
using TaskGroup = std::vector<std::int32_t>;
using GroupView = std::span<const std::int32_t>;

// The run-th of the runs that lie one after the other in `all`; run i ends before index ends[i].
template <typename T>
std::span<const T> run_at(std::size_t run, const std::vector<T>& all,
                          const std::vector<std::size_t>& ends) {
  const std::size_t first = run == 0 ? 0 : ends[run - 1];
  return std::span(all).subspan(first, ends[run] - first);
}

// Many groups of devices, stored in one piece of memory.
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

// Unfolded, rank r is device r. Folded, one rank stands for all devices that behave alike, and one
// group for as many groups of devices: those are its `copies`, whose traffic shares the links. That
// they do behave alike is checked on the links (simulator/graph/symmetry.h).
struct TaskGraph {
  std::vector<TaskList> lists;
  std::vector<TaskRank> ranks;
  std::vector<TaskGroup> groups;
  std::vector<Call> calls;
  std::vector<GroupCopies> copies = {};  // of each group; empty: nothing is folded
  // Factors on tasks' durations or on their calls' bytes, where ranks have uneven work: a row for
  // each kind of rank. A call has the largest factor of its members.
  std::vector<std::vector<double>> loads = {};

  // The index in `lists` of a rank's list.
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
