#include "analysis/studies/report/entries.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace saccade {

std::string format(const char* pattern, double value) {
  if (!std::isfinite(value)) return "–";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

ReportEntry words(const std::string& text) { return {text, std::nan(""), {}}; }
ReportEntry count(int64_t value) { return {std::to_string(value), static_cast<double>(value), {}}; }

std::vector<std::string> sources_of(const CellNumbers& cell) {
  std::vector<std::string> sources;
  for (const SeedNumbers& seed : cell.seeds) sources.push_back(seed.source());
  return sources;
}

ReportEntry entry_of(const Repeated& r, std::vector<std::string> sources) {
  std::string text = format("%.4f", r.mean);
  if (r.deviation) text += " ± " + format("%.4f", *r.deviation) + " [±" + format("%.4f", *r.half_95) + "]";
  return {text, r.mean, std::move(sources), r};
}

}  // namespace saccade
