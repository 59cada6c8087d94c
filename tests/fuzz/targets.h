#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace saccade::test {

/// What our code makes of any bytes. It returns, or throws an Error; everything else is a find.
struct FuzzTarget {
  std::string name;
  void (*run)(std::string_view bytes);
};
const std::vector<FuzzTarget>& fuzz_targets();
/// Runs one, and lets no Error out. Ends the program where something is wrong with what was accepted.
void run_target(const FuzzTarget& target, std::string_view bytes);

}  // namespace saccade::test
