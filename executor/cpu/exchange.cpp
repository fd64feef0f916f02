#include "executor/cpu/exchange.h"

#include <algorithm>
#include <limits>

#include "executor/exchange_counts.h"

namespace trainyard {
namespace {

Expected<void> all_reduce(const Exchange& x, const Operands<float>& o) {
  for (Tensor<float>* tensor : o.in_place) {
    auto done = x.transport.all_reduce(x.operation.group, tensor->data(), tensor->size(),
                                       x.operation.reduction);
    if (!done) return done;
  }
  return {};
}

// ---- By rows: each member has or gets some, one after the other --------------------------

Expected<void> scatter_rows(const Exchange& x, const Operands<float>& o, std::size_t which) {
  return x.transport.reduce_scatter(x.operation.group, o.in[which]->data(),
                                    even_counts(x.members, o.in[which]->size() / x.members),
                                    o.out[which]->data());
}

// The rows of each member, which differ where routing decides them.
Expected<Counts> rows_of_members(const Exchange& x, Eigen::Index mine) {
  const auto rows = static_cast<float>(mine);
  std::vector<float> all(static_cast<std::size_t>(x.members));
  auto done =
      x.transport.all_gather(x.operation.group, &rows, even_counts(x.members, 1), all.data());
  if (!done) return tl::unexpected(done.error());
  Counts counts;
  counts.reserve(all.size());
  for (const float count : all) counts.push_back(static_cast<std::int64_t>(count));
  return counts;
}

Expected<void> gather_columns(const Exchange& x, const Tensor<float>& mine, Tensor<float>& all) {
  Tensor<float> parts(x.members * mine.rows(), mine.cols());
  auto done = x.transport.all_gather(x.operation.group, mine.data(),
                                     even_counts(x.members, mine.size()), parts.data());
  if (!done) return done;
  for (Eigen::Index member = 0; member < x.members; ++member) {
    all.middleCols(member * mine.cols(), mine.cols()) =
        parts.middleRows(member * mine.rows(), mine.rows());
  }
  return {};
}

Expected<void> gather_rows(const Exchange& x, const Operands<float>& o, std::size_t which) {
  const Tensor<float>& mine = *o.in[which];
  if (o.out[which]->cols() > mine.cols()) return gather_columns(x, mine, *o.out[which]);
  Counts rows = even_counts(x.members, mine.rows());
  if (x.operation.group == Group::expert_tensor) {
    auto counted = rows_of_members(x, mine.rows());
    if (!counted) return tl::unexpected(counted.error());
    rows = *std::move(counted);
  }
  Tensor<float>& all = *o.out[which];
  all.resize(sum_of(rows), mine.cols());
  return x.transport.all_gather(x.operation.group, mine.data(), scaled_counts(rows, mine.cols()),
                                all.data());
}

Expected<void> pass(const Exchange& x, RingWay way, const Operands<float>& o, std::size_t which) {
  o.out[which]->resize(o.in[which]->rows(), o.in[which]->cols());
  return x.transport.pass(x.operation.group, way, o.in[which]->data(), o.out[which]->data(),
                          o.in[which]->size());
}

// ---- Heads of all tokens and tokens of all heads -------------------------------------------

// Calls visit(member, sequence, place in the message) for each block.
template <typename Visit>
void for_each_block(const HeadBlocks& blocks, const Visit& visit) {
  for (Eigen::Index member = 0; member < blocks.members; ++member) {
    for (Eigen::Index sequence = 0; sequence < blocks.sequences; ++sequence) {
      visit(member, sequence, member * blocks.size() + sequence * blocks.part * blocks.columns());
    }
  }
}

// Where there are fewer heads than members, neighbours share a head and its gradients are added up.
Expected<void> exchange_heads(const Exchange& x, const Operands<float>& o) {
  const bool to_heads = o.out[0]->rows() > o.in[0]->rows();
  const Tensor<float>& all_heads = to_heads ? *o.in[0] : *o.out[0];
  const HeadBlocks blocks =
      head_blocks(x.operation.attention, x.members, all_heads.rows(), all_heads.cols());
  const Eigen::Index width = blocks.columns();
  std::vector<float> to(static_cast<std::size_t>(blocks.size() * x.members));
  std::vector<float> from(to.size());
  for_each_block(blocks, [&](Eigen::Index member, Eigen::Index sequence, Eigen::Index at) {
    Eigen::Map<Tensor<float>> block(to.data() + at, blocks.part, width);
    block = to_heads
                ? o.in[0]->block(sequence * blocks.part, blocks.column(member), blocks.part, width)
                : o.in[0]->block(blocks.row(sequence, member), 0, blocks.part, width);
  });
  const Counts counts = even_counts(x.members, blocks.size());
  auto done = x.transport.all_to_all(x.operation.group, to.data(), counts, from.data(), counts);
  if (!done) return done;
  if (!to_heads) o.out[0]->setZero();
  for_each_block(blocks, [&](Eigen::Index member, Eigen::Index sequence, Eigen::Index at) {
    const Eigen::Map<const Tensor<float>> block(from.data() + at, blocks.part, width);
    if (to_heads) {
      o.out[0]->middleRows(blocks.row(sequence, member), blocks.part) = block;
    } else {
      o.out[0]->block(sequence * blocks.part, blocks.column(member), blocks.part, width) += block;
    }
  });
  return {};
}

// ---- Rows that go to the ranks of their experts, and back ------------------------------------

Counts counted_rows(const Exchange& x, const Tensor<float>& by_expert) {
  return rows_by_member(x.members, {by_expert.data(), static_cast<std::size_t>(by_expert.size())});
}

Expected<void> move_rows(const Exchange& x, const Tensor<float>& mine, const Counts& to,
                         const Counts& from, Tensor<float>& received) {
  received.resize(sum_of(from), mine.cols());
  return x.transport.all_to_all(x.operation.group, mine.data(), scaled_counts(to, mine.cols()),
                                received.data(), scaled_counts(from, mine.cols()));
}

// Also creates the table of rows by source and expert where it is not known yet.
Expected<void> dispatch(const Exchange& x, const Operands<float>& o) {
  const bool knows = o.in.size() > o.out.size();
  if (!knows) {
    const Counts one = even_counts(x.members, o.in[0]->size() / x.members);
    auto done =
        x.transport.all_to_all(x.operation.group, o.in[0]->data(), one, o.out[0]->data(), one);
    if (!done) return done;
  }
  const Counts to = counted_rows(x, *o.in[0]);
  const Counts from = counted_rows(x, knows ? *o.in[1] : *o.out[0]);
  const std::size_t first_in = knows ? 2 : 1;
  const std::size_t first_out = knows ? 0 : 1;
  for (std::size_t i = 0; first_out + i < o.out.size(); ++i) {
    auto done = move_rows(x, *o.in[first_in + i], to, from, *o.out[first_out + i]);
    if (!done) return done;
  }
  return {};
}

Expected<void> combine(const Exchange& x, const Operands<float>& o) {
  const Counts from = counted_rows(x, *o.in[0]);
  const Counts to = counted_rows(x, *o.in[1]);
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    if (auto done = move_rows(x, *o.in[2 + i], to, from, *o.out[i]); !done) return done;
  }
  return {};
}

// Sums up over the ranks that share experts; each rank keeps the rows that it had received.
Expected<void> scatter_routed(const Exchange& x, const Operands<float>& o) {
  const Counts rows = counted_rows(x, *o.in[0]);
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    const Tensor<float>& all = *o.in[i + 1];
    o.out[i]->resize(rows[static_cast<std::size_t>(x.self)], all.cols());
    auto done = x.transport.reduce_scatter(x.operation.group, all.data(),
                                           scaled_counts(rows, all.cols()), o.out[i]->data());
    if (!done) return done;
  }
  return {};
}

