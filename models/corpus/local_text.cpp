#include "models/corpus/local_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/byte_stream.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/local_sources.h"
#include "models/corpus/utf8.h"
#include "models/json.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLargestFile = 8 << 20;

struct Candidate {
  Digest order;
  fs::path path;
  const LocalSource* source;
  auto operator<=>(const Candidate& other) const { return order <=> other.order; }
};

void find_files(const LocalSource& source, const fs::path& root, std::vector<Candidate>& found) {
  for (const std::string& folder : source.folders) {
    std::error_code error;
    auto entry = fs::recursive_directory_iterator(root / folder, fs::directory_options::skip_permission_denied, error);
    while (!error && entry != fs::recursive_directory_iterator()) {
      stop_here_if_asked();
      if (entry->is_regular_file(error) && !entry->is_symlink() && source.accepts(entry->path()))
        found.push_back({sha256(fs::relative(entry->path(), root, error).string()), entry->path(), &source});
      error.clear();  // a file that vanishes meanwhile is not there
      entry.increment(error);
    }
  }
}

/// Chosen documents of one domain, in their order.
struct Domain {
  std::vector<std::string> documents;
  int64_t bytes = 0;
  std::map<std::string, int64_t> families;  ///< bytes of each
};

/// "man1/gcloud-compute-…" and "man1/gcloud_…" are of one family.
std::string family(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto end = std::find_if_not(name.begin(), name.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  return (path.parent_path() / std::string(name.begin(), end)).string();
}

class Gatherer {
 public:
  Gatherer(const LocalTextOptions& options) : options_(options) {}

  Domain gather(const std::vector<const LocalSource*>& sources) {
    Domain domain;
    for (bool spare : {false, true}) {
      if (spare && domain.bytes >= 4 * options_.least_bytes) break;
      std::vector<Candidate> candidates;
      for (const LocalSource* source : sources)
        if (source->spare == spare) find_files(*source, options_.root, candidates);
      std::sort(candidates.begin(), candidates.end());
      for (const Candidate& candidate : candidates) {
        if (domain.bytes >= options_.most_bytes) break;
        add(candidate, domain);
      }
    }
    return domain;
  }

 private:
  void add(const Candidate& candidate, Domain& domain) {
    stop_here_if_asked();
    int64_t& of_family = domain.families[family(candidate.path)];
    if (of_family >= options_.most_of_family) return;
    std::string raw;
    try {
      raw = read_all(candidate.path, kLargestFile);
    } catch (const DataError&) {
      return;  // unreadable, damaged or huge: others will do
    }
    if (raw.find('\0') != raw.npos || valid_utf8(raw) != raw.size()) return;
    std::string text = cut(candidate.source->document(raw));
    if (static_cast<int64_t>(text.size()) < options_.shortest) return;
    if (!seen_.insert(sha256(text)).second) return;
    of_family += static_cast<int64_t>(text.size());
    domain.bytes += static_cast<int64_t>(text.size());
    domain.documents.push_back(std::move(text));
  }

  std::string cut(std::string text) const {
    if (static_cast<int64_t>(text.size()) <= options_.longest) return text;
    const size_t line = text.rfind('\n', static_cast<size_t>(options_.longest));
    text.resize(line != text.npos && line > 0 ? line + 1 : utf8_floor(text, static_cast<size_t>(options_.longest)));
    return text;
  }

  const LocalTextOptions& options_;
  std::set<Digest> seen_;  ///< over all domains
};

/// Fills validation and test first whenever they lag behind their share, so that even a small domain has them.
void write_domain(CorpusWriter& writer, const std::string& name, const Domain& domain, const LocalTextOptions& options) {
  double total = 0, validation = 0, test = 0;
  for (const std::string& document : domain.documents) {
    const auto bytes = static_cast<double>(document.size());
    Split split = Split::train;
    if (validation < options.validation_share * total)
      split = Split::validation, validation += bytes;
    else if (test < options.test_share * total)
      split = Split::test, test += bytes;
    total += bytes;
    writer.add(name, split, document);
  }
}

std::string kilobytes(int64_t bytes) { return std::to_string(bytes / 1000) + " kB"; }

}  // namespace

void make_local_text(const std::string& name, const LocalTextOptions& options, const std::function<void(const std::string&)>& progress) {
  const std::vector<LocalSource> sources = local_sources();
  std::map<std::string, std::vector<const LocalSource*>> domains;
  for (const LocalSource& source : sources) domains[source.domain].push_back(&source);

  CorpusWriter writer(name);
  Gatherer gatherer(options);
  nlohmann::json missing = nlohmann::json::object();
  std::string all_missing;
  for (const auto& [domain, its_sources] : domains) {
    const Domain gathered = gatherer.gather(its_sources);
    if (gathered.bytes < options.least_bytes || gathered.documents.size() < 10) {
      const std::string what = "this machine has " + kilobytes(gathered.bytes) + " in " + std::to_string(gathered.documents.size()) +
                               " documents of " + domain + " text, " + kilobytes(options.least_bytes) +
                               " in 10 are needed: " + local_advice(domain) + ", or import a corpus";
      missing[domain] = what;
      all_missing += (all_missing.empty() ? "" : "; ") + what;
      if (progress) progress("local-text: " + what);
      continue;
    }
    write_domain(writer, domain, gathered, options);
    if (progress)
      progress("local-text: " + domain + ": " + kilobytes(gathered.bytes) + " in " + std::to_string(gathered.documents.size()) +
               " documents");
  }
  if (writer.documents() == 0) throw DataError("corpus \"" + name + "\": " + all_missing);
  writer.finish({{"made_by", "local-text"}, {"version", 1}, {"missing", missing}}, Existing::keep);
}

}  // namespace saccade
