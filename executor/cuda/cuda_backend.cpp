#include "executor/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>

#include "executor/cuda/cast_formats.h"
#include "executor/cuda/device_exchange.h"
#include "executor/cuda/placement.h"
#include "executor/cuda/release_order.h"

namespace trainyard {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::int64_t elements(const ProgramBuffer& buffer) { return buffer.rows * buffer.columns; }

// Bytes of a buffer on the device.
std::size_t bytes_of(const ProgramBuffer& buffer) {
  if (buffer.away != OffloadTarget::none) return 0;
  const auto own = static_cast<std::size_t>(elements(buffer)) * bytes_of(element_type(buffer, {}));
  return std::max(own, static_cast<std::size_t>(buffer.bytes().value()));
}

// The most that the buffers of a stage hold at once, operation by operation.
std::size_t expected_bytes(const Program& program, int stage) {
  std::vector<std::size_t> held(index(program.stages[index(stage)].instances));
  std::size_t now = 0, most = 0;
  for (const IssuedOperation issued : operations_of(program, stage)) {
    for (const Operand& operand : issued.operation->operands) {
      std::size_t& of = held[index(instance_of(program, issued, operand))];
      if (of == 0) now += of = bytes_of(program.buffer(operand.buffer));
    }
    most = std::max(most, now);
    for (const Operand& operand : issued.operation->operands) {
      std::size_t& of = held[index(instance_of(program, issued, operand))];
      if (operand.frees) now -= std::exchange(of, 0);
    }
  }
  return most;
}

// A weight cast as an operation reads it, where it is stored in fp32.
struct CastRead {
  CastRead(const Queue& queue, const DeviceTensor& from, ElementType type)
      : room(queue, from.view.rows, from.view.columns, type), tensor(from) {
    convert(queue, *room, from.view);
    tensor.view = *room;
  }
  Scratch room;
  DeviceTensor tensor;
};

constexpr unsigned kSharedBit = 1U << 31;

// The stream of a lane, and an event for others to wait on.
struct LaneState {
  cudaStream_t stream = nullptr;
  cudaEvent_t reached = nullptr;
  unsigned bit = 0;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const BackendWorld& world, int device)
      : setting_(world.setting),
        program_(world.program),
        rank_(world.transport.rank()),
        at_(world.layout.coordinates(rank_)),
        device_(device),
        casts_(cast_formats(program_)),
        expected_(expected_bytes(world.program, at_.stage)),
        memory_(status_, device, expected_),
        releases_(status_, expected_),
        gemm_(status_) {
    int instances = 0;
    for (const StageProgram& stage : program_.stages) {
      instances = std::max(instances, stage.instances);
    }
    tensors_.resize(index(instances));
    status_.check(cudaStreamCreateWithFlags(&sent_releases_, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags");
    load_products();
  }

  ~CudaBackend() override {
    transport_.reset();  // first: kernels that wait for a peer end with it
    cudaDeviceSynchronize();
    for (DeviceTensor& tensor : tensors_) memory_.release(tensor, sent_releases_);
    cudaStreamSynchronize(sent_releases_);
    for (const auto& [lane, state] : lanes_) {
      cudaEventDestroy(state.reached);
      cudaStreamDestroy(state.stream);
    }
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(sent_releases_);
  }

  // Sets how ranks reach each other. Requires: no operation was handed over yet.
  void set_transport(std::unique_ptr<DeviceTransport> transport) {
    transport_ = std::move(transport);
  }
  Expected<void> state() const {
    if (status_.ok()) return {};
    return failure("", status_.message());
  }

  void allocate(int buffer, const ProgramBuffer& what, int copies, const Lane& lane) override {
    release(buffer);
    DeviceTensor& tensor = tensors_[index(buffer)];
    const CastFormat& cast = casts_[static_cast<std::size_t>(&what - program_.buffers.data())];
    tensor = {.view = {.type = element_type(what, cast), .scales = {nullptr, cast.block}},
              .what = &what};
    // Optimizer states have a row of numbers for each element.
    const bool states = what.role == BufferRole::optimizer;
    if (!tensor.on_host()) {
      releases_.make_room(queue_of(lane).stream, memory_.held(), bytes_of(what));
      releases_.taken(queue_of(lane).stream, bytes_of(what));
    }
    memory_.reshape(tensor, states ? elements(what) : what.rows, states ? copies : what.columns,
                    queue_of(lane));
    use(tensor, lane);
  }

  void release(int buffer) override {
    DeviceTensor& tensor = tensors_[index(buffer)];
    if (tensor.view.data == nullptr) return;
    const std::size_t bytes = tensor.on_host() ? 0 : tensor.bytes;
    cudaStream_t last = stream_after_all(tensor.streams);
    memory_.release(tensor, last);
    note_release(last, bytes, *tensor.what);
    tensor.streams = 0;
  }

  void write(int buffer, const std::vector<float>& numbers) override {
    settle();
    upload(queue_of({}), tensors_[index(buffer)].view, numbers);
    settle();
  }
  std::vector<float> read(int buffer) override {
    settle();
    return downloaded(queue_of({}), tensors_[index(buffer)].view);
  }
  void clear(int buffer) override {
    fill(queue_of({}), tensors_[index(buffer)].view, 0);
    settle();
  }
  Bytes peak() const override { return memory_.peak(); }
  Bytes reserved() const override { return memory_.reserved(); }

  Expected<void> launch(const Work& work) override {
    const Queue queue = queue_of(lane_of(work.issued));
    DeviceOperands operands = operands_of(work);
    std::list<CastRead> casts;
    for (DeviceTensor*& in : operands.in) {
      if (!reads_cast(setting_, *work.issued.operation, *in->what)) continue;
      in = &casts.emplace_back(queue, *in, stored_in_16_bits_).tensor;
    }
    compute(device_work(work, operands, queue));
    return state();
  }

  Expected<void> exchange(const Work& work, const GroupMembers& members) override {
    const Queue queue = queue_of(lane_of(work.issued));
    const DeviceOperands operands = operands_of(work);
    const DeviceWork device = device_work(work, operands, queue);
    auto done = take_part({device, *transport_, members.size(), members.index_of(rank_)});
    return done ? state() : done;
  }

  // If the message is smaller than the buffer, it is this tensor-parallel rank's share of the rows.
  Expected<void> send(const Work& work, int to) override {
    const Operation& operation = *work.issued.operation;
    DeviceTensor& tensor = tensors_[index(work.buffers[0])];
    const Lane lane = lane_of(work.issued);
    use(tensor, lane);
    const auto parts =
        static_cast<std::int64_t>(std::lround(tensor.what->bytes() / operation.message));
    const std::int64_t size = tensor.view.size() / parts;
    auto done = transport_->send(queue_of(lane), to, static_cast<int>(operation.phase),
                                 tensor.view.from(parts == 1 ? 0 : at_.tensor * size, size));
    return done ? state() : done;
  }

  Expected<void> receive(const Work& work, int from) override {
    DeviceTensor& tensor = tensors_[index(work.buffers[0])];
    const Lane lane = lane_of(work.issued);
    use(tensor, lane);
    auto done = transport_->receive(queue_of(lane), from,
                                    static_cast<int>(work.issued.operation->phase), tensor.view);
    return done ? state() : done;
  }

  Expected<void> synchronise() override {
    for (const auto& each : lanes_) wait_for(queue_of(each.first));
    if (!status_.ok()) return state();
    recorded_ = 0;
    for (cudaStream_t stream : {releases_.stream(), sent_releases_}) {
      status_.check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
    releases_.forget();
    if (auto left = transport_->wait_for_messages(); !left) return left;
    return state();
  }

  Event record(const Lane& lane) override {
    if (recorded_ == events_.size()) {
      cudaEvent_t made = nullptr;
      status_.check(cudaEventCreate(&made), "cudaEventCreate");
      const std::lock_guard lock(events_lock_);
      events_.push_back(made);
      of_events_.push_back(nullptr);
    }
    cudaStream_t stream = queue_of(lane).stream;
    status_.check(cudaEventRecord(events_[recorded_], stream), "cudaEventRecord");
    of_events_[recorded_] = stream;
    return static_cast<Event>(recorded_++);
  }

  void wait(const Lane& lane, Event event) override {
    cudaStream_t stream = queue_of(lane).stream;
    const auto which = static_cast<std::size_t>(event);
    if (of_events_[which] == stream) return;
    status_.check(cudaStreamWaitEvent(stream, events_[which], 0), "cudaStreamWaitEvent");
  }

  // reached() sets the device first: in a thread that has not called CUDA yet, the query would
  // initialise the first device.
  bool runs_later() const override { return true; }
  bool reached(Event event) override {
    const std::lock_guard lock(events_lock_);
    if (cudaSetDevice(device_) != cudaSuccess) return false;
    return cudaEventQuery(events_[static_cast<std::size_t>(event)]) == cudaSuccess;
  }

  Seconds between(Event first, Event second) override {
    float milliseconds = 0;
    status_.check(cudaEventElapsedTime(&milliseconds, events_[static_cast<std::size_t>(first)],
                                       events_[static_cast<std::size_t>(second)]),
                  "cudaEventElapsedTime");
    return Seconds(1e-3 * static_cast<double>(milliseconds));
  }

 private:
  // cuBLASLt loads its kernels in its first call, and takes memory for those of a stream. Both may
  // wait for what runs on the device, and in a step that may wait for a peer (seen beside NCCL's
  // first call: openxla/xla, pull request 38932). So one product is made here, where no other rank
  // is known yet.
  void load_products() {
    if (!status_.ok()) return;
    constexpr std::int64_t kWidth = 16;
    const Queue queue = queue_of({});
    const Scratch ones(queue, kWidth, kWidth, ElementType::bf16),
        product(queue, kWidth, kWidth, ElementType::bf16);
    fill(queue, *ones, 1);
    gemm_.multiply(queue, operand_of(*ones), transposed(operand_of(*ones)), operand_of(*product),
                   false);
    settle();
  }

  LaneState& state_of(const Lane& lane) {
    LaneState& state = lanes_[lane];
    if (state.stream != nullptr) return state;
    // More lanes than bits share the last: what they use then waits for all of them.
    state.bit = lanes_.size() > 31 ? kSharedBit : 1U << (lanes_.size() - 1);
    status_.check(cudaStreamCreateWithFlags(&state.stream, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags");
    status_.check(cudaEventCreateWithFlags(&state.reached, cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
    return state;
  }
  Queue queue_of(const Lane& lane) {
    return {status_, state_of(lane).stream, memory_.pool(), transport_.get()};
  }
  // A stream's own releases count with the size that was noted when the memory was taken, whatever
  // it has grown to. With one stream nobody waits for releases.
  void note_release(cudaStream_t last, std::size_t bytes, const ProgramBuffer& what) {
    if (bytes == 0 || last == sent_releases_) return;
    if (last == releases_.stream()) return releases_.released(last, bytes);
    if (lanes_.size() > 1) releases_.released(last, bytes_of(what));
  }

  void use(DeviceTensor& tensor, const Lane& lane) { tensor.streams |= state_of(lane).bit; }

  // The stream that comes after all of these, by bit: the only one, or one that waits for all.
  // Memory that was sent has a stream of its own, which nobody waits for: a send ends when its peer
  // receives, and that peer may wait for this rank to receive first.
  cudaStream_t stream_after_all(unsigned streams) {
    cudaStream_t after = releases_.stream();
    for (const auto& [lane, state] : lanes_) {
      if ((streams & state.bit) == 0) continue;
      if (streams == state.bit && state.bit != kSharedBit) return state.stream;
      if (lane.sends) after = sent_releases_;
    }
    for (const auto& [lane, state] : lanes_) {
      if ((streams & state.bit) == 0) continue;
      status_.check(cudaEventRecord(state.reached, state.stream), "cudaEventRecord");
      status_.check(cudaStreamWaitEvent(after, state.reached, 0), "cudaStreamWaitEvent");
    }
    return after;
  }

  // Waits until nothing runs, for what the host writes and reads outside the lanes' order.
  void settle() {
    for (const auto& each : lanes_) wait_for(queue_of(each.first));
    if (status_.ok()) status_.check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  DeviceWork device_work(const Work& work, const DeviceOperands& operands, const Queue& queue) {
    return {*work.issued.operation,
            {setting_, at_, work.issued.tag(), work.shard, work.step, work.loss_scale},
            operands,
            queue,
            gemm_,
            *cudnn_,
            memory_};
  }

  DeviceOperands operands_of(const Work& work) {
    DeviceOperands operands;
    const Lane lane = lane_of(work.issued);
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
      DeviceTensor* tensor = &tensors_[index(work.buffers[i])];
      use(*tensor, lane);
      const Access access = work.issued.operation->operands[i].access;
      (access == Access::read     ? operands.in
       : access == Access::create ? operands.out
                                  : operands.in_place)
          .push_back(tensor);
    }
    return operands;
  }

  const Setting& setting_;
  const Program& program_;
  int rank_;
  RankCoordinates at_;
  int device_;
  CudaStatus status_;
  ElementType stored_in_16_bits_ =
      scales_loss(setting_) ? ElementType::f16 : ElementType::bf16;  // the type of a cast weight
  std::vector<CastFormat> casts_;                                    // by buffer of the program
  std::size_t expected_;  // most bytes of the program's buffers at once
  DeviceMemory memory_;
  ReleaseOrder releases_;                 // of memory that several streams used
  cudaStream_t sent_releases_ = nullptr;  // stream of releases of memory that was sent
  Gemm gemm_;
  std::unique_ptr<CudnnAttention> cudnn_ = make_cudnn_attention();
  std::unique_ptr<DeviceTransport> transport_;
  std::vector<DeviceTensor> tensors_;
  std::map<Lane, LaneState> lanes_;
  std::mutex events_lock_;  // another thread reads them while they grow
  std::vector<cudaEvent_t> events_;
  std::vector<cudaStream_t> of_events_;
  std::size_t recorded_ = 0;
};

// Sets variables that CUDA reads when it starts. Streams that share a hardware queue wait for each
// other, so a receive would hold up the send that its peer waits for. A kernel that is loaded at
// its first call waits for the kernels that run, which may wait for a peer.
void prepare_environment() {
  constexpr int kAsTheUserHasIt = 0;
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kAsTheUserHasIt);
  setenv("CUDA_MODULE_LOADING", "EAGER", kAsTheUserHasIt);
  // NOLINTEND(concurrency-mt-unsafe)
}

// The address of a device on the host's bus, the same for every process that sees it.
std::string bus_address(int device) {
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, device);
  return fmt::format("{:x}:{:x}:{:x}", properties.pciDomainID, properties.pciBusID,
                     properties.pciDeviceID);
}

Expected<std::unique_ptr<DeviceTransport>> transport_for(const BackendWorld& world, bool shared) {
  if (world.alone) return make_stand_in_device_transport();
  if (world.transport.ranks() == 1 || shared) return make_staged_transport(world.transport);
  return make_nccl_transport(world.program, world.layout, world.transport);
}

// Why a device lacks what the recipe's GEMMs need: scales of a tensor came with compute capability
// 9.0, scales of blocks with 10.0.
std::optional<Error> not_on_device(const PrecisionRecipe& precision, int device) {
  if (!precision.input_cast.exists()) return std::nullopt;
  const int least = precision.input_cast.block == 0 ? 9 : 10;
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (major >= least) return std::nullopt;
  return Error{"/training/precision",
               fmt::format("found \"{}\", which needs compute capability {}.0; this GPU has {}.{}",
                           precision.name, least, major, minor)};
}

}  // namespace

bool has_cuda() { return true; }

int cuda_devices() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::optional<Error> no_cuda_device() {
  prepare_environment();
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found == cudaSuccess && devices > 0) return std::nullopt;
  return Error{"--backend cuda", fmt::format("no GPU was found ({})",
                                             found == cudaSuccess ? "the driver lists none"
                                                                  : cudaGetErrorString(found))};
}

Expected<DevicePlacement> placed(Transport& transport) {
  if (auto missing = no_cuda_device()) return tl::unexpected(*std::move(missing));
  auto placement = place_on_device(transport, cuda_devices(), bus_address);
  if (!placement) return placement;
  CudaStatus chosen;
  chosen.check(cudaSetDevice(placement->device), "cudaSetDevice");
  if (!chosen.ok()) return failure("", chosen.message());
  return placement;
}

Expected<std::unique_ptr<Backend>> make_cuda_backend(const BackendWorld& world) {
  // A rank that runs alone takes the first device.
  const auto single = make_single_rank_transport();
  const auto placement = placed(world.alone ? *single : world.transport);
  if (!placement) return tl::unexpected(placement.error());
  if (auto less = not_on_device(world.setting.training.precision, placement->device)) {
    return tl::unexpected(*std::move(less));
  }
  auto backend = std::make_unique<CudaBackend>(world, placement->device);
  if (auto state = backend->state(); !state) return tl::unexpected(state.error());
  auto transport = transport_for(world, placement->shared);
  if (!transport) return tl::unexpected(transport.error());
  backend->set_transport(*std::move(transport));
  return backend;
}

std::string cuda_device_name() {
  cudaDeviceProp properties{};
  int device = 0;
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  return properties.name;
}

std::string cuda_provenance() {
  int driver = 0, runtime = 0, device = 0, clock = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  cudaGetDevice(&device);
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, device);
  cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
  std::string text = fmt::format("{}, {} MHz, driver {}.{}, CUDA {}.{}, cuBLASLt {}",
                                 properties.name, clock / 1000, driver / 1000, driver % 1000 / 10,
                                 runtime / 1000, runtime % 1000 / 10, cublasLtGetVersion());
  for (const auto& [library, version] :
       {std::pair{"NCCL", nccl_version()}, {"cuDNN", cudnn_version()}}) {
    if (!version.empty()) text += fmt::format(", {} {}", library, version);
  }
  return text;
}

}  // namespace trainyard
