#include <numeric>

#include "executor/cuda/compute.h"

namespace trainyard {
namespace {

// Uploads 32-bit integers for a kernel, as bits of floats.
void upload_indices(const Queue& queue, const View& view, const std::vector<int>& indices) {
  std::vector<float> bits(indices.size());
  std::copy_n(reinterpret_cast<const char*>(indices.data()), indices.size() * sizeof(int),
              reinterpret_cast<char*>(bits.data()));
  upload(queue, view, bits);
}

void route_of(const DeviceWork& w) {
  route(w.queue, w.out(0), w.out(1), w.in(0), w.in_if(1));
  if (w.operation.capacity == 0) return;
  // Which copies exceed an expert's capacity depends on all tokens of a rank: decided on the host.
  const View& experts = w.out(1);
  const std::vector<float> numbers = downloaded(w.queue, experts);
  Tensor<float> marks =
      Eigen::Map<const Tensor<float>>(numbers.data(), experts.rows, experts.columns);
  drop_copies(w.operation, w.where, marks);
  upload(w.queue, experts, {marks.data(), marks.data() + marks.size()});
}

// The place of each copy among those that were not dropped.
class CopyOrder {
 public:
  CopyOrder(const DeviceWork& w, const View& experts)
      : place_of_copy(w.queue, experts.rows, experts.columns, ElementType::f32),
        copy_of_place(w.queue, experts.size(), 1, ElementType::f32),
        counts(w.queue, 1, w.where.setting.model.experts, ElementType::f32) {
    order_copies(w.queue, *place_of_copy, *copy_of_place, *counts, experts);
  }
  Scratch place_of_copy, copy_of_place, counts;
};

void permute(const DeviceWork& w) {
  const View& experts = w.in(0);
  const CopyOrder order(w, experts);
  std::int64_t count = experts.size();
  const bool with_gates = w.operands.out.size() > 1;
  if (with_gates) {
    w.memory.reshape(*w.operands.out[2], 1, w.where.setting.model.experts, w.queue);
    convert(w.queue, w.out(2), *order.counts);
  }
  if (w.where.setting.plan.capacity_factor > 0) {
    const std::vector<float> counts = downloaded(w.queue, *order.counts);
    count = static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), 0.0F));
  }
  const auto chosen = static_cast<int>(experts.columns);
  w.memory.reshape(*w.operands.out[0], count, w.in(1).columns, w.queue);
  gather_rows(w.queue, w.out(0), w.in(1), *order.copy_of_place, chosen);
  if (!with_gates) return;
  w.memory.reshape(*w.operands.out[1], count, 1, w.queue);
  gather_rows(w.queue, w.out(1), w.in(2).shaped(w.in(2).size(), 1), *order.copy_of_place, 1);
}

void unpermute_of(const DeviceWork& w) {
  const CopyOrder order(w, w.in(0));
  std::vector<View> added;
  added.reserve(w.operands.in.size());
  for (std::size_t i = 2; i < w.operands.in.size(); ++i) added.push_back(w.in(i));
  unpermute(w.queue, w.out(0), w.in(1), *order.place_of_copy, added);
}

void route_gradient_of(const DeviceWork& w) {
  const CopyOrder order(w, w.in(1));
  route_gradient(w.queue, w.out(0), w.in(0), w.in(1), w.in(2), *order.place_of_copy);
}

// ---- Rows by source and expert ------------------------------------------------------------------

struct RowsByExpert {
  const std::vector<float>& numbers;
  std::size_t sources = 0, experts = 0;
  int of(std::size_t source, std::size_t expert) const {
    return static_cast<int>(numbers[source * experts + expert]);
  }
};

RowsByExpert counts_of(const DeviceWork& w) {
  DeviceTensor& tensor = *w.operands.in[0];
  return {mirrored(w.queue, tensor), static_cast<std::size_t>(tensor.view.rows),
          static_cast<std::size_t>(tensor.view.columns)};
}

// The rows in the order of experts, as indices into the rows in the order of sources.
std::vector<int> sorted_rows(const RowsByExpert& counts) {
  std::vector<int> first(counts.numbers.size());
  int row = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = row;
    row += static_cast<int>(counts.numbers[i]);
  }
  std::vector<int> rows;
  rows.reserve(static_cast<std::size_t>(row));
  for (std::size_t expert = 0; expert < counts.experts; ++expert) {
    for (std::size_t source = 0; source < counts.sources; ++source) {
      for (int i = 0; i < counts.of(source, expert); ++i) {
        rows.push_back(first[source * counts.experts + expert] + i);
      }
    }
  }
  return rows;
}

