// As much of NCCL as executor/cuda/nccl_transport.cpp calls, among threads of one process. A call
// moves its data before it returns. Members that make different calls, or use other counts or
// types, get an error instead of NCCL's deadlock.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/emulated/runtime.h"

// The namespace has a name because the library's own type contains its types.
namespace emulated_nccl {

using Bytes = std::vector<char>;

// A member's part in a call: what must be equal for all members, and its numbers.
struct Contribution {
  std::string call;
  Bytes bytes;
};

// One communicator.
class Meeting {
 public:
  explicit Meeting(int ranks) : all_(static_cast<std::size_t>(ranks)), barrier_(ranks) {}
  int ranks() const { return static_cast<int>(all_.size()); }

  // The contributions of all members, once each has come; nothing if they made different calls.
  std::vector<Contribution> exchange(int rank, Contribution mine) {
    all_[static_cast<std::size_t>(rank)] = std::move(mine);
    barrier_.arrive_and_wait();
    std::vector<Contribution> found = all_;
    barrier_.arrive_and_wait();
    for (const Contribution& of : found) {
      if (of.call != found.front().call) return {};
    }
    return found;
  }

  // Two members are connected during their first message, for which the receiver must be in its own
  // call.
  void expect(int from, int to) {
    const std::lock_guard lock(mutex_);
    expected_.insert({from, to});
    arrived_.notify_all();
  }
  void send(int from, int to, Bytes bytes) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return expected_.contains({from, to}); });
    messages_[{from, to}].push_back(std::move(bytes));
    arrived_.notify_all();
  }
  Bytes receive(int from, int to) {
    std::unique_lock lock(mutex_);
    std::deque<Bytes>& waiting = messages_[{from, to}];
    arrived_.wait(lock, [&] { return !waiting.empty(); });
    Bytes bytes = std::move(waiting.front());
    waiting.pop_front();
    return bytes;
  }

  // The communicator that the members of a split with the same name share.
  std::shared_ptr<Meeting> part(const std::string& name, int ranks) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Meeting>& part = parts_[name];
    if (part == nullptr) part = std::make_shared<Meeting>(ranks);
    return part;
  }

 private:
  std::vector<Contribution> all_;
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::set<std::pair<int, int>> expected_;
  std::map<std::pair<int, int>, std::deque<Bytes>> messages_;
  std::map<std::string, std::shared_ptr<Meeting>> parts_;
};

struct Member {
  std::shared_ptr<Meeting> meeting;
  int rank = 0;
  int splits = 0;
};

struct Library {
  Meeting meetings{1};  // its parts are those that a unique id names
  std::atomic<int> ids{0}, aborted{0};
  std::atomic<ncclResult_t> error{ncclSuccess};
};
Library& library() {
  static Library the_library;
  return the_library;
}

// Calls of this thread between ncclGroupStart() and ncclGroupEnd(); sends run before calls that
// wait.
struct Grouped {
  int depth = 0;
  std::vector<std::function<ncclResult_t()>> sends, others;
};
thread_local Grouped grouped;

ncclResult_t run_or_keep(bool sends, std::function<ncclResult_t()> call) {
  if (grouped.depth == 0) return call();
  (sends ? grouped.sends : grouped.others).push_back(std::move(call));
  return ncclSuccess;
}

std::size_t size_of(ncclDataType_t type) {
  return type == ncclFloat32 ? 4 : type == ncclUint8 ? 1 : 2;
}
Bytes bytes_at(const void* data, std::size_t count, ncclDataType_t type) {
  const auto* from = static_cast<const char*>(data);
  return {from, from + count * size_of(type)};
}

float number_at(const Bytes& bytes, std::size_t i, ncclDataType_t type) {
  if (type == ncclFloat32) return reinterpret_cast<const float*>(bytes.data())[i];
  if (type == ncclHalf) return __half2float(reinterpret_cast<const __half*>(bytes.data())[i]);
  return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(bytes.data())[i]);
}
void put_number(void* to, std::size_t i, ncclDataType_t type, float number) {
  if (type == ncclFloat32) static_cast<float*>(to)[i] = number;
  if (type == ncclHalf) static_cast<__half*>(to)[i] = __float2half(number);
  if (type == ncclBfloat16) static_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16(number);
}

// Reduces numbers first … first + count − 1 of all members into `to`.
void reduce(const std::vector<Contribution>& all, std::size_t first, std::size_t count,
            ncclDataType_t type, ncclRedOp_t how, void* to) {
  for (std::size_t i = 0; i < count; ++i) {
    float total = number_at(all.front().bytes, first + i, type);
    for (std::size_t member = 1; member < all.size(); ++member) {
      const float other = number_at(all[member].bytes, first + i, type);
      total = how == ncclMax ? std::max(total, other) : total + other;
    }
    put_number(to, i, type, total);
  }
}

