// The kernels behind the compute operations of a program, with the results of executor/cpu/kernels
// on the host: arithmetic in float, results rounded to what their buffers store. Sums are taken in
// a fixed order, so a run repeats itself. Matrix products are in executor/cuda/gemm.h.
#pragma once

#include <vector>

#include "executor/cuda/queue.h"
#include "executor/random.h"

namespace trainyard {

// Where the rows of a matrix of tokens belong: sequence of the run and position in it (token_place
// of executor/cpu/kernels/kernels.h).
struct RowPlaces {
  std::int64_t part = 1;    // tokens of a sequence on one context rank
  std::int64_t offset = 0;  // of the first row, where tensor-parallel ranks share the tokens
  std::int64_t first_sequence = 0;  // first sequence of the micro-batch
  int context = 0, ranks = 1;
  bool halves = false;  // a context rank has two chunks, the second one from the end
};

struct Dropout {
  std::uint64_t seed = 0;
  int site = 0, layer = -1;
  double rate = 0;
  float kept = 1;  // factor of the elements that are kept
  RowPlaces places;
};

// ---- Element by element; nullptr: an operand that is not there ----------------------------------

void fill(const Queue& queue, const View& out, float number);
void fill_with_noise(const Queue& queue, const View& out, std::uint64_t message);  // message_noise
// or copies where the types agree
void convert(const Queue& queue, const View& out, const View& in);
void add_to(const Queue& queue, const View& into, const View& what);
void add(const Queue& queue, const View& out, const View& a, const View& b);
// out = stream + dropped(branch + bias); masks are bytes
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
// into[column] += Σ over the rows of `of`
void add_column_sums(const Queue& queue, const View& into, const View& of);
// Adds `row` to every row of `rows`, from column `first_column` on.
void add_row(const Queue& queue, const View& rows, std::int64_t first_column, const View& row);
// The columns of every row from `first` on; the calls below say how many.
struct Columns {
  View of;
  std::int64_t first = 0;
};
void copy_columns(const Queue& queue, const Columns& to, const Columns& from, std::int64_t width);
void add_columns(const Queue& queue, const Columns& to, const View& what);  // +=

// ---- Casts to 8 bits; `out` and `all` are scaled, their scales are written too ------------------

// Puts matrices side by side, rounded. With blocks, each one's columns must be a multiple of the
// block, else the status fails.
void cast(const Queue& queue, const View& out, const std::vector<View>& in);
// out[c, r] = in[r, c], where rows of `in` begin `leading` elements apart; further columns of `out`
// become zero. With one scale, `out` must already have that of `in`; with blocks, new scales are
// made along the rows of `out`.
void transpose(const Queue& queue, const View& out, const View& in, std::int64_t leading);
// Rescales `all`, whose equal parts were each rounded with one of `scales` (floats), to the largest
// one.
void to_one_scale(const Queue& queue, const View& all, const View& scales);
// Arranges the scales of blocks as cuBLASLt reads them ("1D block scaling factors layout").
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
// Heads side by side, each made of its own part and one part that all heads share; and back, where
// the shared part is summed over the heads.
void join_heads(const Queue& queue, const View& out, const View& own, const View& shared);
void split_heads(const Queue& queue, const View& own, const View& shared, const View& in);

// ---- Attention ----------------------------------------------------------------------------------

// Where the tokens of one sequence lie among the rows of a matrix.
struct TokenOrder {
  std::int64_t part = 1;       // tokens of the sequence on one context rank
  std::int64_t parts = 1;      // context ranks whose tokens the matrix has
  std::int64_t part_rows = 0;  // rows from one part to the next
  int context = 0, ranks = 1;  // context rank of the only part
  bool halves = false;
};
struct AttentionPlan {
  TokenOrder queries, keys;
  int sequences = 1, heads = 1, kv_heads = 1;
  int query_width = 0, value_width = 0;  // elements per head
  std::int64_t window = 0;               // keys that a query sees; 0: all before it
  int first_head = 0;                    // first head's index among the rank's sinks
  bool log_sums = true;                  // statistics are log-sum-exps; else probabilities
  Dropout dropout;  // its places.first_sequence is the first sequence; rate 0: none
  std::int64_t first_dropped_head = 0;
  std::int64_t length = 0;  // tokens per sequence
};
struct AttentionOperands {
  View queries, keys, values, output, statistics;
  View scores;  // [queries × heads · keys], kept beside log-sum-exps where scores are in memory
  const View* sinks = nullptr;
  bool first = true;  // first block of keys; later ones update output and statistics
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
// Converts numbers of each token and head from [sequences · length × heads] to [sequences, heads,
// length], the order of cuDNN's log-sum-exps, and back.
void to_heads(const Queue& queue, const View& by_head, const View& by_token, std::int64_t length);
void from_heads(const Queue& queue, const View& by_token, const View& by_head, std::int64_t length);
// The same with tensor cores: for bf16 or fp16, heads of 64 or 128 elements, and no scores in
// memory. False: not supported, nothing was done.
bool tensor_attention(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of);
bool tensor_attention_gradient(const Queue& queue, const AttentionPlan& plan,
                               const AttentionOperands& of, const AttentionGradients& gradients,
                               const View& delta);

// ---- Both ends ----------------------------------------------------------------------------------

// The rows of `table` belong to words first_word, first_word + 1, …
void embedding(const Queue& queue, const View& out, const View& tokens, const View& table,
               std::int64_t first_word);
// The table's gradient is stored as float or as `dout` is; tokens are floats.
void embedding_gradient(const Queue& queue, const View& table_gradient, const View& tokens,
                        const View& dout, std::int64_t first_word);
void positions(const Queue& queue, const View& out, const View& in, const View& table,
               const RowPlaces& places);
void positions_gradient(const Queue& queue, const View& table_gradient, const View& dout,
                        const RowPlaces& places);
// Logits and their gradient have one type; sums of them and labels are floats. Of this rank's
// columns of logits the first `words` are words, from word `first` on; the others pad the
// vocabulary.
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
// The gradient is divided by `tokens`, which may be fractional.
void cross_entropy_gradient(const Queue& queue, const View& gradient, const View& logits,
                            const View& largest, const View& sum, const View& labels,
                            LocalWords words, float tokens);

// ---- Experts; indices are 32-bit integers in views of f32's size --------------------------------

void route(const Queue& queue, const View& gates, const View& experts, const View& logits,
           const View* correction);
// From the experts chosen for each token: for each copy its place in the order of the experts (−1:
// dropped), for each place its copy, and in `counts` [1 × experts] the rows of each expert.
void order_copies(const Queue& queue, const View& place_of_copy, const View& copy_of_place,
                  const View& counts, const View& experts);
void route_gradient(const Queue& queue, const View& dlogits, const View& logits,
                    const View& experts, const View& dgates, const View& place_of_copy);
// Row i of `out` becomes row index[i] / divisor of `in`.
void gather_rows(const Queue& queue, const View& out, const View& in, const View& index,
                 int divisor);
void scatter_rows(const Queue& queue, const View& out, const View& in, const View& index);
// out = Σ of `added` + Σ of each token's copies; a copy with −1 in `place_of_copy` was dropped.
void unpermute(const Queue& queue, const View& out, const View& copies, const View& place_of_copy,
               const std::vector<View>& added);
// Row i gets the bias of expert which[i].
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
  bool keeps_weights = false;  // the last state is the weight in full precision
  bool decays = false, first_step = false, clips = false;
  bool skips = false;  // leaves the update out where the norm is not finite
  float scale = 1;     // factor that the gradients carry
  float clip_norm = 1, rate = 0, momentum = 0, first = 0, second = 0, epsilon = 0, decay = 0;
  float first_whole = 1, second_whole = 1;  // Adam's bias corrections 1 − β^steps
};
// Updates elements of one weight; `states` has a row for each element.
void update(const Queue& queue, const View& weight, const View& gradient, const View& states,
            const View* squared_norm, const UpdateRule& rule);

}  // namespace trainyard
