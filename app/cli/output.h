#pragma once
#include <string>
#include <vector>

namespace saccade::cli {

struct OutputMode {
  bool json = false, quiet = false;
};
OutputMode& output_mode();

/// Rows under a header, columns aligned: those of numbers right, those of words left.
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// Names and what belongs to them, in two columns.
std::string list(const std::vector<std::pair<std::string, std::string>>& entries);

/// Text of others on one line, with nothing in it that a terminal would obey: line ends as ⏎, tabs as ⇥, other control
/// characters and bytes that are no UTF-8 as \xNN. `keep_lines` leaves line ends and tabs as they are.
std::string printable(const std::string& text, bool keep_lines = false);

/// "1.87 M", "109.5 M", "12.3 k": counts and rates for people.
std::string human(double value);
/// "3.1 GiB"
std::string human_bytes(double bytes);
/// "4:05 min"
std::string human_seconds(double seconds);
/// Fixed digits; "–" for NaN.
std::string number(double value, int digits);

}  // namespace saccade::cli
