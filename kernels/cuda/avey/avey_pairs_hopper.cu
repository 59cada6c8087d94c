// W, M, the sums of e and d_A as in avey_tiles_pairs.cu, on Hopper, where contexts consist of whole runs of 32 rows: a unit of work is
// 64 queries and 128 keys of a context.
#include "kernels/cuda/avey/avey_tiles.cuh"
#include "kernels/cuda/gemm/ping_pong.cuh"

namespace saccade::cuda::tiles {
namespace pairs {

constexpr int kRun = 32;
/// First rows of the runs of n · 32 positions; −1 for those that have none.
template <int N>
struct Runs {
  int row[N];
  /// row_of(position) for the runs from a position on, as far as there are positions.
  template <class RowOf>
  __device__ void find(const Plan& p, int position, RowOf&& row_of) {
#pragma unroll
    for (int i = 0; i < N; ++i) row[i] = position + kRun * i < p.C ? row_of(position + kRun * i) : -1;
  }
  __device__ bool any() const {
    bool found = false;
#pragma unroll
    for (int i = 0; i < N; ++i) found = found || row[i] >= 0;
    return found;
  }
};
/// A matrix for copies of a run of 64 columns, and of two that follow each other.
struct RunMaps {
  CUtensorMap run, pair;
};
/// Two runs of 64 columns as a block of an operand; zeros for a run without rows.
__device__ __forceinline__ void bring_runs(uint32_t operand, int block, const ping_pong::Stage& stage, const RunMaps& maps, int column,
                                           int first, int second) {
  constexpr int kNowhere = 1 << 30;
  const uint32_t to = operand + static_cast<uint32_t>(block) * ping_pong::kBlock;
  if (second == (first < 0 ? first : first + kRun))
    return fused::copy_tile(to, maps.pair, column, first < 0 ? kNowhere : first, stage.full);
  fused::copy_tile(to, maps.run, column, first < 0 ? kNowhere : first, stage.full);
  fused::copy_tile(to + ping_pong::kBlock / 2, maps.run, column, second < 0 ? kNowhere : second, stage.full);
}

inline RunMaps runs_of(const Tensor& x) {
  const auto map = [&](int rows) { return fused::tensor_map(matrix(x, x.dim(1)), x.dim(0), x.dim(1), rows); };
  return {map(kRun), map(2 * kRun)};
}

struct Pairs {
  static constexpr int kStages = 4, kKeys = 128, kQueries = 64;
  static constexpr uint32_t kOwn = kQueries * kKeys * 4 + (kKeys + kQueries) * 4 + 4 * kKeys * 4;
  static constexpr bool kTransposedB = false, kTransposesA = false;

  RunMaps z, dy;
  Plan p;
  int groups, items;  ///< an item: a pair of tiles in a group of contexts
  const float *inverse, *A;
  Products out;

  struct Unit {
    int item, index, end, query, key;  ///< context index of those before end; positions
    Runs<2> rows, results;
    Runs<4> keys;
    bool valid, empty, fresh;  ///< nothing to multiply; the first of its item
  };

  /// Finds the next context of the item from u.index on.
  __device__ bool find(Unit& u) const {
    for (; u.end > u.index; ++u.index) {
      const Context context(p, u.index);
      u.results.find(p, u.query, [&](int position) { return context.result(position); });
      u.keys.find(p, u.key, [&](int position) { return context.row(position); });
      if (!u.results.any() || !u.keys.any()) continue;
      u.rows.find(p, u.query, [&](int position) { return context.row(position); });
      return true;
    }
    return false;
  }
  /// An item without any context is a unit all the same: its sums are zero.
  __device__ Unit first(int item) const {
    Unit u{};
    u.item = item;
    if (item >= items) return u;
    int pair = item / groups, tile = p.query_tiles() - 1;  // the last queries are those of all contexts
    for (; pair >= p.keys_of(tile); --tile) pair -= p.keys_of(tile);
    const int64_t group = item % groups;
    u.index = static_cast<int>(p.contexts * group / groups), u.end = static_cast<int>(p.contexts * (group + 1) / groups);
    u.query = p.first_query + tile * kQueries, u.key = pair * kKeys;
    u.valid = u.fresh = true;
    u.empty = !find(u);
    return u;
  }
  __device__ Unit next(Unit u) const {
    if (!u.empty) {
      u.fresh = false;
      ++u.index;
      if (find(u)) return u;
    }
    return first(u.item + 2 * static_cast<int>(gridDim.x));
  }

  __device__ int steps(const Unit& u) const { return u.empty ? 1 : (p.r + 63) / 64; }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    for (int s = 0; s < steps(u); ++s)
      step([&](const ping_pong::Stage& stage) {
        bring_runs(stage.a, 0, stage, z, 64 * s, u.rows.row[0], u.rows.row[1]);
        bring_runs(stage.a, 1, stage, dy, 64 * s, u.results.row[0], u.results.row[1]);
        bring_runs(stage.b, 0, stage, z, 64 * s, u.keys.row[0], u.keys.row[1]);
        bring_runs(stage.b, 1, stage, z, 64 * s, u.keys.row[2], u.keys.row[3]);
      });
  }

  struct Asked {
    float key, query;  ///< inverse norms, of one key and one query a thread
  };
  __device__ Asked ask(const Unit& u) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kRun, run = thread / kRun;
    if (u.empty) return {0, 0};
    const auto of = [&](int row) { return row < 0 ? 0.0f : inverse[row + lane]; };
    return {of(u.keys.row[run]), run < 2 ? of(u.rows.row[run]) : 0.0f};
  }