std::string name_of(const char* call, std::size_t count, ncclDataType_t type, int more) {
  return std::string(call) + " " + std::to_string(count) + " " + std::to_string(type) + " " +
         std::to_string(more);
}

}  // namespace emulated_nccl
using namespace emulated_nccl;

// These names are NCCL's own.
// NOLINTBEGIN(readability-identifier-naming)
struct ncclComm : Member {};

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 0;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::string name = std::to_string(++library().ids);
  std::memset(id->internal, 0, sizeof(id->internal));
  name.copy(id->internal, sizeof(id->internal) - 1);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  const auto meeting = library().meetings.part(id.internal, ranks);
  *made = new ncclComm{{meeting, rank}};
  return meeting->exchange(rank, {"init", {}}).empty() ? ncclInvalidUsage : ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  const int mine[2] = {color, key};
  Bytes bytes(sizeof(mine));
  std::memcpy(bytes.data(), mine, sizeof(mine));
  const auto all = comm->meeting->exchange(comm->rank, {"split", std::move(bytes)});
  if (all.empty()) return ncclInvalidUsage;
  const int split = comm->splits++;
  *made = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  int rank = 0, ranks = 0;
  for (int member = 0; member < static_cast<int>(all.size()); ++member) {
    int of[2];
    std::memcpy(of, all[static_cast<std::size_t>(member)].bytes.data(), sizeof(of));
    if (of[0] != color) continue;
    ++ranks;
    if (std::pair(of[1], member) < std::pair(key, comm->rank)) ++rank;
  }
  const std::string name = std::to_string(split) + " " + std::to_string(color);
  *made = new ncclComm{{comm->meeting->part(name, ranks), rank}};
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++library().aborted;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = library().error;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++grouped.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--grouped.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  const Grouped calls = std::exchange(grouped, {});
  for (const auto* list : {&calls.sends, &calls.others}) {
    for (const auto& call : *list) {
      const ncclResult_t done = call();
      if (result == ncclSuccess) result = done;
    }
  }
  return result;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t how, ncclComm_t comm, cudaStream_t) {
  return run_or_keep(false, [=] {
    const auto all = comm->meeting->exchange(
        comm->rank, {name_of("all-reduce", count, type, how), bytes_at(from, count, type)});
    if (all.empty()) return ncclInvalidUsage;
    reduce(all, 0, count, type, how, to);
    return ncclSuccess;
  });
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t how, int root, ncclComm_t comm, cudaStream_t) {
  return run_or_keep(false, [=] {
    const auto all = comm->meeting->exchange(
        comm->rank, {name_of("reduce", count, type, root), bytes_at(from, count, type)});
    if (all.empty()) return ncclInvalidUsage;
    if (comm->rank == root) reduce(all, 0, count, type, how, to);
    return ncclSuccess;
  });
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t how, ncclComm_t comm, cudaStream_t) {
  return run_or_keep(false, [=] {
    const std::size_t whole = count * static_cast<std::size_t>(comm->meeting->ranks());
    const auto all = comm->meeting->exchange(
        comm->rank, {name_of("reduce-scatter", count, type, how), bytes_at(from, whole, type)});
    if (all.empty()) return ncclInvalidUsage;
    reduce(all, count * static_cast<std::size_t>(comm->rank), count, type, how, to);
    return ncclSuccess;
  });
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return run_or_keep(false, [=] {
    const auto all = comm->meeting->exchange(
        comm->rank, {name_of("all-gather", count, type, 0), bytes_at(from, count, type)});
    if (all.empty()) return ncclInvalidUsage;
    auto* next = static_cast<char*>(to);
    for (const Contribution& of : all) next = std::copy(of.bytes.begin(), of.bytes.end(), next);
    return ncclSuccess;
  });
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  return run_or_keep(false, [=] {
    const bool mine = comm->rank == root;
    const auto all = comm->meeting->exchange(
        comm->rank,
        {name_of("broadcast", count, type, root), mine ? bytes_at(from, count, type) : Bytes{}});
    if (all.empty()) return ncclInvalidUsage;
    const Bytes& sent = all[static_cast<std::size_t>(root)].bytes;
    std::copy(sent.begin(), sent.end(), static_cast<char*>(to));
    return ncclSuccess;
  });
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t) {
  return run_or_keep(true, [=] {
    comm->meeting->send(comm->rank, peer, bytes_at(from, count, type));
    return ncclSuccess;
  });
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  comm->meeting->expect(peer, comm->rank);
  return run_or_keep(false, [=] {
    const Bytes bytes = comm->meeting->receive(peer, comm->rank);
    if (bytes.size() != count * size_of(type)) return ncclInvalidUsage;
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(to));
    return ncclSuccess;
  });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace trainyard {

void set_emulated_nccl_error(bool fails) {
  library().error = fails ? ncclRemoteError : ncclSuccess;
}
int aborted_emulated_communicators() { return library().aborted; }

}  // namespace trainyard
