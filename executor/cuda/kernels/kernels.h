// What the compute operations of a program do on a device, as executor/cpu/kernels does it on the
// host: arithmetic in float, results rounded to what their buffers store. Sums are taken in a fixed
// order, so a run repeats itself. Matrix products are executor/cuda/gemm.h.
#pragma once

#include <vector>

#include "executor/cuda/queue.h"
#include "executor/random.h"

namespace trainyard {

// Where the rows of a matrix of tokens stand: in which sequence of the run, at which position
// (token_place of executor/cpu/kernels/kernels.h).
struct RowPlaces {
  std::int64_t part = 1;            // tokens of a sequence on one context rank
  std::int64_t offset = 0;          // of the first row, where ranks share the tokens
  std::int64_t first_sequence = 0;  // of the micro-batch
  int context = 0, ranks = 1;
  bool halves = false;  // two chunks a rank, the second from the other end
};

struct Dropout {
  std::uint64_t seed = 0;
  int site = 0, layer = -1;
  double rate = 0;
  float kept = 1;  // what is kept is multiplied with
  RowPlaces places;
};

// ---- Element by element; nullptr: an operand that is not there ----------------------------------

void fill(const Queue& queue, const View& out, float number);
void fill_with_noise(const Queue& queue, const View& out, std::uint64_t message);  // message_noise
void convert(const Queue& queue, const View& out, const View& in);                 // or copies
void add_to(const Queue& queue, const View& into, const View& what);
void add(const Queue& queue, const View& out, const View& a, const View& b);
// out = stream + dropped(branch + bias); masks are of bytes
void residual(const Queue& queue, const View& out, const View& stream, const View& branch,
              const View* bias, const View* mask, const Dropout& dropout);
void drop(const Queue& queue, const View& out, const View& mask, const View& in,
          const Dropout& dropout);
void drop_gradient(const Queue& queue, const View& out, const View& in, const View& mask,
                   float kept);
void activation(const Queue& queue, const View& out, const View& in, const View* row_gates,
                bool gated);
void activation_gradient(const Queue& queue, const View& din, const View& in, const View& dout,
                         const View* row_gates, const View* row_gates_gradient, bool gated);
// into[column] += Σ of the rows
void add_column_sums(const Queue& queue, const View& into, const View& of);
// Rows += a row of as many columns; from a column of a wider matrix on.
void add_row(const Queue& queue, const View& rows, std::int64_t first_column, const View& row);
// Columns first … of every row; `width` each.
struct Columns {
  View of;
  std::int64_t first = 0;
};
void copy_columns(const Queue& queue, const Columns& to, const Columns& from, std::int64_t width);
void add_columns(const Queue& queue, const Columns& to, const View& what);  // +=

// ---- Casts to 8 bits; `out` and `all` are scaled, their scales are written too ------------------

// Matrices side by side, rounded. With blocks their columns come out even, else the status fails.
void cast(const Queue& queue, const View& out, const std::vector<View>& in);
// out[c, r] = in[r, c], whose rows are `leading` elements apart; as many more columns as `out` has
// are zero. One scale: both have it already. Blocks: those of `out` are along its own rows.
void transpose(const Queue& queue, const View& out, const View& in, std::int64_t leading);
// Parts of `all`, each rounded with its own of `scales` (floats), come to the largest of them.
void to_one_scale(const Queue& queue, const View& all, const View& scales);
// Scales of blocks as cuBLASLt reads them ("1D block scaling factors layout").
std::int64_t tiled_scale_bytes(std::int64_t rows, std::int64_t blocks);
void arrange_scales(const Queue& queue, const View& out, const View& of, std::int64_t leading);

// ---- Norms -------------------------------------------------------------------------------------

void norm(const Queue& queue, const View& out, const View& in, const View& scale, const View* shift,
          bool centred);
struct NormGradient {
  View din, in, dout, scale;
  View scale_gradient;  // +=
  const View* shift_gradient = nullptr;
  bool centred = false;
};
void norm_gradient(const Queue& queue, const NormGradient& of);

// ---- Rotary: `heads` heads, `stride` columns apart, from column `first` on ----------------------

struct RotaryColumns {
  std::int64_t first = 0, stride = 0, width = 0, heads = 1;
};
void rotate(const Queue& queue, const View& in_place, const RotaryColumns& columns,
            const RowPlaces& places, double direction);
// Heads side by side, each with its own part and one that all share.
void join_heads(const Queue& queue, const View& out, const View& own, const View& shared);
void split_heads(const Queue& queue, const View& own, const View& shared, const View& in);

// ---- Attention ----------------------------------------------------------------------------------

// The tokens of one sequence among the rows of a matrix.
struct TokenOrder {
  std::int64_t part = 1;       // of one context rank
  std::int64_t parts = 1;      // that the matrix has
  std::int64_t part_rows = 0;  // rows from one to the next
  int context = 0, ranks = 1;  // of the only part
  bool halves = false;
};
struct AttentionPlan {
  TokenOrder queries, keys;
  int sequences = 1, heads = 1, kv_heads = 1;
  int query_width = 0, value_width = 0;  // elements of a head
  std::int64_t window = 0;               // keys that a query sees; 0: all before it
  int first_head = 0;                    // of the rank's sinks
  bool log_sums = true;                  // what statistics are; else probabilities
  Dropout dropout;                       // of a sequence: places.first_sequence; rate 0: none
  std::int64_t first_dropped_head = 0;
  std::int64_t length = 0;  // of a sequence
};
struct AttentionOperands {
  View queries, keys, values, output, statistics;
  View scores;  // [queries × heads · keys], beside log-sum-exps, where they are in memory
  const View* sinks = nullptr;
  bool first = true;  // of the blocks of keys; else output and statistics are added to
};
void attention(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of);
struct AttentionGradients {
  View output_gradient;
  View queries, keys, values;  // gradients
  bool add_queries = false, add_keys = false;
  const View* sinks = nullptr;  // += gradient
};
void attention_gradient(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
                        const AttentionGradients& gradients);
// Numbers of each token and head [sequences · length × heads] by head [sequences, heads, length],
// as cuDNN has log-sum-exps, and back.
void to_heads(const Queue& queue, const View& by_head, const View& by_token, std::int64_t length);
void from_heads(const Queue& queue, const View& by_token, const View& by_head, std::int64_t length);
// With tensor cores: bf16 or fp16, heads of 64 or 128 elements, no scores in memory. Nothing done:
// false.
bool tensor_attention(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of);
bool tensor_attention_gradient(const Queue& queue, const AttentionPlan& plan,
                               const AttentionOperands& of, const AttentionGradients& gradients,
                               const View& delta);

// ---- Both ends ----------------------------------------------------------------------------------

// The table's rows are those of words first_word …
void embedding(const Queue& queue, const View& out, const View& tokens, const View& table,
               std::int64_t first_word);
// The table's gradient is of floats or of the type of `dout`; tokens are floats.
void embedding_gradient(const Queue& queue, const View& table_gradient, const View& tokens,
                        const View& dout, std::int64_t first_word);
void positions(const Queue& queue, const View& out, const View& in, const View& table,
               const RowPlaces& places);
void positions_gradient(const Queue& queue, const View& table_gradient, const View& dout,
                        const RowPlaces& places);
// Logits and their gradient are of one type; sums of them and labels are floats. `words`: columns
// of this rank's logits that are words; the rest pads.
struct LocalWords {
  std::int64_t first = 0, words = 0;
};
void cross_entropy_max(const Queue& queue, const View& out, const View& logits, LocalWords words);
// The label's logit goes to the last column of `label_logit`.
void cross_entropy_sum(const Queue& queue, const View& sum, const View& label_logit,
                       const View& logits, const View& largest, const View& labels,
                       LocalWords words);
void cross_entropy_loss(const Queue& queue, const View& loss, const View& largest, const View& sum,
                        const View& label_logit, float tokens);
// Over `tokens`, which need not be whole.
void cross_entropy_gradient(const Queue& queue, const View& gradient, const View& logits,
                            const View& largest, const View& sum, const View& labels,
                            LocalWords words, float tokens);

// ---- Experts; indices are 32-bit integers in views of f32's size --------------------------------

void route(const Queue& queue, const View& gates, const View& experts, const View& logits,
           const View* correction);
// From experts of tokens: for each copy where it stands in the order of the experts (−1: dropped),
// for each place its copy; `counts` [1 × experts] of rows by expert.
void order_copies(const Queue& queue, const View& place_of_copy, const View& copy_of_place,
                  const View& counts, const View& experts);
void route_gradient(const Queue& queue, const View& dlogits, const View& logits,
                    const View& experts, const View& dgates, const View& place_of_copy);
// out row i = in row index[i] / divisor
void gather_rows(const Queue& queue, const View& out, const View& in, const View& index,
                 int divisor);
void scatter_rows(const Queue& queue, const View& out, const View& in, const View& index);
// out = added … + Σ of each token's copies; −1 in `place_of_copy`: none
void unpermute(const Queue& queue, const View& out, const View& copies, const View& place_of_copy,
               const std::vector<View>& added);
// Row i has the bias of expert which[i].
void expert_bias(const Queue& queue, const View& rows, const View& gates, const View& biases,
                 const View& which);
void expert_bias_gradient(const Queue& queue, const View& bias_gradient, const View& gate_gradient,
                          const View& gates, const View& biases, const View& dout,
                          const View& which);

// ---- Update -------------------------------------------------------------------------------------

// sum += Σ (elements / scale)² / replicas
struct SquaresRule {
  double replicas = 1;
  float scale = 1;
};
void add_squares(const Queue& queue, const View& sum, const View& of, const SquaresRule& rule);
struct UpdateRule {
  int moments = 0;
  bool keeps_weights = false;  // the last state is the weight in full
  bool decays = false, first_step = false, clips = false;
  bool skips = false;  // where the norm is not finite
  float scale = 1;     // of the gradients
  float clip_norm = 1, rate = 0, momentum = 0, first = 0, second = 0, epsilon = 0, decay = 0;
  float first_whole = 1, second_whole = 1;  // Adam's bias correction
};
// Elements of one weight that this rank updates; `states` has a row for each.
void update(const Queue& queue, const View& weight, const View& gradient, const View& states,
            const View* squared_norm, const UpdateRule& rule);

}  // namespace trainyard
