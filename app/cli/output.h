#pragma once
#include <string>
#include <vector>

namespace saccade::cli {

struct OutputMode {
  bool json = false, quiet = false;
};
OutputMode& output_mode();

/// Rows under a header, columns aligned; numbers right, the first column left.
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// "1.87 M", "109.5 M", "12.3 k": counts and rates for people.
std::string human(double value);
/// "3.1 GiB"
std::string human_bytes(double bytes);
/// "4:05 min"
std::string human_seconds(double seconds);
/// Fixed digits; "–" for NaN.
std::string number(double value, int digits);

}  // namespace saccade::cli
