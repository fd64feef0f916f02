#include "executor/cuda/compute.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>

namespace trainyard {
namespace {

bool is_centred(const DeviceWork& w) { return w.where.setting.model.norm == Norm::layer_norm; }

void norm_of(const DeviceWork& w) {
  norm(w.queue, w.out(0), w.in(0), w.in(1), w.in_if(2), is_centred(w));
}

void norm_gradient_of(const DeviceWork& w) {
  norm_gradient(w.queue, {.din = w.out(0),
                          .in = w.in(0),
                          .dout = w.in(1),
                          .scale = w.in(2),
                          .scale_gradient = w.in_place(0),
                          .shift_gradient = w.in_place_if(1),
                          .centred = is_centred(w)});
}

// The same with a row for each head.
View by_head(const View& view, const View& scale) {
  return view.shaped(view.size() / scale.rows, scale.rows);
}

void head_norm(const DeviceWork& w) {
  const std::size_t count = w.operands.out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const View& scale = w.in(count + i);
    norm(w.queue, by_head(w.out(i), scale), by_head(w.in(i), scale), scale, nullptr, false);
  }
}

void head_norm_gradient(const DeviceWork& w) {
  const std::size_t count = w.operands.out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const View& scale = w.in(2 * count + i);
    norm_gradient(w.queue, {.din = by_head(w.out(i), scale),
                            .in = by_head(w.in(i), scale),
                            .dout = by_head(w.in(count + i), scale),
                            .scale = scale,
                            .scale_gradient = w.in_place(i),
                            .shift_gradient = nullptr});
  }
}

// ---- Matrix products: several matrices side by side are taken as one ----------------------------

// Two lists of widths, each laid side by side from the same start. Calls visit(i, j, column in i,
// column in j, width) for every overlap of a part i of `a` with a part j of `b`.
template <typename Visit>
void for_each_overlap(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                      const Visit& visit) {
  std::size_t i = 0, j = 0;
  std::int64_t in_a = 0, in_b = 0;
  while (i < a.size() && j < b.size()) {
    const std::int64_t width = std::min(a[i] - in_a, b[j] - in_b);
    if (width > 0) visit(i, j, in_a, in_b, width);
    in_a += width;
    in_b += width;
    if (in_a == a[i]) ++i, in_a = 0;
    if (in_b == b[j]) ++j, in_b = 0;
  }
}

std::vector<std::int64_t> columns_of_all(const std::vector<View>& views) {
  std::vector<std::int64_t> columns;
  columns.reserve(views.size());
  for (const View& view : views) columns.push_back(view.columns);
  return columns;
}
std::vector<std::int64_t> rows_of_all(const std::vector<View>& views) {
  std::vector<std::int64_t> rows;
  rows.reserve(views.size());
  for (const View& view : views) rows.push_back(view.rows);
  return rows;
}

// The weights of a product, stacked by rows, and behind them its biases, a column each. Weights too
// have one column where the input has.
struct Weights {
  std::int64_t width = 0;   // of the input
  std::int64_t height = 0;  // of all weights: the columns of the output
  std::vector<View> matrices = {}, biases = {};
  std::int64_t filled = 0;  // rows of `matrices`

  static Weights of(const View& input, const std::vector<View>& outputs) {
    Weights weights{.width = input.columns};
    for (const View& output : outputs) weights.height += output.columns;
    return weights;
  }
  void add(const View& view) {
    const bool is_matrix = view.columns == width && filled < height;
    if (is_matrix) filled += view.rows;
    (is_matrix ? matrices : biases).push_back(view);
  }
};

// Matrices cast as the GEMMs of the operation read them.
class CastMatrices {
 public:
  CastMatrices(const DeviceWork& w, std::vector<View> matrices) {
    for (View& matrix : matrices) matrices_.emplace_back(w, matrix);
  }
  std::vector<View> views() const {
    std::vector<View> views;
    for (const DeviceWeight& matrix : matrices_) views.push_back(*matrix);
    return views;
  }

 private:
  std::list<DeviceWeight> matrices_;
};

GemmOperand part_of_rows(const View& weight, std::int64_t first, std::int64_t count) {
  return operand_of(weight.rows_from(first, count));
}