// ---- Flat parts of gradients, states and weights -----------------------------------------------

// This rank's part of the sum over all members.
Expected<std::vector<float>> summed_part(const Exchange& x, const Tensor<float>& whole) {
  const Counts counts = part_counts(x.members, whole.size());
  std::vector<float> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(x.self)]));
  auto done = x.transport.reduce_scatter(x.operation.group, whole.data(), counts, mine.data());
  if (!done) return tl::unexpected(done.error());
  return mine;
}

// The rest of the tensor is not known afterwards.
Expected<void> scatter_in_place(const Exchange& x, Tensor<float>& whole) {
  const auto mine = summed_part(x, whole);
  if (!mine) return tl::unexpected(mine.error());
  if (x.marks_unknown) whole.setConstant(std::numeric_limits<float>::quiet_NaN());
  std::copy(mine->begin(), mine->end(),
            whole.data() + part_of(whole.size(), x.members, x.self).begin);
  return {};
}

Expected<void> gather_in_place(const Exchange& x, Tensor<float>& whole) {
  const FlatPart part = part_of(whole.size(), x.members, x.self);
  const std::vector<float> mine(whole.data() + part.begin, whole.data() + part.end);
  return x.transport.all_gather(x.operation.group, mine.data(),
                                part_counts(x.members, whole.size()), whole.data());
}

