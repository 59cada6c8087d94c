#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/arena.h"
#include "kernels/engine/random.h"
#include "kernels/engine/tape.h"
#include "kernels/engine/token_position.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/norm/norm.h"
#include "models/probe.h"

namespace saccade {

/// A trained tensor. Names are the paper's words, layers as "layer3.query"; `embedding` and `final_norm` stand alone.
struct Parameter {
  std::string name;
  Tensor value;
  Tensor grad = {};      ///< same shape; empty when the model is not for training
  bool decay = true;     ///< weight decay applies (matrices)
  int64_t stack = -1;    ///< number of the stack (ParameterMaker::Stack) that it belongs to; -1: none
  double deviation = 0;  ///< of the values it starts with, where they are random around 0
};

/// A tensor of `dtype` for every parameter that is wanted, empty for the others; those of a stack are rows of one tensor.
std::vector<Tensor> allocate_for(const std::vector<Parameter>& parameters, Arena& arena, DType dtype,
                                 const std::function<bool(const Parameter&)>& wanted);

/// Makes parameters in the model's arena and fills them from (seed, name), so the values depend on nothing else.
class ParameterMaker {
 public:
  /// While it lives, the matrices [n_i, in] that are made are rows of one tensor [rows, in], and so are their gradients and copies for
  /// products: one product takes them all (kernels/ops/linear/linear_stack_cuda.h). Vectors stand apart, and so do all matrices where one
  /// would begin at no multiple of kStackAlignment elements, which kernels could not read. Throws std::logic_error at a matrix of another
  /// width or a row too many.
  class Stack {
   public:
    Stack(ParameterMaker& make, const std::vector<int64_t>& rows, int64_t in);
    ~Stack() { make_.stack_ = {}; }
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;

   private:
    ParameterMaker& make_;
  };
  static constexpr int64_t kStackAlignment = 128;

  /// While it lives, parameters of a layer are those of a part of it: layer3.query is made as layer3.first.query.
  class Part {
   public:
    Part(ParameterMaker& make, std::string name) : make_(make) { make_.part_ = std::move(name); }
    ~Part() { make_.part_.clear(); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    ParameterMaker& make_;
  };

  ParameterMaker(Arena& arena, DType dtype, uint64_t seed, bool training)
      : arena_(arena), dtype_(dtype), seed_(seed), training_(training) {}

  Tensor normal(const std::string& name, const Shape& shape, double deviation);
  Tensor xavier_normal(const std::string& name, const Shape& shape);            ///< deviation sqrt(2 / (in + out)) of a matrix
  Tensor uniform(const std::string& name, const Shape& shape, double bound);    ///< in ±bound
  Tensor orthogonal(const std::string& name, const Shape& shape, double gain);  ///< gain times orthonormal columns, rows where wide
  Tensor zeros(const std::string& name, const Shape& shape);                    ///< a matrix that starts at zero: decay applies
  Tensor constant(const std::string& name, const Shape& shape, double value);   ///< gains and biases: no decay
  /// A function of a number drawn uniformly from [0, 1): step sizes, decays. Weight decay does not apply.
  Tensor drawn(const std::string& name, const Shape& shape, const std::function<double(double u)>& value);
  /// A formula of the element's index: decays, mix vectors. Weight decay does not apply.
  Tensor formula(const std::string& name, const Shape& shape, const std::function<double(uint64_t index)>& value);

  /// All of them, with their gradients when training.
  std::vector<Parameter> take();

 private:
  Tensor add(const std::string& name, const Shape& shape, bool decay, const std::function<double(uint64_t)>& value);
  Tensor with_deviation(const Tensor& made, double deviation);
  std::string full(const std::string& name) const;  ///< with the part
  Random random_of(const std::string& name) const;  ///< what its initial values are drawn from

  struct Rows {
    Tensor all;        ///< of the stack that is being made; empty: none
    int64_t next = 0;  ///< first row that is not taken
  };
  Tensor stacked_rows(const Shape& shape);

  std::string part_;
  Rows stack_;
  int64_t stacks_ = 0;
  Arena& arena_;
  DType dtype_;
  uint64_t seed_;
  bool training_;
  std::vector<Parameter> parameters_;
};

/// The last position of one sequence [1, n, D]: [1, 1, D], sharing memory. Carries no gradient.
inline Tensor last_row(const Tensor& x) {
  const int64_t n = x.dim(1), width = x.dim(2);
  return x.reshape({n, width}).slice(n - 1, n).reshape({1, 1, width});
}

/// What the layers of one forward pass share besides the stream of hidden states.
struct Pass {
  Probe* probe = nullptr;
  /// Values of the first RWKV-7 layer, which later ones blend into theirs (v_first), whatever stands between; empty until it has run.
  Tensor first_values;
  /// The stream that a layer's output is added to. A mixer whose last product can do that (take_residual) saves a pass; it
  /// then returns the sum. The block adds what nobody took.
  Tensor residual = {};
  Tensor take_residual() { return std::exchange(residual, Tensor()); }
  /// For an output of that many rows: its last row alone where the output is that of the last position.
  Tensor take_residual(int64_t rows) {
    const Tensor taken = take_residual();
    return taken && taken.dim(1) > rows ? last_row(taken) : taken;
  }
  /// What the input of Mixer::extend still has to go through, for a mixer that norms its input (Mixer::norms_input).
  InputNorm input_norm = {};
  InputNorm take_input_norm() { return std::exchange(input_norm, InputNorm()); }
  /// Of the layer under way: multiplies what its mixer gives before the last matrix; empty where nothing does (time_mix.h).
  Tensor output_gate = {};
  TokenPosition position = {};  ///< of the pass's first token, where a sequence comes in pieces (DecodingState::pass)
  bool last_only = false;       ///< this layer's output is read at the last position only: Mixer::extend may return just that

