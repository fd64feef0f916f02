#include "executor/rank_executor.h"

#include <algorithm>
#include <utility>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<float> as_floats(const std::vector<double>& numbers) {
  std::vector<float> floats(numbers.size());
  std::transform(numbers.begin(), numbers.end(), floats.begin(),
                 [](double number) { return static_cast<float>(number); });
  return floats;
}

}  // namespace

RankExecutor::RankExecutor(const Setting& setting, const Program& program, const RankLayout& layout,
                           int rank, Backend& backend, Watch& watch)
    : setting_(setting),
      program_(program),
      layout_(layout),
      rank_(rank),
      backend_(backend),
      holdings_(setting, program, layout, rank),
      stage_(layout.coordinates(rank).stage),
      users_(index(program.stages[index(stage_)].instances)),
      progress_([&backend](Backend::Event event) { return backend.reached(event); }),
      loss_scale_(setting) {
  find_residents();
  for (const Resident& resident : residents_) {
    fill(resident, watch);
    watch.goes_on();
  }
}

const ProgramBuffer& RankExecutor::buffer_of(const Operand& operand) const {
  return program_.buffer(operand.buffer);
}

void RankExecutor::find_residents() {
  std::vector<bool> seen(users_.size());
  for (const IssuedOperation issued : operations_of(program_, stage_)) {
    for (const Operand& operand : issued.operation->operands) {
      if (buffer_of(operand).role == BufferRole::activation) continue;
      const int instance = instance_of(program_, issued, operand);
      if (seen[index(instance)]) continue;
      seen[index(instance)] = true;
      residents_.push_back(
          {instance, operand.buffer, layer_of(program_, issued, operand), issued.step->microbatch});
    }
  }
}

void RankExecutor::fill(const Resident& resident, Watch& watch) {
  const ProgramBuffer& buffer = program_.buffer(resident.buffer);
  const int states = moments_of(setting_) + (buffer.keeps_weights ? 1 : 0);
  const int copies = buffer.role == BufferRole::optimizer ? states : 1;
  backend_.allocate(resident.instance, buffer, copies, {});
  if (buffer.role == BufferRole::weight) {
    const auto numbers =
        holdings_.initial_weights(buffer, resident.layer, [&watch] { watch.goes_on(); });
    backend_.write(resident.instance, as_floats(numbers));
  } else {
    backend_.clear(resident.instance);
  }
}

void RankExecutor::begin_step(std::int64_t batch) {
  progress_.begin_step();
  for (const Resident& resident : residents_) {
    const ProgramBuffer& buffer = program_.buffer(resident.buffer);
    if (buffer.role == BufferRole::scalar) backend_.clear(resident.instance);
    if (buffer.role == BufferRole::data) {
      backend_.write(resident.instance,
                     as_floats(holdings_.tokens(buffer, resident.microbatch, batch)));
    }
  }
  std::fill(users_.begin(), users_.end(), Users{});
  begins_.clear();
  ends_.clear();
  gradients_.clear();
}

Expected<StepOutcome> RankExecutor::step(std::int64_t number, std::int64_t batch, Watch& watch) {
  begin_step(batch);
  if (auto ran = run(number, batch, watch); !ran) return tl::unexpected(ran.error());
  watch.ends_step(static_cast<std::int64_t>(ends_.size()));
  if (auto done = backend_.synchronise(); !done) return tl::unexpected(done.error());
  StepOutcome done = outcome();
  done.skipped = loss_scale_.update(done.squared_norm);
  if (done.skipped) ++skipped_;
  return done;
}

Expected<void> RankExecutor::run(std::int64_t number, std::int64_t batch, Watch& watch) {
  for (const IssuedOperation issued : operations_of(program_, stage_)) {
    const Operation& operation = *issued.operation;
    watch.begins(static_cast<std::int64_t>(begins_.size()), issued);
    Work work{.issued = issued, .loss_scale = loss_scale_.value()};
    for (const Operand& operand : operation.operands) {
      work.buffers.push_back(instance_of(program_, issued, operand));
    }
    const bool updates = operation.phase == Phase::update;
    work.step = updates ? number - skipped_ : batch;
    work.shard = shard_in(operation);
    prepare(work);
    const Lane lane = lane_of(issued);
    begins_.push_back(backend_.record(lane));
    progress_.begins(lane, begins_.back());
    if (auto started = start(work); !started) return started;
    ends_.push_back(backend_.record(lane));
    progress_.ends(lane, ends_.back());
    finish(work, ends_.back());
  }
  return {};
}