  __device__ void finish(const Unit& u, const Unit& following, ping_pong::Sums& d, const Asked& asked, char* own) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, group = static_cast<int>(threadIdx.x) / 128;
    const int lane = thread % 32, warp = thread / 32;
    auto* gathered = reinterpret_cast<float2*>(own) + thread;
    auto* of_keys = reinterpret_cast<float*>(own + kQueries * kKeys * 4);
    float *of_queries = of_keys + kKeys, *column_sums = of_queries + kQueries;
    const auto each_pair = [&](auto&& use) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int n = 0; n < 16; ++n) use(half, n, gathered[(half * 16 + n) * 128]);
    };
    if (u.fresh) each_pair([](int, int, float2& sum) { sum = make_float2(0, 0); });
    if (!u.empty) {
      ping_pong::sync_group(group);
      of_keys[thread] = asked.key;
      if (thread < kQueries) of_queries[thread] = asked.query;
      ping_pong::sync_group(group);
      const int64_t index = u.index;
      float columns[32] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * warp + 8 * half + lane / 4, t = u.query + row;
        const int64_t to = (index * p.queries() + t - p.first_query) * p.C;
        const float* of_t = A + int64_t{min(t, p.C - 1)} * p.C;
        const float of_row = of_queries[row];
        float sum = 0;
#pragma unroll
        for (int n0 = 0; n0 < 16; n0 += 4) {
          uint32_t words_W[4], words_M[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int n = n0 + i, column = 8 * n + lane % 4 * 2, j = u.key + column, e = n * 4 + half * 2;
            const float2 pair_of_a = *reinterpret_cast<const float2*>(of_t + min(j, p.C - 2));
            const float2 pair_of_keys = *reinterpret_cast<const float2*>(of_keys + column);
            float w[2], slope[2], along_A[2];
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const float both = of_row * (v ? pair_of_keys.y : pair_of_keys.x), a = v ? pair_of_a.y : pair_of_a.x;
              const float cosine = d[0][e + v] * both, gradient = d[1][e + v];
              const bool causal = j + v <= t;
              w[v] = causal ? a * cosine : 0.0f;
              slope[v] = causal ? gradient * a * both : 0.0f;
              along_A[v] = causal ? gradient * cosine : 0.0f;
              const float product = gradient * w[v];
              sum += product;
              columns[2 * n + v] += product;
            }
            float2& sum_A = gathered[(half * 16 + n) * 128];
            sum_A = make_float2(sum_A.x + along_A[0], sum_A.y + along_A[1]);
            words_W[i] = pack_bf16(w[0], w[1]), words_M[i] = pack_bf16(slope[0], slope[1]);
          }
          store_line(out.W + to, t < p.C, u.key, n0, words_W);
          store_line(out.M + to, t < p.C, u.key, n0, words_M);
        }
        sum = quad_sum(sum);
        if (lane % 4 == 0 && t < p.C) out.by_query[(index * p.key_tiles() + u.key / kKeys) * p.C + t] = sum;
      }
      fused::add_halves<32>(columns, 16);
      fused::add_halves<16>(columns, 8);
      fused::add_halves<8>(columns, 4);
#pragma unroll
      for (int i = 0; i < 4; i += 2)  // entry 2 n + v of column 8 n + 2 (lane % 4) + v
        *reinterpret_cast<float2*>(column_sums + warp * kKeys + 8 * (lane / 4 * 2 + i / 2) + lane % 4 * 2) =
            make_float2(columns[i], columns[i + 1]);
      ping_pong::sync_group(group);
      if (u.key + thread < p.C)
        out.by_key[(index * p.query_tiles() + (u.query - p.first_query) / kQueries) * p.C + u.key + thread] =
            column_sums[thread] + column_sums[kKeys + thread] + column_sums[2 * kKeys + thread] + column_sums[3 * kKeys + thread];
    }
    if (following.valid && !following.fresh) return;
    float* part = out.parts_A + int64_t{u.item % groups} * p.C * p.C;
    each_pair([&](int half, int n, const float2& sum) {
      const int t = u.query + 16 * warp + 8 * half + lane / 4, j = u.key + 8 * n + lane % 4 * 2;
      if (t < p.C && j < p.C) *reinterpret_cast<float2*>(part + int64_t{t} * p.C + j) = sum;
    });
  }

  /// Pairs n … n + 3 of this lane's line: as four lanes' pieces of eight.
  __device__ void store_line(bf16* row, bool inside, int key, int n, uint32_t (&words)[4]) const {
    gather_piece(words);
    const int column = key + 8 * (n + static_cast<int>(threadIdx.x) % 4);
    if (inside && column < p.C) *reinterpret_cast<uint4*>(row + column) = make_uint4(words[0], words[1], words[2], words[3]);
  }
};

}  // namespace pairs

void pairs_in_runs(int device, const Plan& p, int groups, const Tensor& Z, const Tensor& inverse, const Tensor& A, const Tensor& dY,
                   const Products& out) {
  ping_pong::launch(device, pairs::Pairs{pairs::runs_of(Z), pairs::runs_of(dY), p, groups, groups * p.pairs(), pointer<float>(inverse),
                                         pointer<float>(A), out});
}

}  // namespace saccade::cuda::tiles
