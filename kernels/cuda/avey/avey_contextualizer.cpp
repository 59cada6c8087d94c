#include "kernels/ops/avey/contextualizer_cuda.h"

#include <algorithm>

namespace saccade::cuda {

int64_t ContextualizerShape::group() const {
  constexpr int64_t kElements = int64_t{1} << 26;
  const int64_t most = std::clamp<int64_t>(kElements / (queries() * C()), 1, contexts()), N = layout.splits();
  return most < N ? most : most / N * N;  // whole sequences
}

namespace {

ContextualizerScratch tiles_scratch(Tape& tape, const ContextualizerShape& s, DType dtype, bool backward) {
  constexpr int64_t kTile = 128, kBlocks = 320;  // more than two to a multiprocessor
  const auto tiles = [](int64_t n) { return (n + kTile - 1) / kTile; };
  const auto groups = [&](int64_t blocks, int64_t most) { return std::clamp<int64_t>(most / blocks, 1, s.group()); };
  const int64_t n = s.group(), C = s.C(), Q = s.queries();
  ContextualizerScratch scratch;
  scratch.weights = tape.empty({n, Q, C}, dtype);
  if (!backward) return scratch;
  scratch.slopes = tape.empty({n, Q, C}, dtype);
  scratch.by_query = tape.empty({n, tiles(C), C}, DType::f32);
  scratch.by_key = tape.empty({n, (Q + 63) / 64, C}, DType::f32);
  scratch.parts_A = tape.empty({groups(tiles(Q) * (tiles(C) + 1) / 2, kBlocks), C, C}, DType::f32);
  const int64_t padding = s.layout.pad_rows();
  if (padding) {
    // The first of several tiles of padding has most of the work: smaller groups, so that others share it.
    const int64_t most = tiles(padding) > 1 ? 768 : kBlocks;
    const int64_t parts = groups(std::max<int64_t>(4, tiles(padding) * tiles(s.r)), most);
    scratch.padding = tape.empty({s.one_tile() ? std::max(parts, s.padded_contexts()) : parts, padding, s.r}, DType::f32);
  }
  return scratch;
}

}  // namespace

ContextualizerScratch contextualizer_scratch(Tape& tape, const ContextualizerShape& s, DType dtype, bool backward) {
  if (s.tiled(dtype)) return tiles_scratch(tape, s, dtype, backward);
  const int64_t n = s.group(), C = s.C(), Q = s.queries();
  ContextualizerScratch scratch;
  scratch.z = tape.empty({n, C, s.r}, dtype);
  scratch.inverse = tape.empty({n, C}, DType::f32);
  scratch.products = tape.empty({n, Q, C}, DType::f32);
  scratch.weights = tape.empty({n, Q, C}, dtype);
  scratch.y = tape.empty({n, Q, s.r}, dtype);
  if (!backward) return scratch;
  scratch.d_products = tape.empty({n, Q, C}, DType::f32);
  scratch.slopes = tape.empty({n, Q, C}, dtype);
  scratch.d_z = tape.empty({n, C, s.r}, DType::f32);
  scratch.along = tape.empty({n, C, s.r}, DType::f32);
  if (s.layout.pad_rows()) scratch.padding = tape.empty({2, s.layout.pad_rows(), s.r}, DType::f32);
  return scratch;
}

}  // namespace saccade::cuda
