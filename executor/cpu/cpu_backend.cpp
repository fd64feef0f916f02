#include "executor/cpu/cpu_backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <list>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "executor/cpu/exchange.h"
#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

std::size_t buffer_index(int i) { return static_cast<std::size_t>(i); }

// Rounds to the nearest number of 16 bits; what is too large for fp16 becomes infinite.
template <typename Number>
void round_to(Tensor<float>& tensor) {
  tensor = tensor.unaryExpr([](float x) { return static_cast<float>(Number(x)); });
}

void round_to_type(Tensor<float>& tensor, Dtype dtype) {
  if (dtype == Dtype::bf16) round_to<Eigen::bfloat16>(tensor);
  if (dtype == Dtype::fp16) round_to<Eigen::half>(tensor);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Setting& setting, const Program& program, const RankLayout& layout,
             Transport& transport)
      : setting_(setting),
        program_(program),
        transport_(transport),
        at_(layout.coordinates(transport.rank())) {
    int instances = 0;
    for (const StageProgram& stage : program.stages) {
      instances = std::max(instances, stage.instances);
    }
    slots_.resize(buffer_index(instances));
  }

  void allocate(int buffer, const ProgramBuffer& what, int copies, const Lane&) override {
    Slot& slot = slots_[buffer_index(buffer)];
    release(buffer);
    // Optimizer states have a row of numbers for each element.
    slot.tensor.resize(what.rows * (copies == 1 ? 1 : what.columns),
                       copies == 1 ? what.columns : copies);
    slot.what = &what;
    slot.held = what.bytes_on_device();
    held_ += slot.held;
    peak_ = std::max(peak_, held_);
  }

  void release(int buffer) override {
    Slot& slot = slots_[buffer_index(buffer)];
    held_ -= slot.held;
    slot = {};
  }

  void write(int buffer, const std::vector<float>& numbers) override {
    Tensor<float>& tensor = slots_[buffer_index(buffer)].tensor;
    std::copy(numbers.begin(), numbers.end(), tensor.data());
    store(buffer);
  }

  std::vector<float> read(int buffer) override {
    const Tensor<float>& tensor = slots_[buffer_index(buffer)].tensor;
    return {tensor.data(), tensor.data() + tensor.size()};
  }

  void clear(int buffer) override { slots_[buffer_index(buffer)].tensor.setZero(); }
  Bytes peak() const override { return peak_; }

  Expected<void> launch(const Work& work) override {
    std::list<Tensor<float>> casts;
    compute(*work.issued.operation,
            {setting_, at_, work.issued.tag(), work.shard, work.step, work.loss_scale},
            cast_weights(work, operands_of(work), casts));
    store_all(work);
    transport_.move_messages();
    return {};
  }

  Expected<void> exchange(const Work& work, const GroupMembers& members) override {
    const Operation& operation = *work.issued.operation;
    auto done = take_part({operation, transport_, members.size(),
                           members.index_of(transport_.rank()), setting_.marks_unknown},
                          operands_of(work));
    store_all(work);
    return done;
  }

  // If the message is smaller than the buffer, it is this tensor-parallel rank's share of the rows.
  Expected<void> send(const Work& work, int to) override {
    const Operation& operation = *work.issued.operation;
    const Slot& slot = slots_[buffer_index(work.buffers[0])];
    const auto parts =
        static_cast<Eigen::Index>(std::lround(slot.what->bytes() / operation.message));
    const Eigen::Index size = slot.tensor.size() / parts;
    const Eigen::Index first = parts == 1 ? 0 : at_.tensor * size;
    return transport_.send(to, static_cast<int>(operation.phase), slot.tensor.data() + first, size);
  }

  Expected<void> receive(const Work& work, int from) override {
    Tensor<float>& tensor = slots_[buffer_index(work.buffers[0])].tensor;
    return transport_.receive(from, static_cast<int>(work.issued.operation->phase), tensor.data(),
                              tensor.size());
  }

  Expected<void> synchronise() override { return transport_.wait_for_messages(); }

  Event record(const Lane&) override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void wait(const Lane&, Event) override {}
  Seconds between(Event first, Event second) override {
    return Seconds(1e-9 * static_cast<double>(second - first));
  }

 private:
  struct Slot {
    Tensor<float> tensor;
    const ProgramBuffer* what = nullptr;
    Bytes held;
  };

  void store(int buffer) {
    Slot& slot = slots_[buffer_index(buffer)];
    if (slot.what->role == BufferRole::data) return;
    round_to_type(slot.tensor, slot.what->dtype);
  }

  // Routing may have changed the number of rows: memory is counted anew.
  void store_all(const Work& work) {
    const Operation& operation = *work.issued.operation;
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
      if (operation.operands[i].access == Access::read) continue;
      store(work.buffers[i]);
      Slot& slot = slots_[buffer_index(work.buffers[i])];
      if (!slot.what->routed || slot.what->away != OffloadTarget::none) continue;
      held_ -= slot.held;
      slot.held = Bytes(static_cast<double>(slot.tensor.size()) * slot.what->element_bytes);
      held_ += slot.held;
      peak_ = std::max(peak_, held_);
    }
  }

  Operands<float> operands_of(const Work& work) {
    Operands<float> operands;
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
      const Operand& operand = work.issued.operation->operands[i];
      const ProgramBuffer* what = &program_.buffer(operand.buffer);
      Tensor<float>* tensor = &slots_[buffer_index(work.buffers[i])].tensor;
      if (operand.access == Access::read) {
        operands.in.push_back(tensor);
        operands.in_buffers.push_back(what);
      } else if (operand.access == Access::create) {
        operands.out.push_back(tensor);
      } else {
        operands.in_place.push_back(tensor);
        operands.in_place_buffers.push_back(what);
      }
    }
    return operands;
  }

  Operands<float> cast_weights(const Work& work, Operands<float> operands,
                               std::list<Tensor<float>>& casts) const {
    for (std::size_t i = 0; i < operands.in.size(); ++i) {
      if (!reads_cast(setting_, *work.issued.operation, *operands.in_buffers[i])) continue;
      round_to_type(casts.emplace_back(*operands.in[i]), setting_.training.precision.head_gemm);
      operands.in[i] = &casts.back();
    }
    return operands;
  }

  const Setting& setting_;
  const Program& program_;
  Transport& transport_;
  RankCoordinates at_;
  std::vector<Slot> slots_;
  Bytes held_, peak_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Setting& setting, const Program& program,
                                          const RankLayout& layout, Transport& transport) {
#ifdef __GLIBC__
  // Buffers come and go in every step. The largest thresholds allowed keep their pages in the
  // process; otherwise each page would be faulted in again.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
  return std::make_unique<CpuBackend>(setting, program, layout, transport);
}

}  // namespace trainyard
