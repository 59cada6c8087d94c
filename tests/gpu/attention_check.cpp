// Attention on CUDA: `attention_check [name]` compares with the CPU (exit code 1 when a case fails, 77 without a GPU),
// `attention_check --bench [name]` measures.
#include "tests/gpu/attention_bench.h"
#include "tests/gpu/attention_cases.h"

int main(int argc, char** argv) {
  std::string why;
  if (saccade::cuda::gpus(&why).empty()) {
    std::printf("SKIPPED: %s\n", why.c_str());
    return 77;
  }
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--bench") return attention_bench(argc > 2 ? argv[2] : "");
  return saccade::attention_check::run(word) ? 1 : 0;
}