  /// What the layer's mixer is to do otherwise (Probe::take); nothing where nobody looks.
  std::optional<Counterfactual> take(int64_t layer, Counterfactual::Kind kind, int64_t heads) const {
    return probe ? probe->take(layer, kind, heads, 0) : std::nullopt;
  }

  /// Position of the queries of a pass over n tokens.
  TokenPosition queries(int64_t n) const { return last_only ? TokenPosition{position.first + n - 1} : position; }
};

/// What one layer keeps of the tokens it has seen when a sequence comes in pieces: keys and values, a recurrent state, the
/// last inputs of a convolution or of a token shift.
class LayerState {
 public:
  virtual ~LayerState() = default;

  /// What a tensor of the state holds.
  enum class Kept {
    tokens,  ///< rows of the tokens seen; what lies behind them is not read
    sum,     ///< a function of all tokens seen, zero before the first
  };
  /// Every tensor that is kept: [B, …], or [1, …] where one stands for all sequences; some may be empty.
  virtual void each(const std::function<void(Tensor&, Kept)>& f) = 0;
  /// Sequences first … first + count − 1 of these, sharing memory.
  virtual std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const = 0;

 protected:
  /// `sequences` of a state that has tensors only.
  template <class Own>
  static std::unique_ptr<LayerState> part_of(const Own& all, int64_t first, int64_t count) {
    auto part = std::make_unique<Own>(all);
    part->each([&](Tensor& x, Kept) { x = sequences_of(x, first, count); });
    return part;
  }
};

/// Sequences in progress (decoding), all as long as each other or each of a length of its own. Made by Model::begin, advanced by
/// Model::extend.
struct DecodingState {
  int64_t batch = 0;
  int64_t capacity = 0;  ///< most tokens a sequence may get
  int64_t length = 0;    ///< tokens seen; the longest sequence's where lengths differ
  std::vector<std::unique_ptr<LayerState>> layers;
  bool last_only = false;  ///< with one sequence, extend may return the last position only, and leave out what only others need
  /// i32 [1], the same number, on a GPU: so that a captured step serves every position; i32 [batch] where lengths may differ.
  Tensor length_on_device = {};

  /// For `batch` sequences on the arena's device; layers are the model's business.
  static DecodingState empty(Arena& arena, int64_t batch, int64_t capacity);
  /// Gives each sequence a length of its own, 0 in a state without tokens. Whoever extends them says in `length` which is the greatest.
  void let_lengths_differ(Arena& arena);
  /// Sequence b alone, of `tokens` tokens, sharing memory with these; of a state whose lengths may differ.
  DecodingState sequence(int64_t b, int64_t tokens) const;
  /// Sequence b gets no tokens.
  void clear(int64_t b);
  /// Each sequence b becomes a copy of sequence index[b] (i32 [batch]) of a state of the same model and capacity, all as long as each
  /// other.
  void copy(Tape& tape, const DecodingState& other, const Tensor& index);
  /// Of the n tokens that follow. Throws UsageError when they do not fit.
  Pass pass(int64_t n) const;
  /// After a pass over n tokens.
  void advance(Tape& tape, int64_t n);
};

/// A whole sequence model.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Final-normed hidden states [B, T, D] of tokens i32 [B, T].
  virtual Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const = 0;
  /// An empty state for `batch` sequences of at most `capacity` tokens, in `arena`, for activations of `dtype`.
  /// Throws UsageError where the architecture cannot decode incrementally.
  virtual DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const;
  /// Final-normed hidden states [B, n, D] of the n tokens i32 [B, n] that follow those in the state, which then holds them
  /// too: a prompt first, then token by token. Equal to `hidden` of the whole sequence at these positions. With
  /// state.last_only it may be [1, 1, D], those of the last token.
  /// Where lengths differ, each sequence's tokens follow its own.
  virtual Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const;
  /// The matrix [V, D] that turns hidden states into logits (the embedding where tied).
  virtual Tensor output_weight() const = 0;
  /// Numbers that decoding keeps per token of a context as long as the sequence, over all layers: keys and values,
  /// embeddings for Avey's ranker …
  virtual double state_values_per_token() const = 0;

  /// Mean next-token cross-entropy in nats, scalar [1]; `token_losses` receives [B·T] when given. A max_logit_penalty is in the
  /// gradient only; most_targets are those of all B·T rows.
  Tensor loss(Tape& tape, const Tensor& tokens, const Tensor& targets, Probe* probe = nullptr, Tensor* token_losses = nullptr,
              const CrossEntropyOptions& options = {}) const;
  /// [B, T, V]
  Tensor logits(Tape& tape, const Tensor& tokens, Probe* probe = nullptr) const;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  Parameter& parameter(const std::string& name);
  int64_t parameter_count() const;
  /// Binds every parameter's gradient buffer on the tape.
  void bind_gradients(Tape& tape) const;

 protected:
  Model() = default;
  std::vector<Parameter> parameters_;
};

}  // namespace saccade
