#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace saccade {

struct LocalTextOptions {
  std::filesystem::path root = "/";
  int64_t most_bytes = 8 << 20;      ///< of one domain
  int64_t least_bytes = 300'000;     ///< a domain with less is left out
  int64_t most_of_family = 200'000;  ///< bytes of files in one folder whose names begin with the same word (thousands of pages of one tool)
  int64_t shortest = 400;            ///< bytes of a document
  int64_t longest = 100'000;         ///< longer documents are cut at a line end
  double validation_share = 0.05, test_share = 0.05;
};

/// Gathers text that is on this machine into the corpus `name`: real text in separate domains, at once and offline. Files are
/// taken in the order of their path's hash, so that a domain is a fair sample, the same as long as the files are.
/// Throws DataError when no domain has enough.
void make_local_text(const std::string& name, const LocalTextOptions& options, const std::function<void(const std::string&)>& progress);

}  // namespace saccade
