// Attention on CUDA: `attention_check [name]` compares with the CPU (exit code 1 when a case fails, 77 without a GPU),
// `attention_check --bench [name]` measures.
#include "tests/gpu/attention_bench.h"
#include "tests/gpu/attention_cases.h"
#include "tests/gpu/first_gpu.h"

int main(int argc, char** argv) {
  saccade::test::first_gpu();
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--bench") return attention_bench(argc > 2 ? argv[2] : "");
  return saccade::attention_check::run(word) ? 1 : 0;
}
