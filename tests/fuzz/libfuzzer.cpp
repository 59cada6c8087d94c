// libFuzzer's entry: FUZZ_TARGET names the target (make fuzz goes through all of them); "list" prints their names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

using namespace saccade::test;

namespace {

const FuzzTarget* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("FUZZ_TARGET");
  for (const FuzzTarget& target : fuzz_targets())
    if (name && target.name == name) chosen = &target;
  if (chosen) return 0;
  const bool list = name && std::string_view(name) == "list";
  if (!list) std::fprintf(stderr, "FUZZ_TARGET is one of these:\n");
  for (const FuzzTarget& target : fuzz_targets()) std::fprintf(list ? stdout : stderr, "%s\n", target.name.c_str());
  std::exit(list ? 0 : 2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_target(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}
