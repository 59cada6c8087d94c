#include "kernels/ops/top1_chunk/top1_chunk.h"

#include <algorithm>

#include "kernels/engine/expect.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/cpu_head_gradient.h"
#include "kernels/ops/top1_chunk/chunk_attention.h"
#include "kernels/ops/top1_chunk/cpu_weights.h"
#include "kernels/ops/top1_chunk/report.h"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade {
namespace {

ChunkProblem chunk_problem(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& score,
                           const ChunkOptions& options) {
  const HeadShape shape = head_shape(op, q, k, v);
  check_window(op, score);
  if (options.chunk < 1) throw UsageError(std::string("[") + op + "] expects a chunk of at least 1, not " + std::to_string(options.chunk));
  if (options.top_k < 1 || options.top_k > 255)
    throw UsageError(std::string("[") + op + "] expects top_k from 1 to 255, not " + std::to_string(options.top_k));
  if (const ForcedChoice& f = options.forced; f) {
    const bool known = f.head >= 0 && f.head < shape.heads && f.query < shape.length;
    if (!known || f.choice < -1 || f.choice >= f.query / std::min(options.chunk, shape.length))
      throw UsageError(std::string("[") + op + "] query " + std::to_string(f.query) + " of head " + std::to_string(f.head) +
                       " cannot read chunk " + std::to_string(f.choice) + "; expected a complete chunk before its own, or -1 for none");
  }
  ChunkProblem p{shape, score, options};
  p.options.chunk = std::min(options.chunk, shape.length);  // a longer one holds all positions too
  return p;
}

/// (query, key) pairs of one head that attention covers: own chunk and chosen chunks.
double attended_pairs(const ChunkProblem& p) {
  double pairs = 0;
  for (int64_t t = 0; t < p.shape.length; ++t)
    pairs += static_cast<double>(t % p.options.chunk + 1 + std::min(p.options.top_k, p.candidates(t)) * p.options.chunk);
  return pairs;
}

/// (query, candidate) pairs of one head.
double candidate_pairs(const ChunkProblem& p) {
  double pairs = 0;
  for (int64_t t = 0; t < p.shape.length; ++t) pairs += static_cast<double>(p.candidates(t));
  return pairs;
}

double head_elements(const ChunkProblem& p) { return static_cast<double>(p.shape.sequences() * p.shape.width); }

/// Multiply-adds of scoring all candidates, by log mass or by mean keys.
double score_flops(const ChunkProblem& p, bool by_mean) {
  return 2.0 * head_elements(p) * candidate_pairs(p) * (by_mean ? 1.0 : static_cast<double>(p.options.chunk));
}

/// Mean keys of the complete chunks; empty when there are none or selection does not use them.
Tensor mean_keys(Tape& tape, const ChunkProblem& p, const Tensor& k) {
  if (p.options.selection != ChunkSelection::approx || p.shape.length < p.options.chunk) return {};
  const Tensor means = tape.empty({k.dim(0), p.shape.length / p.options.chunk, p.shape.heads, p.shape.width}, k.dtype());
  tape.run(
      "top1_chunk.means", {static_cast<double>(k.size()), static_cast<double>(k.bytes() + means.bytes())},
      [&] { dispatch(k.dtype(), [&](auto zero) { cpu::chunk_means<decltype(zero)>(p, k, means); }); },
      [&] { cuda::chunk_means(tape.stream(), p, k, means); });
  return means;
}

/// The forced chunk in place of the last chosen one.
void force(Tape& tape, const ChunkProblem& p, const Tensor& selected) {
  const ForcedChoice& f = p.options.forced;
  if (!f) return;
  tape.run("top1_chunk.force", {}, [&] {
    int32_t* slots = selected.data<int32_t>() + (f.head * p.shape.length + f.query) * p.options.top_k;
    const int64_t used = std::min(p.options.top_k, p.candidates(f.query));
    const auto choice = static_cast<int32_t>(f.choice);
    if (choice < 0)
      std::fill_n(slots, used, -1);
    else if (std::find(slots, slots + used, choice) == slots + used)
      slots[used - 1] = choice;
  });
}

Tensor select(Tape& tape, const ChunkProblem& p, const Tensor& q, const Tensor& k, const Tensor& means) {
  const Tensor selected = tape.empty({p.shape.batch, p.shape.heads, p.shape.length, p.options.top_k}, DType::i32);
  const double flops = p.needs_scores() ? score_flops(p, static_cast<bool>(means)) : 0.0;
  const double read = p.needs_scores() ? static_cast<double>(q.bytes() + (means ? means : k).bytes()) : 0.0;
  if (p.needs_scores()) {
    p.shape.note_width(tape, "top1_chunk", q.dtype());
    tape.note_tensor_cores("top1_chunk.select", q.dtype(), cuda::selects_on_tensor_cores(p, q.dtype()),
                           "this selection; one chunk a query without ALiBi, and, where it is exact, chunks of 16, 32 or a multiple of 64 "
                           "without a window, have one");
  }
  const bool ranked = tape.device().targets_cuda() && p.needs_scores() && !cuda::selects_on_tensor_cores(p, q.dtype());
  const Tensor best = ranked ? tape.empty(selected.shape(), DType::f32) : Tensor();
  tape.run(
      "top1_chunk.select", {flops, read + static_cast<double>(selected.bytes())},
      [&] { dispatch(q.dtype(), [&](auto zero) { cpu::select_chunks<decltype(zero)>(p, q, k, means, selected); }); },
      [&] { cuda::select_chunks(tape.stream(), p, q, k, means, selected, best); });
  force(tape, p, selected);
  return selected;
}

/// Queries sorted by chunk; on CUDA with how blocks share them.
cuda::QueryLists sort(Tape& tape, const ChunkProblem& p, const Tensor& selected, DType dtype) {
  const int64_t batch = p.shape.batch, heads = p.shape.heads, top_k = p.options.top_k, length = p.shape.length, chunks = p.chunks();
  cuda::QueryLists sorted{
      selected, tape.empty({batch, heads, top_k, length}, DType::i32), tape.empty({batch, heads, top_k, chunks + 1}, DType::i32), {}, {},
      {}};
  Tensor counts;
  const int64_t rows = cuda::attention_block_rows(dtype, p.shape.width);
  if (tape.device().targets_cuda()) {
    const int64_t together = cuda::group_chunks(p.options.chunk, rows), groups = (chunks + together - 1) / together;
    sorted.tiles = tape.empty({batch, heads, top_k, length / rows + groups, 2}, DType::i32);
    sorted.extras = tape.empty({batch, heads, top_k, std::max<int64_t>(1, cuda::max_extras(length)), 2}, DType::i32);
    sorted.extra_offsets = tape.empty({batch, heads, top_k, groups + 1}, DType::i32);
    counts = tape.empty({batch * heads * top_k, (length + cuda::kSortSegment - 1) / cuda::kSortSegment, chunks}, DType::i32);
  }
  tape.run(
      "top1_chunk.sort", {0, static_cast<double>(2 * selected.bytes() + sorted.order.bytes() + sorted.offsets.bytes())},
      [&] {
        cpu::sort_queries(p, selected, {sorted.offsets, sorted.order});
      },
      [&] { cuda::sort_queries(tape.stream(), p, rows, sorted, counts); });
  return sorted;
}

/// Queries whose scores exist at a time where nobody wants them all: whole blocks of the CPU's, up to 64 MiB of scores.
int64_t report_rows(const ChunkProblem& p, DType dtype) {
  constexpr int64_t kBlock = 128, kBytes = int64_t{64} << 20;
  const int64_t row = p.shape.sequences() * p.chunks() * byte_size(dtype);
  return std::min(p.shape.length, std::max<int64_t>(1, kBytes / row / kBlock) * kBlock);
}

/// Of the `rows` queries from `first` on.
Tensor scores(Tape& tape, const ChunkProblem& p, const Tensor& q, const Tensor& k, const Tensor& means, int64_t first, int64_t rows) {
  const Tensor score = tape.empty({p.shape.batch, p.shape.heads, rows, p.chunks()}, accumulation_dtype(q.dtype()));
  const double share = static_cast<double>(rows) / static_cast<double>(p.shape.length);
  tape.run(
      "top1_chunk.scores", {share * score_flops(p, static_cast<bool>(means)), static_cast<double>(q.bytes() + k.bytes() + score.bytes())},
      [&] { dispatch(q.dtype(), [&](auto zero) { cpu::score_chunks<decltype(zero)>(p, q, k, means, first, score); }); },
      [&] { cuda::score_chunks(tape.stream(), p, q, k, means, first, score); });
  return score;
}

/// Scores and log masses of the queries from `first` on, [B, H, R, chunks].
struct ScoreTile {
  Tensor score, log_mass;
  int64_t first = 0;
};

/// Margin and captured mass of a tile's queries.
void report_of(Tape& tape, const ChunkProblem& p, const ScoreTile& tile, const Top1Chunk& used, const ChunkReport& out) {
  tape.run(
      "top1_chunk.report", {0, static_cast<double>(tile.score.bytes() + tile.log_mass.bytes() + 3 * used.lse.bytes())},
      [&] {
        dispatch(used.lse.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::selection_margin<T>(p, tile.score, tile.first, used.selected, out.margin);
          cpu::captured_mass<T>(p, tile.log_mass, tile.first, used.selected, used.lse, out.captured_mass);
        });
      },
      [&] {
        cuda::selection_margin(tape.stream(), p, tile.score, tile.first, used.selected, out.margin);
        cuda::captured_mass(tape.stream(), p, tile.log_mass, tile.first, used.selected, used.lse, out.captured_mass);
      });
}

