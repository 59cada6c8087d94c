#pragma once
#include <string_view>

namespace saccade {

/// Whether `a` comes before `b` where numbers in names count as numbers: "window-32" before "window-128", "rate-0.03125" before
/// "rate-0.125".
bool natural_before(std::string_view a, std::string_view b);

}  // namespace saccade