void sort_rows(const DeviceWork& w) {
  const std::vector<int> rows = sorted_rows(counts_of(w));
  const Scratch index(w.queue, static_cast<std::int64_t>(rows.size()), 1, ElementType::f32);
  upload_indices(w.queue, *index, rows);
  for (std::size_t i = 0; i < w.operands.out.size(); ++i) {
    const View& in = w.in(i + 1);
    w.memory.reshape(*w.operands.out[i], in.rows, in.columns, w.queue);
    if (w.operation.kind == OperationKind::sort_rows) {
      gather_rows(w.queue, w.out(i), in, *index, 1);
    } else {
      scatter_rows(w.queue, w.out(i), in, *index);
    }
  }
}

// Calls visit(expert, first row, rows) for each expert that has rows.
template <typename Visit>
void for_each_expert(const RowsByExpert& counts, const Visit& visit) {
  std::int64_t row = 0;
  for (std::size_t expert = 0; expert < counts.experts; ++expert) {
    std::int64_t rows = 0;
    for (std::size_t source = 0; source < counts.sources; ++source) {
      rows += counts.of(source, expert);
    }
    if (rows > 0) visit(static_cast<std::int64_t>(expert), row, rows);
    row += rows;
  }
}

void grouped_linear(const DeviceWork& w) {
  const View& x = w.in(1);
  const std::int64_t height = w.in(2).rows / w.in(0).columns;
  const std::int64_t width = w.out(0).columns;  // the first columns alone
  const DeviceWeight weights(w, w.in(2));
  w.memory.reshape(*w.operands.out[0], x.rows, width, w.queue);
  for_each_expert(counts_of(w), [&](std::int64_t expert, std::int64_t row, std::int64_t rows) {
    const View y = w.out(0).rows_from(row, rows);
    w.gemm.multiply(w.queue, operand_of(x.rows_from(row, rows)),
                    transposed(operand_of((*weights).rows_from(expert * height, width))),
                    operand_of(y), false, true);
    const View* biases = w.in_if(3);
    if (biases != nullptr) add_row(w.queue, y, 0, biases->rows_from(expert * height, width));
  });
}

void grouped_linear_input_gradient(const DeviceWork& w) {
  const View& dy = w.in(1);
  const std::int64_t height = w.in(2).rows / w.in(0).columns;
  const DeviceWeight weights(w, w.in(2));
  w.memory.reshape(*w.operands.out[0], dy.rows, w.in(2).columns, w.queue);
  for_each_expert(counts_of(w), [&](std::int64_t expert, std::int64_t row, std::int64_t rows) {
    w.gemm.multiply(w.queue, operand_of(dy.rows_from(row, rows)),
                    operand_of((*weights).rows_from(expert * height, height)),
                    operand_of(w.out(0).rows_from(row, rows)), false);
  });
}

void grouped_linear_weight_gradient(const DeviceWork& w) {
  const View& dy = w.in(2);
  const std::int64_t height = dy.columns;
  for_each_expert(counts_of(w), [&](std::int64_t expert, std::int64_t row, std::int64_t rows) {
    const View part = dy.rows_from(row, rows);
    w.gemm.multiply(w.queue, transposed(operand_of(part)), operand_of(w.in(1).rows_from(row, rows)),
                    operand_of(w.in_place(0).rows_from(expert * height, height)), true);
    const View* biases = w.in_place_if(1);
    if (biases != nullptr) {
      add_column_sums(w.queue, biases->rows_from(expert * height, height), part);
    }
  });
}

// The expert of each row.
std::vector<int> experts_of_rows(const RowsByExpert& counts) {
  std::vector<int> which;
  for (std::size_t i = 0; i < counts.numbers.size(); ++i) {
    which.insert(which.end(), static_cast<std::size_t>(counts.numbers[i]),
                 static_cast<int>(i % counts.experts));
  }
  return which;
}

void biases_of(const DeviceWork& w) {
  const std::vector<int> rows = experts_of_rows(counts_of(w));
  const Scratch which(w.queue, static_cast<std::int64_t>(rows.size()), 1, ElementType::f32);
  upload_indices(w.queue, *which, rows);
  if (w.operation.kind == OperationKind::expert_bias) {
    return expert_bias(w.queue, w.in_place(0), w.in(1), w.in(2), *which);
  }
  expert_bias_gradient(w.queue, w.in_place(0), w.in_place(1), w.in(1), w.in(2), w.in(3), *which);
}

}  // namespace

void compute_experts(const DeviceWork& work) {
  switch (work.operation.kind) {
    case OperationKind::route:
      return route_of(work);
    case OperationKind::route_gradient:
      return route_gradient_of(work);
    case OperationKind::permute:
      return permute(work);
    case OperationKind::unpermute:
      return unpermute_of(work);
    case OperationKind::sort_rows:
    case OperationKind::unsort_rows:
      return sort_rows(work);
    case OperationKind::grouped_linear:
      return grouped_linear(work);
    case OperationKind::grouped_linear_input_gradient:
      return grouped_linear_input_gradient(work);
    case OperationKind::grouped_linear_weight_gradient:
      return grouped_linear_weight_gradient(work);
    default:
      return biases_of(work);
  }
}

}  // namespace trainyard