ChunkReport report(Tape& tape, const ChunkProblem& p, const Tensor& q, const Tensor& k, const Tensor& means, const Top1Chunk& used,
                   bool with_scores) {
  const DType statistics = accumulation_dtype(q.dtype());
  ChunkReport out{{}, tape.empty(used.lse.shape(), statistics), tape.empty(used.lse.shape(), statistics)};
  const int64_t length = p.shape.length, most = with_scores ? length : report_rows(p, statistics);
  for (int64_t first = 0; first < length; first += most) {
    const int64_t rows = std::min(most, length - first);
    const Tensor score = scores(tape, p, q, k, means, first, rows);
    if (with_scores) out.score = score;
    report_of(tape, p, {score, means ? scores(tape, p, q, k, {}, first, rows) : score, first}, used, out);
  }
  return out;
}
void backward(Tape& tape, const cpu::ChunkBackward& saved, const cuda::QueryLists& sorted, const Tensor& o, double pairs) {
  const ChunkProblem& p = saved.problem;
  cpu::ChunkBackward in = saved;
  HeadGradient dq(tape, "top1_chunk.backward", in.q, p.shape, false),
      dk(tape, "top1_chunk.backward", in.k, p.shape, in.k.id() == in.q.id());
  HeadGradient dv(tape, "top1_chunk.backward", in.v, p.shape, in.v.id() == in.q.id() || in.v.id() == in.k.id());
  in.d_o = tape.grad(o);
  in.delta = tape.empty(in.lse.shape(), in.lse.dtype());
  in.dq = dq.target(), in.dk = dk.target(), in.dv = dv.target();
  const int products = 2 + (in.dq ? 1 : 0) + (in.dk ? 1 : 0) + (in.dv ? 1 : 0);
  Tensor partial;
  if (in.dk || in.dv) {
    if (tape.device().targets_cuda())
      partial = tape.empty(cuda::extra_scratch(p.shape, p.options.chunk, o.dtype()), DType::f32);
    else
      in.extra = tape.empty(cpu::extra_scratch(p), o.dtype());
  }
  tape.run(
      "top1_chunk.backward", {2.0 * products * head_elements(p) * pairs, static_cast<double>((products + 3) * o.bytes())},
      [&] {
        dispatch(o.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::output_dots<T>(p.shape, in.d_o, o, in.delta);
          cpu::chunk_backward<T>(in);
        });
      },
      [&] { cuda::chunk_backward(tape.stream(), in, sorted, o, partial); });
  dq.deliver();
  dk.deliver();
  dv.deliver();
}

}  // namespace

