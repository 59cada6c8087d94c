#include "models/corpus/corpus.h"

#include <algorithm>
#include <cstring>

#include "kernels/engine/error.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/local_text.h"
#include "models/corpus/tasks.h"
#include "models/corpus/token_shards.h"
#include "models/json.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

std::string known_corpora() {
  std::string names;
  for (const auto& corpus : list_corpora()) names += (names.empty() ? "" : ", ") + corpus.name;
  return names.empty() ? "there is none yet" : "there are: " + names;
}

std::vector<fs::path> corpus_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(corpora_folder(), error))
    if (valid_corpus_name(entry.path().filename().string()) && entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool is_built_in(const std::string& name) { return name == "local-text" || is_task_corpus(name); }

bool make_built_in(const std::string& name, const std::function<void(const std::string&)>& progress) {
  if (name == "local-text") {
    make_local_text(name, {}, progress);
    return true;
  }
  if (!is_task_corpus(name)) return false;
  make_task_corpus(name, progress);
  return true;
}

}  // namespace

Corpus Corpus::open(const std::string& name, const std::function<void(const std::string&)>& progress) {
  Corpus corpus;
  corpus.name_ = name;
  if (names_token_shards(name)) {
    corpus.directory_ = name;
    const std::vector<TokenShard> shards = read_token_shards(name);
    corpus.hash_ = hash_of(shards), corpus.domains_ = domains_of(shards);
    return corpus;
  }
  if (!valid_corpus_name(name))
    throw UsageError("corpus \"" + name +
                     "\": a name is made of letters, digits, '.', '_' and '-'; the path of token shards begins with /");
  corpus.directory_ = corpora_folder() / name;
  remove_abandoned(corpora_folder());
  if (!fs::exists(corpus.directory_) && !make_built_in(name, progress))
    throw DataError("corpus \"" + name + "\" not found in " + corpora_folder().string() + " (" + known_corpora() +
                    "); saccade corpus import brings one in");
  StoredCorpus stored = read_stored_corpus(corpus.directory_);
  corpus.hash_ = stored.hash;
  corpus.domains_ = domain_infos(stored.manifest);
  return corpus;
}

Corpus Corpus::generated(std::string name, std::string hash) {
  Corpus corpus;
  corpus.name_ = std::move(name);
  corpus.hash_ = std::move(hash);
  return corpus;
}

bool Corpus::has_domain(const std::string& domain) const {
  return std::any_of(domains_.begin(), domains_.end(), [&](const DomainInfo& info) { return info.name == domain; });
}

std::string Corpus::missing_domain(const std::string& domain) const {
  const nlohmann::json origin = names_token_shards(name_) ? nlohmann::json() : read_origin(directory_);
  std::string names;
  for (const auto& info : domains_) names += (names.empty() ? "" : ", ") + info.name;
  std::string message = "corpus \"" + name_ + "\" has no domain \"" + domain + "\", it has: " + names;
  const nlohmann::json missing = origin.is_object() ? origin.value("missing", nlohmann::json()) : nlohmann::json();
  if (missing.is_object() && missing.contains(domain) && missing[domain].is_string())
    message += " (" + missing[domain].get<std::string>() + "; then remove " + directory_.string() + " and it is gathered again)";
  return message;
}

void Corpus::each_document(const std::string& domain, Split split, const std::function<bool(std::string_view)>& visit) const {
  if (!has_domain(domain)) throw DataError(missing_domain(domain));
  if (names_token_shards(name_)) throw DataError("corpus " + name_ + " is token shards and holds no text");
  const fs::path path = text_path(directory_, domain, split);
  if (!fs::exists(path)) return;  // a split without documents has no file; open() checked that the others stand
  const MappedFile text(path), ends(ends_path(directory_, domain, split));
  uint64_t begin = 0;
  for (size_t i = 0; i + sizeof(uint64_t) <= ends.bytes().size(); i += sizeof(uint64_t)) {
    uint64_t end = 0;
    std::memcpy(&end, ends.bytes().data() + i, sizeof end);
    if (end < begin || end > text.bytes().size())
      throw DataError(ends_path(directory_, domain, split).string() + ": the corpus is damaged: document " +
                      std::to_string(i / sizeof end) + " ends at byte " + std::to_string(end) + " of " +
                      std::to_string(text.bytes().size()));
    if (!visit(text.bytes().substr(begin, end - begin))) return;
    begin = end;
  }
}

std::vector<CorpusSummary> list_corpora() {
  std::vector<CorpusSummary> list;
  for (const char* name : {"local-text", "task-copy", "task-mqar", "task-passkey"})
    if (!fs::exists(corpora_folder() / name)) list.push_back({name, "", true, false, {}, ""});
  for (const fs::path& folder : corpus_folders()) {
    const std::string name = folder.filename().string();
    try {
      const StoredCorpus stored = read_stored_corpus(folder);
      list.push_back({name, stored.hash, is_built_in(name), true, domain_infos(stored.manifest), ""});
    } catch (const DataError& error) {
      list.push_back({name, "", is_built_in(name), true, {}, error.what()});  // the others are still of use
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

}  // namespace saccade
