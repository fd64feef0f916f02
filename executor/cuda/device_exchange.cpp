#include "executor/cuda/device_exchange.h"

#include <cmath>

#include "executor/exchange_counts.h"

namespace trainyard {
namespace {

std::int64_t of_member(const Counts& counts, int member) {
  return counts[static_cast<std::size_t>(member)];
}

// Numbers to send, converted first where they are stored in another type.
class Sent {
 public:
  Sent(const Queue& queue, const View& view, ElementType type)
      : copy_(queue, view.type == type ? 0 : view.rows, view.columns, type), view_(view) {
    if (view.type == type) return;
    convert(queue, *copy_, view);
    view_ = *copy_;
  }
  const View& operator*() const { return view_; }

 private:
  Scratch copy_;
  View view_;
};

Expected<void> all_reduce(const DeviceExchange& x) {
  return x.transport.at_once([&]() -> Expected<void> {
    for (std::size_t i = 0; i < x.work.operands.in_place.size(); ++i) {
      auto done = x.transport.all_reduce(x.work.queue, x.work.operation.group, x.work.in_place(i),
                                         x.work.operation.reduction);
      if (!done) return done;
    }
    return {};
  });
}

// ---- By rows: each member has or gets some, one after the other ---------------------------------

// Sums up in the type of the whole, and converts this rank's part.
Expected<void> sum_parts(const DeviceExchange& x, const View& all, const Counts& counts,
                         const View& mine) {
  const Queue& queue = x.work.queue;
  const Group group = x.work.operation.group;
  if (all.type == mine.type) return x.transport.reduce_scatter(queue, group, all, counts, mine);
  const Scratch sum(queue, mine.rows, mine.columns, all.type);
  auto done = x.transport.reduce_scatter(queue, group, all, counts, *sum);
  convert(queue, mine, *sum);
  return done;
}

Expected<void> scatter_rows_of(const DeviceExchange& x, std::size_t which) {
  const View& all = x.work.in(which);
  return sum_parts(x, all, even_counts(x.members, all.size() / x.members), x.work.out(which));
}

// The rows of each member, which differ where routing decides them.
Expected<Counts> rows_of_members(const DeviceExchange& x, std::int64_t mine) {
  const Queue& queue = x.work.queue;
  const Scratch own(queue, 1, 1, ElementType::f32), all(queue, x.members, 1, ElementType::f32);
  upload(queue, *own, {static_cast<float>(mine)});
  auto done =
      x.transport.all_gather(queue, x.work.operation.group, *own, even_counts(x.members, 1), *all);
  if (!done) return tl::unexpected(done.error());
  Counts counts;
  counts.reserve(static_cast<std::size_t>(x.members));
  for (const float count : downloaded(queue, *all))
    counts.push_back(static_cast<std::int64_t>(count));
  return counts;
}

// Gathers numbers in 8 bits and their scales. Where each member has one scale, all are rescaled to
// the largest.
Expected<void> gather_scaled(const DeviceExchange& x, const View& mine, const View& all) {
  const Queue& queue = x.work.queue;
  const Group group = x.work.operation.group;
  auto done = x.transport.all_gather(queue, group, mine.bare(), even_counts(x.members, mine.size()),
                                     all.bare());
  if (!done) return done;
  if (mine.scales.block > 0) {
    const auto blocks = static_cast<std::int64_t>(mine.scale_bytes());
    return x.transport.all_gather(queue, group, {mine.scales.of, blocks, 1, ElementType::u8, {}},
                                  even_counts(x.members, blocks),
                                  {all.scales.of, blocks * x.members, 1, ElementType::u8, {}});
  }
  const Scratch scales(queue, x.members, 1, ElementType::f32);
  done = x.transport.all_gather(queue, group, {mine.scales.of, 1, 1, ElementType::f32, {}},
                                even_counts(x.members, 1), *scales);
  to_one_scale(queue, all, *scales);
  return done;
}

Expected<void> gather_columns_of(const DeviceExchange& x, const View& mine, const View& all) {
  const Queue& queue = x.work.queue;
  const Scratch parts(queue, x.members * mine.rows, mine.columns, mine.type);
  auto done = x.transport.all_gather(queue, x.work.operation.group, mine,
                                     even_counts(x.members, mine.size()), *parts);
  if (!done) return done;
  for (std::int64_t member = 0; member < x.members; ++member) {
    copy_columns(queue, {all, member * mine.columns},
                 {parts->rows_from(member * mine.rows, mine.rows), 0}, mine.columns);
  }
  return {};
}

Expected<void> gather_rows_of(const DeviceExchange& x, std::size_t which) {
  const View& mine = x.work.in(which);
  if (x.work.out(which).columns > mine.columns) {
    return gather_columns_of(x, mine, x.work.out(which));
  }
  Counts rows = even_counts(x.members, mine.rows);
  if (x.work.operation.group == Group::expert_tensor) {
    auto counted = rows_of_members(x, mine.rows);
    if (!counted) return tl::unexpected(counted.error());
    rows = *std::move(counted);
  }
  x.work.memory.reshape(*x.work.operands.out[which], sum_of(rows), mine.columns, x.work.queue);
  const View& all = x.work.out(which);
  if (is_scaled(mine.type)) return gather_scaled(x, mine, all);
  const Sent sent(x.work.queue, mine, all.type);
  return x.transport.all_gather(x.work.queue, x.work.operation.group, *sent,
                                scaled_counts(rows, mine.columns), all);
}

Expected<void> pass_rows(const DeviceExchange& x, RingWay way, std::size_t which) {
  const View& mine = x.work.in(which);
  x.work.memory.reshape(*x.work.operands.out[which], mine.rows, mine.columns, x.work.queue);
  return x.transport.pass(x.work.queue, x.work.operation.group, way, mine, x.work.out(which));
}

// ---- Heads of all tokens and tokens of all heads ------------------------------------------------

// Calls visit(member, sequence, the block in the message) for each block.
template <typename Visit>
void for_each_block(const HeadBlocks& blocks, const View& message, const Visit& visit) {
  for (std::int64_t member = 0; member < blocks.members; ++member) {
    for (std::int64_t sequence = 0; sequence < blocks.sequences; ++sequence) {
      const std::int64_t first = member * blocks.rows() + sequence * blocks.part;
      visit(member, sequence, message.rows_from(first, blocks.part));
    }
  }
}

// Where there are fewer heads than members, neighbours share a head and its gradients are added up.
Expected<void> exchange_heads(const DeviceExchange& x) {
  const Queue& queue = x.work.queue;
  const View &in = x.work.in(0), &out = x.work.out(0);
  const bool to_heads = out.rows > in.rows;
  const View& all_heads = to_heads ? in : out;
  const HeadBlocks blocks =
      head_blocks(x.work.operation.attention, x.members, all_heads.rows, all_heads.columns);
  const std::int64_t rows = blocks.rows() * x.members, width = blocks.columns();
  const Scratch to(queue, rows, width, in.type), from(queue, rows, width, in.type);
  for_each_block(blocks, *to, [&](std::int64_t member, std::int64_t sequence, const View& block) {
    const Columns source =
        to_heads ? Columns{in.rows_from(sequence * blocks.part, blocks.part), blocks.column(member)}
                 : Columns{in.rows_from(blocks.row(sequence, member), blocks.part), 0};
    copy_columns(queue, {block, 0}, source, width);
  });
  const Counts counts = even_counts(x.members, blocks.rows() * width);
  auto done = x.transport.all_to_all(queue, x.work.operation.group, *to, counts, *from, counts);
  if (!done) return done;
  if (!to_heads) fill(queue, out, 0);
  for_each_block(blocks, *from, [&](std::int64_t member, std::int64_t sequence, const View& block) {
    if (to_heads) {
      copy_columns(queue, {out.rows_from(blocks.row(sequence, member), blocks.part), 0}, {block, 0},
                   width);
    } else {
      add_columns(queue,
                  {out.rows_from(sequence * blocks.part, blocks.part), blocks.column(member)},
                  block);
    }
  });
  return {};
}

// ---- Rows that go to the ranks of their experts, and back ---------------------------------------

Counts counted_rows(const DeviceExchange& x, DeviceTensor& by_expert) {
  return rows_by_member(x.members, mirrored(x.work.queue, by_expert));
}

Expected<void> move_rows(const DeviceExchange& x, const View& mine, const Counts& to,
                         const Counts& from, DeviceTensor& received) {
  x.work.memory.reshape(received, sum_of(from), mine.columns, x.work.queue);
  const Sent sent(x.work.queue, mine, received.view.type);
  return x.transport.all_to_all(x.work.queue, x.work.operation.group, *sent,
                                scaled_counts(to, mine.columns), received.view,
                                scaled_counts(from, mine.columns));
}

// Also creates the table of rows by source and expert where it is not known yet.
Expected<void> dispatch(const DeviceExchange& x) {
  const DeviceOperands& o = x.work.operands;
  const bool knows = o.in.size() > o.out.size();
  if (!knows) {
    const Counts one = even_counts(x.members, x.work.in(0).size() / x.members);
    o.out[0]->mirror.clear();
    auto done = x.transport.all_to_all(x.work.queue, x.work.operation.group, x.work.in(0), one,
                                       x.work.out(0), one);
    if (!done) return done;
  }
  const Counts to = counted_rows(x, *o.in[0]);
  const Counts from = counted_rows(x, knows ? *o.in[1] : *o.out[0]);
  const std::size_t first_in = knows ? 2 : 1;
  const std::size_t first_out = knows ? 0 : 1;
  for (std::size_t i = 0; first_out + i < o.out.size(); ++i) {
    auto done = move_rows(x, x.work.in(first_in + i), to, from, *o.out[first_out + i]);
    if (!done) return done;
  }
  return {};
}

Expected<void> combine(const DeviceExchange& x) {
  const DeviceOperands& o = x.work.operands;
  const Counts from = counted_rows(x, *o.in[0]);
  const Counts to = counted_rows(x, *o.in[1]);
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    if (auto done = move_rows(x, x.work.in(2 + i), to, from, *o.out[i]); !done) return done;
  }
  return {};
}

// Sums up over the ranks that share experts; each rank keeps the rows that it had received.
Expected<void> scatter_routed(const DeviceExchange& x) {
  const DeviceOperands& o = x.work.operands;
  const Counts rows = counted_rows(x, *o.in[0]);
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    const View& all = x.work.in(i + 1);
    x.work.memory.reshape(*o.out[i], of_member(rows, x.self), all.columns, x.work.queue);
    if (auto done = sum_parts(x, all, scaled_counts(rows, all.columns), x.work.out(i)); !done)
      return done;
  }
  return {};
}

