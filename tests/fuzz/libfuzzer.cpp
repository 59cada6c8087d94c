// libFuzzer's entry: FUZZ_TARGET names the target (make fuzz goes through all of them).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

using namespace saccade::test;

namespace {

const FuzzTarget& chosen() {
  const char* name = std::getenv("FUZZ_TARGET");
  for (const FuzzTarget& target : fuzz_targets())
    if (name && target.name == name) return target;
  std::fprintf(stderr, "FUZZ_TARGET must be one of:");
  for (const FuzzTarget& target : fuzz_targets()) std::fprintf(stderr, " %s", target.name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzTarget& target = chosen();
  run_target(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