void linear(const DeviceWork& w) {
  std::vector<View> outs;
  outs.reserve(w.operands.out.size());
  for (const DeviceTensor* out : w.operands.out) outs.push_back(out->view);
  Weights weights = Weights::of(w.in(0), outs);
  for (std::size_t i = 1; i < w.operands.in.size(); ++i) weights.add(w.in(i));
  const GemmOperand x = operand_of(w.in(0));
  const CastMatrices cast(w, weights.matrices);
  weights.matrices = cast.views();
  for_each_overlap(
      rows_of_all(weights.matrices), columns_of_all(outs),
      [&](std::size_t i, std::size_t j, std::int64_t row, std::int64_t column, std::int64_t width) {
        w.gemm.multiply(w.queue, x, transposed(part_of_rows(weights.matrices[i], row, width)),
                        columns_of(outs[j], column, width), false, true);
      });
  for_each_overlap(
      rows_of_all(weights.biases), columns_of_all(outs),
      [&](std::size_t i, std::size_t j, std::int64_t row, std::int64_t column, std::int64_t width) {
        add_row(w.queue, outs[j], column, weights.biases[i].rows_from(row, width));
      });
}

void linear_input_gradient(const DeviceWork& w) {
  std::vector<View> gradients, weights;
  for (const DeviceTensor* in : w.operands.in) {
    const bool weight = in->what->role == BufferRole::weight || in->what->gathered;
    (weight ? weights : gradients).push_back(in->view);
  }
  const CastMatrices cast(w, weights);
  weights = cast.views();
  bool adds = w.operands.out.empty();
  const View& dx = adds ? w.in_place(0) : w.out(0);
  for_each_overlap(
      columns_of_all(gradients), rows_of_all(weights),
      [&](std::size_t i, std::size_t j, std::int64_t column, std::int64_t row, std::int64_t width) {
        w.gemm.multiply(w.queue, columns_of(gradients[i], column, width),
                        part_of_rows(weights[j], row, width), operand_of(dx), adds);
        adds = true;
      });
}

void linear_weight_gradient(const DeviceWork& w) {
  std::vector<View> gradients;
  gradients.reserve(w.operands.in.size());
  for (std::size_t i = 1; i < w.operands.in.size(); ++i) gradients.push_back(w.in(i));
  Weights weights = Weights::of(w.in(0), gradients);
  for (const DeviceTensor* gradient : w.operands.in_place) weights.add(gradient->view);
  const GemmOperand x = operand_of(w.in(0));
  for_each_overlap(
      columns_of_all(gradients), rows_of_all(weights.matrices),
      [&](std::size_t i, std::size_t j, std::int64_t column, std::int64_t row, std::int64_t width) {
        w.gemm.multiply(w.queue, transposed(columns_of(gradients[i], column, width)), x,
                        part_of_rows(weights.matrices[j], row, width), true);
      });
  for_each_overlap(
      columns_of_all(gradients), rows_of_all(weights.biases),
      [&](std::size_t i, std::size_t j, std::int64_t column, std::int64_t row, std::int64_t width) {
        const ElementType type = gradients[i].type;
        const Scratch part(w.queue, gradients[i].rows, width,
                           is_scaled(type) ? ElementType::bf16 : type);
        copy_columns(w.queue, {*part, 0}, {gradients[i], column}, width);
        add_column_sums(w.queue, weights.biases[j].rows_from(row, width), *part);
      });
}

// Puts matrices side by side and rounds them; a second output gets this rank's rows of the result.
void cast_of(const DeviceWork& w) {
  std::vector<View> parts;
  for (const DeviceTensor* in : w.operands.in) parts.push_back(in->view);
  w.memory.reshape(*w.operands.out[0], parts.front().rows, w.out(0).columns, w.queue);
  cast(w.queue, w.out(0), parts);
  if (w.operands.out.size() == 1) return;
  const std::int64_t rows = w.out(1).rows;
  convert(w.queue, w.out(1), w.out(0).rows_from(w.where.at.tensor * rows, rows));
}

// ---- Residuals, activations, sums ---------------------------------------------------------------

void residual_of(const DeviceWork& w) {
  const bool drops = w.operands.out.size() > 1;
  residual(w.queue, w.out(0), w.in(0), w.in(1), w.in_if(2), drops ? &w.out(1) : nullptr,
           drops ? dropout_of(w.operation, w.where, w.out(0).rows) : Dropout{});
}

void residual_gradient(const DeviceWork& w) {
  add(w.queue, w.out(0), w.in(0), w.in(1));
  if (!w.operands.in_place.empty()) add_column_sums(w.queue, w.in_place(0), w.in(0));
}

void dropout_gradient(const DeviceWork& w) {
  drop_gradient(w.queue, w.out(0), w.in(0), w.in(1), static_cast<float>(1 / (1 - kDropoutRate)));
  if (!w.operands.in_place.empty()) add_column_sums(w.queue, w.in_place(0), w.out(0));
}

