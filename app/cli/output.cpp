#include "app/cli/output.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "models/corpus/utf8.h"

namespace saccade::cli {
namespace {

template <class Number>
std::string format(const char* pattern, Number value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// Characters, not bytes, of UTF-8 text.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Numbers with their units, and what stands where there is none.
bool is_number(const std::string& cell) {
  const size_t first = cell.find_first_not_of("+-");
  return cell.empty() || cell == "–" || (first != std::string::npos && std::isdigit(static_cast<unsigned char>(cell[first])));
}

}  // namespace

std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(header.size());
  std::vector<bool> right(header.size(), !rows.empty());
  for (size_t c = 0; c < header.size(); ++c) {
    widths[c] = width(header[c]);
    for (const auto& row : rows) {
      widths[c] = std::max(widths[c], width(row[c]));
      right[c] = right[c] && is_number(row[c]);
    }
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string pad(widths[c] - width(cells[c]), ' ');
      text += (c ? "  " : "") + (right[c] ? pad + cells[c] : cells[c] + pad);
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  };
  line(header);
  for (const auto& row : rows) line(row);
  return text;
}

std::string list(const std::vector<std::pair<std::string, std::string>>& entries) {
  size_t widest = 0;
  for (const auto& [name, value] : entries) widest = std::max(widest, width(name));
  std::string text;
  for (const auto& [name, value] : entries) text += name + std::string(widest - width(name) + 2, ' ') + value + '\n';
  return text;
}

std::string printable(const std::string& text, bool keep_lines) {
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t length = utf8_character(std::string_view(text).substr(at));
    const bool control = byte < 0x20 || byte == 0x7f || (length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
    if (keep_lines && (byte == '\n' || byte == '\t')) {
      safe += text[at];
    } else if (byte == '\n') {
      safe += "⏎";
    } else if (byte == '\t') {
      safe += "⇥";
    } else if (control || length == 0) {
      for (size_t i = 0; i < std::max<size_t>(1, length); ++i) safe += format("\\x%02x", static_cast<unsigned char>(text[at + i]));
    } else {
      safe += text.substr(at, length);
    }
    at += std::max<size_t>(1, length);
  }
  return safe;
}

std::string human(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "–";
  if (size >= 1e15) return format("%.3g", value);
  if (size >= 1e12) return format("%.4g T", value / 1e12);
  if (size >= 1e9) return format("%.4g G", value / 1e9);
  if (size >= 1e6) return format("%.4g M", value / 1e6);
  if (size >= 1e3) return format("%.4g k", value / 1e3);
  return format("%.4g", value);
}

std::string human_bytes(double bytes) {
  if (bytes >= 0x1p30) return format("%.2f GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return format("%.1f MiB", bytes / 0x1p20);
  if (bytes >= 0x1p10) return format("%.1f KiB", bytes / 0x1p10);
  return format("%.0f B", bytes);
}

std::string human_seconds(double seconds) {
  char text[48];
  if (seconds < 100) return format(seconds < 1 ? "%.3f s" : "%.1f s", seconds);
  const long s = std::lround(seconds);
  if (s < 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld min", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld h", s / 3600, s / 60 % 60);
  return text;
}

std::string number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "–" : format("%f", value);
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace saccade::cli