// ---- Flat parts of gradients, states and weights ------------------------------------------------

// The rest of the tensor is not known afterwards.
Expected<void> scatter_in_place(const DeviceExchange& x, const View& whole) {
  const Counts counts = part_counts(x.members, whole.size());
  const FlatPart part = part_of(whole.size(), x.members, x.self);
  const Scratch mine(x.work.queue, part.end - part.begin, 1, whole.type);
  auto done =
      x.transport.reduce_scatter(x.work.queue, x.work.operation.group, whole, counts, *mine);
  if (x.work.where.setting.marks_unknown) fill(x.work.queue, whole, std::nanf(""));
  convert(x.work.queue, whole.from(part.begin, mine->size()), *mine);
  return done;
}

Expected<void> gather_in_place(const DeviceExchange& x, const View& whole) {
  const FlatPart part = part_of(whole.size(), x.members, x.self);
  return x.transport.all_gather(x.work.queue, x.work.operation.group,
                                whole.from(part.begin, part.end - part.begin),
                                part_counts(x.members, whole.size()), whole);
}

Expected<void> make_part(const DeviceExchange& x, const View& whole, const View& part) {
  const Counts counts = part_counts(x.members, whole.size());
  fill(x.work.queue, part, 0);
  return sum_parts(x, whole, counts, part.from(0, of_member(counts, x.self)));
}