ChunkSelection parse_chunk_selection(const std::string& name) {
  if (name == "exact") return ChunkSelection::exact;
  if (name == "approx") return ChunkSelection::approx;
  if (name == "oracle-recent") return ChunkSelection::oracle_recent;
  if (name == "random") return ChunkSelection::random;
  throw UsageError("unknown chunk selection \"" + name + "\": expected exact, approx, oracle-recent or random");
}

Top1Chunk top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& score, const ChunkOptions& options,
                     ChunkReported wanted, const Tensor& known_means) {
  const ChunkProblem p = chunk_problem("top1_chunk", q, k, v, score, options);
  const Shape per_query{p.shape.batch, p.shape.heads, p.shape.length};
  expect(!known_means || known_means.shape() == Shape{k.dim(0), p.shape.length / p.options.chunk, p.shape.heads, p.shape.width},
         "top1_chunk", "k is ", k, ", mean keys are ", known_means, " for chunks of ", p.options.chunk);
  const Tensor means = known_means ? known_means : mean_keys(tape, p, k);
  const DType statistics = accumulation_dtype(v.dtype());
  Top1Chunk out{tape.empty(v.shape(), v.dtype()), select(tape, p, q, k, means), tape.empty(per_query, statistics), {}, {}};
  if (wanted != ChunkReported::nothing) out.entropy = tape.empty(per_query, statistics);
  const cuda::QueryLists sorted = sort(tape, p, out.selected, v.dtype());
  const cpu::QueryOrder order{sorted.offsets, sorted.order};
  const double pairs = attended_pairs(p);
  {
    const Tensor sum = tape.device().targets_cuda() ? Tensor() : tape.empty(per_query, statistics);
    tape.run(
        "top1_chunk", {4.0 * head_elements(p) * pairs, static_cast<double>(q.bytes() + k.bytes() + 2 * v.bytes() + out.lse.bytes())},
        [&] {
          dispatch(v.dtype(), [&](auto zero) {
            cpu::chunk_forward<decltype(zero)>({p, q, k, v, order, sum, out.o, out.lse, out.entropy});
          });
        },
        [&] { cuda::chunk_forward(tape.stream(), p, q, k, v, sorted, out.o, out.lse, out.entropy); });
  }
  if (wanted != ChunkReported::nothing) out.report = report(tape, p, q, k, means, out, wanted == ChunkReported::scores);
  tape.record({q, k, v}, {&out.o}, [=, o = out.o, lse = out.lse](Tape& t) {
    backward(t, {p, q, k, v, order, {}, lse, {}, {}, {}, {}}, sorted, o, pairs);
  });
  return out;
}

