#include "models/suggest.h"

#include <algorithm>
#include <cctype>

namespace saccade {
namespace {

/// Optimal string alignment distance, letters compared without case.
size_t edits(const std::string& a, const std::string& b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  if (word.size() > 100) return {};
  std::string best;
  size_t fewest = std::max<size_t>(1, word.size() / 2) + 1;  // more than half of the letters wrong is another word
  for (const std::string& name : names)
    if (const size_t n = edits(word, name); n < fewest) fewest = n, best = name;
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::string name = nearest_name(word, names);
  return name.empty() ? "; expected " + alternatives(names) : "; did you mean \"" + name + "\"?";
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

void add_words(std::string& title, const std::string& words) {
  if (!title.empty() && !words.empty()) title += ' ';
  title += words;
}

}  // namespace saccade
