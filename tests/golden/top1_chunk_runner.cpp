#include "kernels/ops/top1_chunk/top1_chunk.h"

#include "tests/golden/prepared_heads.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

const RegisterGolden registration("top1_chunk", [](const GoldenCase& c, DType dtype, Arena& arena) {
  GoldenResult result = run_golden(c, dtype, arena, [&](Tape& tape, const std::map<std::string, Tensor>& x) {
    const PreparedHeads heads = prepare_golden_heads(tape, c, x);
    ChunkOptions options;
    options.chunk = c.attributes.at("chunk");
    options.selection = parse_chunk_selection(c.attributes.at("selection"));
    const Top1Chunk a = top1_chunk(tape, heads.q, heads.k, x.at("v"), heads.score, options, ChunkReported::scores);
    return std::map<std::string, Tensor>{{"o", a.o},
                                         {"selected", a.selected.reshape(a.lse.shape())},  // the paper's top_k is 1
                                         {"score", a.report.score},
                                         {"lse", a.lse},
                                         {"captured_mass", a.report.captured_mass}};
  });
  result.scores["selected"] = result.outputs.at("score");
  return result;
});

}  // namespace
}  // namespace saccade::test