// Parts are padded to equal length; the padding is left out of the whole.
Expected<void> make_whole(const DeviceExchange& x, const View& part, const View& whole) {
  const Counts counts = part_counts(x.members, whole.size());
  const Sent sent(x.work.queue, part.from(0, of_member(counts, x.self)), whole.type);
  return x.transport.all_gather(x.work.queue, x.work.operation.group, *sent, counts, whole);
}

Expected<void> by_parts(const DeviceExchange& x) {
  const DeviceOperands& o = x.work.operands;
  const bool scatters = x.work.operation.kind == OperationKind::reduce_scatter;
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    auto done = scatters ? make_part(x, x.work.in(i), x.work.out(i))
                         : make_whole(x, x.work.in(i), x.work.out(i));
    if (!done) return done;
  }
  const auto in_place = [&]() -> Expected<void> {
    for (const DeviceTensor* whole : o.in_place) {
      auto done = scatters ? scatter_in_place(x, whole->view) : gather_in_place(x, whole->view);
      if (!done) return done;
    }
    return {};
  };
  return scatters ? in_place() : x.transport.at_once(in_place);
}

Expected<void> row_by_row(const DeviceExchange& x, std::size_t which) {
  switch (x.work.operation.kind) {
    case OperationKind::reduce_scatter:
      return scatter_rows_of(x, which);
    case OperationKind::pass_on:
      return pass_rows(x, RingWay::on, which);
    case OperationKind::pass_back:
      return pass_rows(x, RingWay::back, which);
    default:
      return gather_rows_of(x, which);
  }
}

Expected<void> by_rows(const DeviceExchange& x) {
  for (std::size_t i = 0; i < x.work.operands.in.size(); ++i) {
    if (auto done = row_by_row(x, i); !done) return done;
  }
  return {};
}

}  // namespace

Expected<void> take_part(const DeviceExchange& exchange) {
  const Operation& operation = exchange.work.operation;
  switch (operation.kind) {
    case OperationKind::all_reduce:
      return all_reduce(exchange);
    case OperationKind::all_to_all:
      return exchange_heads(exchange);
    case OperationKind::dispatch:
      return dispatch(exchange);
    case OperationKind::combine:
      return combine(exchange);
    case OperationKind::reduce_scatter:
      if (operation.group == Group::expert_tensor) return scatter_routed(exchange);
      [[fallthrough]];
    case OperationKind::all_gather:
      return operation.shards > 1 ? by_parts(exchange) : by_rows(exchange);
    default:
      return by_rows(exchange);
  }
}

}  // namespace trainyard