void activation_of(const DeviceWork& w) {
  w.memory.reshape(*w.operands.out[0], w.in(0).rows, w.out(0).columns, w.queue);
  activation(w.queue, w.out(0), w.in(0), w.in_if(1), w.where.setting.model.gated_mlp);
}

void activation_gradient_of(const DeviceWork& w) {
  w.memory.reshape(*w.operands.out[0], w.in(0).rows, w.in(0).columns, w.queue);
  const bool gates = w.operands.in.size() > 2;
  if (gates) w.memory.reshape(*w.operands.out[1], w.in(0).rows, 1, w.queue);
  activation_gradient(w.queue, w.out(0), w.in(0), w.in(1), w.in_if(2), gates ? &w.out(1) : nullptr,
                      w.where.setting.model.gated_mlp);
}

void accumulate(const DeviceWork& w) {
  for (std::size_t i = 0; i < w.operands.in.size(); ++i) {
    const bool alike = w.in(i).columns == w.in_place(i).columns;
    const View from = alike ? w.in(i) : w.in(i).from(0, w.in(i).size());
    const View into = alike ? w.in_place(i) : w.in_place(i).from(0, w.in(i).size());
    add_to(w.queue, into, from);
  }
}

void move_own_part(const DeviceWork& w) {
  const View &whole = w.in(0), &part = w.out(0);
  const std::int64_t shard = w.where.shard;
  if (part.rows < whole.rows) {
    return convert(w.queue, part, whole.rows_from(shard * part.rows, part.rows));
  }
  copy_columns(w.queue, {part, 0}, {whole, shard * part.columns}, part.columns);
}

// The outputs get the last columns of the inputs, taken side by side. One matrix of the same width
// moves as it is stored, its scales with it.
void move(const DeviceWork& w) {
  if (w.operation.shards > 1) return move_own_part(w);
  if (w.operands.in.size() == 1 && w.operands.out.size() == 1 &&
      w.in(0).columns == w.out(0).columns) {
    w.memory.reshape(*w.operands.out[0], w.in(0).rows, w.in(0).columns, w.queue);
    return convert(w.queue, w.out(0), w.in(0));
  }
  std::vector<View> from, into = {View{}};
  for (const DeviceTensor* in : w.operands.in) from.push_back(in->view);
  for (DeviceTensor* out : w.operands.out) {
    w.memory.reshape(*out, w.in(0).rows, out->view.columns, w.queue);
    into.push_back(out->view);
  }
  const auto width_of = [](const std::vector<View>& views) {
    return std::accumulate(views.begin(), views.end(), std::int64_t{0},
                           [](std::int64_t sum, const View& view) { return sum + view.columns; });
  };
  into.front().columns = width_of(from) - width_of(into);
  for_each_overlap(
      columns_of_all(from), columns_of_all(into),
      [&](std::size_t i, std::size_t j, std::int64_t column, std::int64_t to, std::int64_t width) {
        if (j > 0) copy_columns(w.queue, {into[j], to}, {from[i], column}, width);
      });
}

// ---- Update -------------------------------------------------------------------------------------

void sum_of_squares(const DeviceWork& w) {
  for (std::size_t i = 0; i < w.operands.in.size(); ++i) {
    const FlatPart part = part_of(w.in(i).size(), w.operation.shards, w.where.shard);
    add_squares(w.queue, w.in_place(0), w.in(i).from(part.begin, part.end - part.begin),
                {w.operands.in[i]->what->replicas, static_cast<float>(w.where.loss_scale)});
  }
}

UpdateRule rule_of(const DeviceWork& w, const ProgramBuffer& states) {
  const Setting& setting = w.where.setting;
  const Descent& descent = setting.descent;
  const auto steps = static_cast<double>(w.where.step + 1);
  UpdateRule rule{.moments = moments_of(setting)};
  rule.keeps_weights = states.keeps_weights;
  rule.decays = setting.training.optimizer.name == "adamw";
  rule.first_step = w.where.step == 0;
  rule.clips = !w.operands.in.empty();
  rule.skips = scales_loss(setting);
  rule.scale = static_cast<float>(w.where.loss_scale);
  rule.clip_norm = static_cast<float>(descent.clip_norm);
  rule.rate = static_cast<float>(descent.learning_rate);
  rule.momentum = static_cast<float>(descent.momentum);
  rule.first = static_cast<float>(descent.first_decay);
  rule.second = static_cast<float>(descent.second_decay);
  rule.epsilon = static_cast<float>(descent.epsilon);
  rule.decay = static_cast<float>(descent.weight_decay);
  rule.first_whole = static_cast<float>(1 - std::pow(descent.first_decay, steps));
  rule.second_whole = static_cast<float>(1 - std::pow(descent.second_decay, steps));
  return rule;
}