Expected<void> make_part(const Exchange& x, const Tensor<float>& whole, Tensor<float>& part) {
  const auto mine = summed_part(x, whole);
  if (!mine) return tl::unexpected(mine.error());
  part.setZero();
  std::copy(mine->begin(), mine->end(), part.data());
  return {};
}

// Parts are padded to equal length; the padding is left out of the whole.
Expected<void> make_whole(const Exchange& x, const Tensor<float>& part, Tensor<float>& whole) {
  return x.transport.all_gather(x.operation.group, part.data(),
                                part_counts(x.members, whole.size()), whole.data());
}

Expected<void> by_parts(const Exchange& x, const Operands<float>& o) {
  const bool scatters = x.operation.kind == OperationKind::reduce_scatter;
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    auto done = scatters ? make_part(x, *o.in[i], *o.out[i]) : make_whole(x, *o.in[i], *o.out[i]);
    if (!done) return done;
  }
  for (Tensor<float>* whole : o.in_place) {
    auto done = scatters ? scatter_in_place(x, *whole) : gather_in_place(x, *whole);
    if (!done) return done;
  }
  return {};
}

Expected<void> row_by_row(const Exchange& x, const Operands<float>& o, std::size_t which) {
  switch (x.operation.kind) {
    case OperationKind::reduce_scatter:
      return scatter_rows(x, o, which);
    case OperationKind::pass_on:
      return pass(x, RingWay::on, o, which);
    case OperationKind::pass_back:
      return pass(x, RingWay::back, o, which);
    default:
      return gather_rows(x, o, which);
  }
}

Expected<void> by_rows(const Exchange& x, const Operands<float>& o) {
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    auto done = row_by_row(x, o, i);
    if (!done) return done;
  }
  return {};
}

}  // namespace

Expected<void> take_part(const Exchange& exchange, const Operands<float>& operands) {
  switch (exchange.operation.kind) {
    case OperationKind::all_reduce:
      return all_reduce(exchange, operands);
    case OperationKind::all_to_all:
      return exchange_heads(exchange, operands);
    case OperationKind::dispatch:
      return dispatch(exchange, operands);
    case OperationKind::combine:
      return combine(exchange, operands);
    case OperationKind::reduce_scatter:
      if (exchange.operation.group == Group::expert_tensor) {
        return scatter_routed(exchange, operands);
      }
      [[fallthrough]];
    case OperationKind::all_gather:
      return exchange.operation.shards > 1 ? by_parts(exchange, operands)
                                           : by_rows(exchange, operands);
    default:
      return by_rows(exchange, operands);
  }
}

}  // namespace trainyard
