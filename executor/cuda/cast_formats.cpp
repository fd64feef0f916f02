#include "executor/cuda/cast_formats.h"

namespace trainyard {
namespace {

std::size_t buffer_of(const Operand& operand) { return static_cast<std::size_t>(operand.buffer); }

bool carries(OperationKind kind) {
  return kind == OperationKind::all_gather || kind == OperationKind::copy ||
         kind == OperationKind::move;
}

// Passes the format of the i-th operand read to the i-th written. True: a format was new.
bool follow(const Operation& operation, std::vector<CastFormat>& formats) {
  std::vector<std::size_t> from, into;
  for (const Operand& operand : operation.operands) {
    (operand.access == Access::read ? from : into).push_back(buffer_of(operand));
  }
  bool news = false;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const CastFormat format = operation.kind == OperationKind::cast        ? operation.cast
                              : carries(operation.kind) && i < from.size() ? formats[from[i]]
                                                                           : CastFormat{};
    if (!format.exists() || formats[into[i]].exists()) continue;
    formats[into[i]] = format;
    news = true;
  }
  return news;
}

}  // namespace

std::vector<CastFormat> cast_formats(const Program& program) {
  std::vector<CastFormat> formats(program.buffers.size());
  for (bool news = true; news;) {
    news = false;
    for (const Block& block : program.blocks) {
      for (const Operation& operation : block.operations) {
        news = follow(operation, formats) || news;
      }
    }
  }
  return formats;
}

}  // namespace trainyard