Tensor top1_chunk_weights(Tape& tape, const Tensor& q, const Tensor& k, const Top1Chunk& result, const ScoreOptions& score,
                          const ChunkOptions& options, const Sequences& sequences) {
  const ChunkProblem p = chunk_problem("top1_chunk_weights", q, k, result.o, score, options);
  if (!sequences.are_in(p.shape.batch))
    throw UsageError("[top1_chunk_weights] has no sequence " + std::to_string(sequences.first + sequences.count - 1) + " of " +
                     std::to_string(p.shape.batch));
  const Tensor weights = tape.empty({sequences.count * p.shape.heads, p.shape.length, p.shape.length}, accumulation_dtype(q.dtype()));
  const double share = static_cast<double>(sequences.count) / static_cast<double>(p.shape.batch);
  tape.run(
      "top1_chunk_weights", {2.0 * head_elements(p) * attended_pairs(p) * share, static_cast<double>(weights.bytes())},
      [&] {
        dispatch(q.dtype(),
                 [&](auto zero) { cpu::chunk_weights<decltype(zero)>(p, q, k, result.selected, result.lse, sequences, weights); });
      },
      [&] {
        cuda::attention_weights(tape.stream(), p.shape, p.score, q, k, sequences, p.options.chunk, result.selected, result.lse, weights);
      });
  return weights;
}

}  // namespace saccade
