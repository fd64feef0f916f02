#include "executor/cuda/cudnn_attention.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <exception>
#include <map>
#include <string>
#include <unordered_map>

namespace cudnn_frontend {
// The handle in which the frontend looks up cuDNN's functions.
void* cudnn_dlhandle = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
}  // namespace cudnn_frontend

namespace trainyard {
namespace {

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;

constexpr const char* kLibrary = "libcudnn.so.9";
constexpr std::int64_t kWidest = 256;  // elements of a head
constexpr std::int64_t kInStepsOf = 8;
// Bytes. On Hopper the deterministic backward pass keeps 16 bits for each score, which no plan's
// memory counts: 4 GiB for 32 heads and 8192 tokens.
constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 30;

using Id = std::int64_t;
constexpr Id kQ = 1, kK = 2, kV = 3, kO = 4, kStats = 5, kDo = 6, kDq = 7, kDk = 8, kDv = 9;

// The key of a graph; a program has few different shapes.
struct Shape {
  std::int64_t sequences = 1, heads = 1, kv_heads = 1, length = 1, query_width = 1, value_width = 1;
  bool backward = false;
  ElementType type = ElementType::bf16;
  auto operator<=>(const Shape&) const = default;
};

bool in_order(const TokenOrder& order, const AttentionPlan& plan) {
  return !order.halves && order.parts == 1 && order.part == plan.length;
}

bool may_fit(const AttentionPlan& plan, const AttentionOperands& of) {
  const ElementType type = of.queries.type;
  if (type != ElementType::bf16 && type != ElementType::f16) return false;
  for (const View* view : {&of.keys, &of.values, &of.output}) {
    if (view->type != type) return false;
  }
  for (const std::int64_t width : {plan.query_width, plan.value_width}) {
    if (width > kWidest || width % kInStepsOf != 0) return false;
  }
  const bool sees_all = plan.window == 0 || plan.window >= plan.length;
  return plan.log_sums && of.scores.data == nullptr && of.first && of.sinks == nullptr &&
         sees_all && in_order(plan.queries, plan) && in_order(plan.keys, plan);
}

Shape shape_of(const AttentionPlan& plan, ElementType type, bool backward) {
  return {.sequences = plan.sequences,
          .heads = plan.heads,
          .kv_heads = plan.kv_heads,
          .length = plan.length,
          .query_width = plan.query_width,
          .value_width = plan.value_width,
          .backward = backward,
          .type = type};
}

fe::DataType_t type_of(const Shape& s) {
  return s.type == ElementType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
}

using Tensor4 = std::shared_ptr<graph::Tensor_attributes>;

// A tensor whose rows are tokens, with heads side by side in a row.
Tensor4& lay_out(Tensor4& tensor, Id id, const Shape& s, std::int64_t heads, std::int64_t width) {
  tensor->set_uid(id)
      .set_dim({s.sequences, heads, s.length, width})
      .set_stride({s.length * heads * width, width, heads * width, 1})
      .set_data_type(type_of(s));
  return tensor;
}
// Log-sum-exps by head, as the library wants to read them back.
void lay_out_sums(Tensor4& tensor, const Shape& s) {
  tensor->set_uid(kStats)
      .set_dim({s.sequences, s.heads, s.length, 1})
      .set_stride({s.heads * s.length, s.length, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

Tensor4 operand(graph::Graph& of, Id id, const Shape& s, std::int64_t heads, std::int64_t width) {
  Tensor4 tensor = of.tensor(graph::Tensor_attributes().set_name(std::to_string(id)));
  return lay_out(tensor, id, s, heads, width);
}

float scale_of(const Shape& s) { return 1 / std::sqrt(static_cast<float>(s.query_width)); }

void add_forward(graph::Graph& of, const Shape& s) {
  auto [output, sums] = of.sdpa(operand(of, kQ, s, s.heads, s.query_width),
                                operand(of, kK, s, s.kv_heads, s.query_width),
                                operand(of, kV, s, s.kv_heads, s.value_width),
                                graph::SDPA_attributes()
                                    .set_name("attention")
                                    .set_generate_stats(true)
                                    .set_causal_mask(true)
                                    .set_attn_scale(scale_of(s)));
  lay_out(output, kO, s, s.heads, s.value_width)->set_output(true);
  lay_out_sums(sums, s);
  sums->set_output(true);
}

void add_backward(graph::Graph& of, const Shape& s, bool repeats) {
  Tensor4 sums = of.tensor(graph::Tensor_attributes().set_name("sums"));
  lay_out_sums(sums, s);
  auto [dq, dk, dv] = of.sdpa_backward(
      operand(of, kQ, s, s.heads, s.query_width), operand(of, kK, s, s.kv_heads, s.query_width),
      operand(of, kV, s, s.kv_heads, s.value_width), operand(of, kO, s, s.heads, s.value_width),
      operand(of, kDo, s, s.heads, s.value_width), sums,
      graph::SDPA_backward_attributes()
          .set_name("attention gradient")
          .set_causal_mask(true)
          .set_attn_scale(scale_of(s))
          .set_deterministic_algorithm(repeats));
  lay_out(dq, kDq, s, s.heads, s.query_width)->set_output(true);
  lay_out(dk, kDk, s, s.kv_heads, s.query_width)->set_output(true);
  lay_out(dv, kDv, s, s.kv_heads, s.value_width)->set_output(true);
}

using Pointers = std::unordered_map<std::int64_t, void*>;

class LoadedCudnn final : public CudnnAttention {
 public:
  LoadedCudnn() {
    fe::cudnn_dlhandle = dlopen(kLibrary, RTLD_NOW);
    if (fe::cudnn_dlhandle == nullptr) return;
    const auto created = guarded([&] { return fe::detail::create_handle(&handle_); });
    if (created != CUDNN_STATUS_SUCCESS) handle_ = nullptr;
  }
  ~LoadedCudnn() override {
    graphs_.clear();
    if (handle_ != nullptr) guarded([&] { return fe::detail::destroy_handle(handle_); });
  }

  bool forward(const Queue& queue, const AttentionPlan& plan,
               const AttentionOperands& of) override {
    graph::Graph* found = graph_for(plan, of, false);
    if (found == nullptr) return false;
    const Scratch sums(queue, of.statistics.rows, of.statistics.columns, ElementType::f32);
    run(queue, *found,
        {{kQ, of.queries.data},
         {kK, of.keys.data},
         {kV, of.values.data},
         {kO, of.output.data},
         {kStats, sums->data}});
    from_heads(queue, of.statistics, *sums, plan.length);
    return true;
  }

  bool backward(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
                const AttentionGradients& gradients) override {
    if (gradients.add_queries || gradients.add_keys) return false;
    for (const View* view :
         {&gradients.output_gradient, &gradients.queries, &gradients.keys, &gradients.values}) {
      if (view->type != of.queries.type) return false;
    }
    graph::Graph* found = graph_for(plan, of, true);
    if (found == nullptr) return false;
    const Scratch sums(queue, of.statistics.rows, of.statistics.columns, ElementType::f32);
    to_heads(queue, *sums, of.statistics, plan.length);
    run(queue, *found,
        {{kQ, of.queries.data},
         {kK, of.keys.data},
         {kV, of.values.data},
         {kO, of.output.data},
         {kStats, sums->data},
         {kDo, gradients.output_gradient.data},
         {kDq, gradients.queries.data},
         {kDk, gradients.keys.data},
         {kDv, gradients.values.data}});
    return true;
  }

 private:
  // Calls the library; the frontend throws where one of its functions is missing.
  template <typename Call>
  static cudnnStatus_t guarded(const Call& call) {
    try {
      return call();
    } catch (const std::exception&) {
      return CUDNN_STATUS_NOT_SUPPORTED;
    }
  }

  // nullptr: the library has no kernel for it.
  graph::Graph* graph_for(const AttentionPlan& plan, const AttentionOperands& of, bool backward) {
    if (handle_ == nullptr || !may_fit(plan, of)) return nullptr;
    const Shape shape = shape_of(plan, of.queries.type, backward);
    const auto [entry, is_new] = graphs_.try_emplace(shape);
    if (is_new) entry->second = built(shape);
    return entry->second.get();
  }

  // For the backward pass the deterministic kernel is tried first.
  std::unique_ptr<graph::Graph> built(const Shape& shape) const {
    for (const bool repeats : {true, false}) {
      auto made = built(shape, repeats);
      if (made != nullptr && made->get_workspace_size() <= kMostWorkspace) return made;
      if (!shape.backward) break;
    }
    return nullptr;
  }
  std::unique_ptr<graph::Graph> built(const Shape& shape, bool repeats) const {
    try {
      auto made = std::make_unique<graph::Graph>();
      made->set_io_data_type(type_of(shape))
          .set_intermediate_data_type(fe::DataType_t::FLOAT)
          .set_compute_data_type(fe::DataType_t::FLOAT);
      if (shape.backward) {
        add_backward(*made, shape, repeats);
      } else {
        add_forward(*made, shape);
      }
      if (made->build(handle_, {fe::HeurMode_t::A}).is_good()) return made;
    } catch (const std::exception&) {
      return nullptr;
    }
    return nullptr;
  }

  void run(const Queue& queue, const graph::Graph& of, Pointers pointers) const {
    if (!queue.status.ok()) return;
    const Scratch workspace(queue, of.get_workspace_size(), 1, ElementType::u8);
    if (guarded([&] { return fe::detail::set_stream(handle_, queue.stream); }) !=
        CUDNN_STATUS_SUCCESS) {
      return queue.status.fail("cudnnSetStream failed");
    }
    fe::error_t done = of.execute(handle_, pointers, workspace->data);
    if (done.is_bad()) queue.status.fail("cudnnBackendExecute failed: " + done.get_message());
  }

  cudnnHandle_t handle_ = nullptr;
  std::map<Shape, std::unique_ptr<graph::Graph>> graphs_;
};

}  // namespace

std::unique_ptr<CudnnAttention> make_cudnn_attention() { return std::make_unique<LoadedCudnn>(); }

std::string cudnn_version() {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) return "";
  const auto version = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cudnnGetVersion"));
  if (version == nullptr) return "";
  const std::size_t number = version();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace trainyard