// Whether the tensor is a whole of which this rank updates its part; else it is that part alone.
bool is_whole(const Operation& operation, const DeviceTensor& tensor) {
  return operation.shards > 1 && tensor.what->part_of < 0;
}

// Operands in place: `count` gradients, the states, `count` weights. Weights beyond this rank's
// part are not known until they are gathered.
void optimizer_step(const DeviceWork& w) {
  const std::size_t count = w.operands.in_place.size() / 2;
  const View& states = w.in_place(count);
  const UpdateRule rule = rule_of(w, *w.operands.in_place[count]->what);
  const float unknown = std::nanf("");
  std::int64_t state = 0;  // next row of the states
  for (std::size_t i = 0; i < count; ++i) {
    const View& gradient = w.in_place(i);
    const View& weight = w.in_place(count + 1 + i);
    const bool of_whole = is_whole(w.operation, *w.operands.in_place[i]);
    const bool into_whole = is_whole(w.operation, *w.operands.in_place[count + 1 + i]);
    const int shards = of_whole || into_whole ? w.operation.shards : 1;
    const FlatPart part =
        part_of(of_whole ? gradient.size() : weight.size(), shards, w.where.shard);
    const std::int64_t size = part.end - part.begin;
    update(w.queue, weight.from(into_whole ? part.begin : 0, size),
           gradient.from(of_whole ? part.begin : 0, size), states.rows_from(state, size),
           w.in_if(0), rule);
    if (into_whole && w.where.setting.marks_unknown) {
      fill(w.queue, weight.from(0, part.begin), unknown);
      fill(w.queue, weight.from(part.end, weight.size() - part.end), unknown);
    }
    fill(w.queue, gradient, 0);
    state += size;
  }
}

// Copies this rank's part out of a whole (`scatters`), or back into it. The rest of such a weight
// is not known until it is gathered.
void copy_part(const DeviceWork& w, bool scatters, const View& from, const View& to) {
  const FlatPart part =
      part_of(scatters ? from.size() : to.size(), w.operation.shards, w.where.shard);
  const std::int64_t size = part.end - part.begin;
  if (!w.operands.out.empty()) {
    fill(w.queue, to, 0);
  } else if (!scatters && w.where.setting.marks_unknown) {
    fill(w.queue, to, std::nanf(""));
  }
  convert(w.queue, to.from(scatters ? 0 : part.begin, size),
          from.from(scatters ? part.begin : 0, size));
}

// Copies elements as flat arrays, whatever the shapes.
void copy_of(const DeviceWork& w) {
  const std::vector<DeviceTensor*>& into =
      w.operands.out.empty() ? w.operands.in_place : w.operands.out;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const View& from = w.in(i);
    if (w.operation.shards == 1) {
      if (!w.operands.out.empty()) w.memory.reshape(*into[i], from.rows, from.columns, w.queue);
      convert(w.queue, into[i]->view.from(0, from.size()), from.from(0, from.size()));
      continue;
    }
    copy_part(w, w.operands.in[i]->what->part_of < 0, from, into[i]->view);
  }
}

void clear(const DeviceWork& w) {
  for (std::size_t i = 0; i < w.operands.out.size(); ++i) fill(w.queue, w.out(i), 0);
  for (std::size_t i = 0; i < w.operands.in_place.size(); ++i) fill(w.queue, w.in_place(i), 0);
}

// Operations without matrices of tokens: sums, states and moves between buffers.
void compute_states(const DeviceWork& w) {
  switch (w.operation.kind) {
    case OperationKind::accumulate:
      return accumulate(w);
    case OperationKind::move:
      return move(w);
    case OperationKind::sum_of_squares:
      return sum_of_squares(w);
    case OperationKind::optimizer_step:
      return optimizer_step(w);
    case OperationKind::copy:
      return copy_of(w);
    case OperationKind::await:
      return;
    default:
      return clear(w);
  }
}