// An operation waits for the last writer of each buffer that it uses and, where it updates one, for
// the readers since. A `create` reuses the memory of a buffer whose users its writer has waited
// for.
void RankExecutor::prepare(const Work& work) {
  const Operation& operation = *work.issued.operation;
  const Lane lane = lane_of(work.issued);
  for (std::size_t i = 0; i < work.buffers.size(); ++i) {
    const Operand& operand = operation.operands[i];
    Users& users = users_[index(work.buffers[i])];
    if (users.written) backend_.wait(lane, users.writer);
    if (operand.access != Access::read) {
      for (const Backend::Event reader : users.readers) backend_.wait(lane, reader);
    }
    if (operand.access == Access::create) {
      backend_.allocate(work.buffers[i], buffer_of(operand), 1, lane);
    }
  }
}

Expected<void> RankExecutor::start(const Work& work) {
  const Operation& operation = *work.issued.operation;
  if (operation.kind == OperationKind::optimizer_step && keeps_gradients_) note_gradients(work);
  if (!is_communication(operation.kind)) return backend_.launch(work);
  if (operation.kind == OperationKind::send || operation.kind == OperationKind::receive) {
    const int peer = layout_.in_stage(rank_, work.issued.call->peer);
    return operation.kind == OperationKind::send ? backend_.send(work, peer)
                                                 : backend_.receive(work, peer);
  }
  return backend_.exchange(work, layout_.members(operation.group, rank_));
}

void RankExecutor::finish(const Work& work, Backend::Event end) {
  const Operation& operation = *work.issued.operation;
  for (std::size_t i = 0; i < work.buffers.size(); ++i) {
    Users& users = users_[index(work.buffers[i])];
    if (operation.operands[i].access == Access::read) {
      users.readers.push_back(end);
    } else {
      users = {true, end, {}};
    }
    if (operation.operands[i].frees) backend_.release(work.buffers[i]);
  }
}

int RankExecutor::shard_in(const Operation& operation) const {
  if (operation.group == Group::none) return 0;
  return layout_.members(operation.group, rank_).index_of(rank_);
}

// `writer` is the operation that wrote the numbers last, if any. Where it writes only this rank's
// part of a whole tensor, the other ranks know the rest.
HeldTensor RankExecutor::held(const Operation* writer, int buffer, int layer,
                              std::vector<float> numbers) const {
  const auto size = static_cast<std::int64_t>(numbers.size());
  HeldTensor tensor{buffer, layer, std::move(numbers), 0, size};
  const bool leaves_part =
      writer != nullptr && writer->shards > 1 &&
      (writer->kind == OperationKind::optimizer_step || writer->kind == OperationKind::copy);
  if (!leaves_part || program_.buffer(buffer).part_of >= 0) return tensor;
  const int shard = shard_in(*writer);
  const FlatPart part = part_of(size, writer->shards, shard);
  tensor.known_from = part.begin;
  tensor.known_to = part.end;
  return tensor;
}

void RankExecutor::note_gradients(const Work& work) {
  const Operation& operation = *work.issued.operation;
  for (std::size_t i = 0; i < updated_gradients(operation); ++i) {
    const Operand& operand = operation.operands[i];
    const int layer = layer_of(program_, work.issued, operand);
    std::vector<float> numbers = backend_.read(work.buffers[i]);
    for (float& number : numbers) number /= static_cast<float>(work.loss_scale);
    gradients_.push_back(held(&operation, operand.buffer, layer, std::move(numbers)));
  }
}

// The last operation that wrote each buffer instance.
std::vector<const Operation*> RankExecutor::last_writers() const {
  std::vector<const Operation*> writers(users_.size());
  for (const IssuedOperation issued : operations_of(program_, stage_)) {
    for (const Operand& operand : issued.operation->operands) {
      if (operand.access == Access::read) continue;
      writers[index(instance_of(program_, issued, operand))] = issued.operation;
    }
  }
  return writers;
}

std::vector<HeldTensor> RankExecutor::weights(Watch& watch) {
  const std::vector<const Operation*> writers = last_writers();
  std::vector<HeldTensor> all;
  for (const Resident& resident : residents_) {
    if (program_.buffer(resident.buffer).role != BufferRole::weight) continue;
    all.push_back(held(writers[index(resident.instance)], resident.buffer, resident.layer,
                       backend_.read(resident.instance)));
    watch.goes_on();
  }
  return all;
}

StepOutcome RankExecutor::outcome() {
  StepOutcome out;
  for (const Resident& resident : residents_) {
    const ProgramBuffer& buffer = program_.buffer(resident.buffer);
    if (buffer.role != BufferRole::scalar) continue;
    const auto value = static_cast<double>(backend_.read(resident.instance).front());
    if (buffer.name == "loss" && holdings_.at().tensor == 0) out.loss += value;
    if (buffer.name == "squared gradient norm") out.squared_norm = value;
  }
  if (begins_.empty()) return out;
  const Backend::Event first = begins_.front();
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    out.operations.push_back(
        {backend_.between(first, begins_[i]), backend_.between(first, ends_[i])});
    out.time = std::max(out.time, out.operations.back().end);
  }
  return out;
}

}  // namespace trainyard