void compute_tokens(const DeviceWork& w) {
  switch (w.operation.kind) {
    case OperationKind::norm:
      return norm_of(w);
    case OperationKind::norm_gradient:
      return norm_gradient_of(w);
    case OperationKind::head_norm:
      return head_norm(w);
    case OperationKind::head_norm_gradient:
      return head_norm_gradient(w);
    case OperationKind::linear:
      return linear(w);
    case OperationKind::linear_input_gradient:
      return linear_input_gradient(w);
    case OperationKind::linear_weight_gradient:
      return linear_weight_gradient(w);
    case OperationKind::cast:
      return cast_of(w);
    case OperationKind::residual:
      return residual_of(w);
    case OperationKind::dropout:
      return drop(w.queue, w.out(0), w.out(1), w.in(0),
                  dropout_of(w.operation, w.where, w.in(0).rows));
    case OperationKind::dropout_gradient:
      return dropout_gradient(w);
    case OperationKind::residual_gradient:
      return residual_gradient(w);
    case OperationKind::activation:
      return activation_of(w);
    default:
      return activation_gradient_of(w);
  }
}

}  // namespace

RowPlaces row_places(const Where& where, std::int64_t rows) {
  const Setting& setting = where.setting;
  const Plan& plan = setting.plan;
  RowPlaces places;
  places.part = setting.training.sequence_length / plan.context_parallel;
  places.offset = rows < places.part * plan.micro_batch ? where.at.tensor * rows : 0;
  places.first_sequence =
      where.step * setting.training.global_batch +
      (std::int64_t{where.at.data} * plan.microbatches + where.tag.microbatch) * plan.micro_batch;
  places.context = where.at.context;
  places.ranks = plan.context_parallel;
  const bool whole_heads = plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
  places.halves = plan.context_parallel > 1 && !whole_heads && places.part % 2 == 0;
  return places;
}

Dropout dropout_of(const Operation& operation, const Where& where, std::int64_t rows) {
  return {.seed = where.setting.seed,
          .site = static_cast<int>(*operation.part),
          .layer = where.tag.layer,
          .rate = kDropoutRate,
          .kept = static_cast<float>(1 / (1 - kDropoutRate)),
          .places = row_places(where, rows)};
}

std::vector<float> downloaded(const Queue& queue, const View& view) {
  std::vector<float> numbers(static_cast<std::size_t>(view.size()));
  if (numbers.empty()) return numbers;
  const Scratch floats(queue, view.rows, view.columns, ElementType::f32);
  convert(queue, *floats, view);
  // A copy to pageable memory would wait for the stream itself, and ask nobody for failures
  // meanwhile.
  wait_for(queue);
  if (!queue.status.ok()) return numbers;
  queue.status.check(cudaMemcpyAsync(numbers.data(), floats->data, floats->bytes(),
                                     cudaMemcpyDeviceToHost, queue.stream),
                     "cudaMemcpyAsync");
  wait_for(queue);
  return numbers;
}

void upload(const Queue& queue, const View& view, const std::vector<float>& numbers) {
  if (numbers.empty() || !queue.status.ok()) return;
  const Scratch floats(queue, view.rows, view.columns, ElementType::f32);
  // A copy from pageable memory returns when it has read it. If it is larger than the driver's own
  // staging memory, it is read only when the stream has come so far.
  constexpr std::size_t kReadAtOnce = std::size_t{64} * 1024;
  if (floats->bytes() > kReadAtOnce) wait_for(queue);
  queue.status.check(cudaMemcpyAsync(floats->data, numbers.data(), floats->bytes(),
                                     cudaMemcpyHostToDevice, queue.stream),
                     "cudaMemcpyAsync");
  if (is_scaled(view.type)) return cast(queue, view, {*floats});
  convert(queue, view, *floats);
}

DeviceWeight::DeviceWeight(const DeviceWork& work, const View& weight)
    : room_(work.queue, work.operation.cast.exists() ? weight.rows : 0, weight.columns,
            ElementType::e4m3, work.operation.cast.block),
      view_(weight) {
  if (!work.operation.cast.exists()) return;
  cast(work.queue, *room_, {weight});
  view_ = *room_;
}

const std::vector<float>& mirrored(const Queue& queue, DeviceTensor& tensor) {
  if (tensor.mirror.empty()) tensor.mirror = downloaded(queue, tensor.view);
  return tensor.mirror;
}

void compute(const DeviceWork& work) {
  switch (group_of(work.operation.kind)) {
    case KernelGroup::tokens:
      return compute_tokens(work);
    case KernelGroup::attention:
      return compute_attention(work);
    case KernelGroup::experts:
      return compute_experts(work);
    case KernelGroup::states:
      return compute_states(work);
    case KernelGroup::ends:
      return compute_ends(work);
  }
}

}  // namespace trainyard
