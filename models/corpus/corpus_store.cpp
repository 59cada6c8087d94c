#include "models/corpus/corpus_store.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/config_text.h"
#include "models/json.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "saccade corpus 1";
constexpr size_t kMostDomains = 100;  // six open files each

fs::path stream_path(const fs::path& corpus, const std::string& domain, Split split, const char* extension) {
  return corpus / (domain + "." + to_string(split) + extension);
}

std::string corpus_hash(const Manifest& manifest) {
  Sha256 sha;
  for (const auto& [key, record] : manifest) {
    sha.update(key.first + '\n' + to_string(key.second) + '\n' + record.sha256 + '\n');
    sha.update(static_cast<uint64_t>(record.documents));
  }
  return hex(sha.finish());
}

Manifest parse_manifest(const nlohmann::json& domains) {
  Manifest manifest;
  for (const auto& [domain, splits] : domains.items()) {
    if (plain_domain(domain) != domain) throw DataError("domain \"" + domain + "\" is no plain name");
    for (Split split : {Split::train, Split::validation, Split::test}) {
      if (!splits.contains(to_string(split))) continue;
      const auto& record = splits.at(to_string(split));
      manifest[{domain, split}] = {record.at("documents"), record.at("bytes"), record.at("sha256")};
    }
  }
  return manifest;
}

void check_size(const fs::path& path, int64_t expected) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) throw DataError(path.string() + ": the corpus is damaged: " + error.message());
  if (static_cast<int64_t>(size) != expected)
    throw DataError(path.string() + ": the corpus is damaged: the file has " + std::to_string(size) + " bytes, expected " +
                    std::to_string(expected));
}

}  // namespace

const char* to_string(Split split) {
  static constexpr const char* names[] = {"train", "validation", "test"};
  return names[static_cast<int>(split)];
}

fs::path corpora_folder() { return data_folder() / "corpora"; }
fs::path text_path(const fs::path& corpus, const std::string& domain, Split split) { return stream_path(corpus, domain, split, ".text"); }
fs::path ends_path(const fs::path& corpus, const std::string& domain, Split split) { return stream_path(corpus, domain, split, ".ends"); }

StoredCorpus read_stored_corpus(const fs::path& directory) {
  const fs::path path = directory / "corpus.json";
  StoredCorpus stored;
  try {
    const auto json = parse_json_text(read_file(path), path.string());
    if (json.at("format") != kFormat) throw DataError("format is " + json.at("format").dump() + ", expected \"" + kFormat + "\"");
    stored = {json.at("name"), json.at("hash"), parse_manifest(json.at("domains"))};
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path.string() + ": damaged: " + error.what());
  } catch (const UsageError& error) {  // nobody typed this file
    throw DataError(std::string(error.what()) + "; it is damaged");
  } catch (const DataError& error) {
    throw DataError(path.string() + ": damaged: " + error.what());
  }
  if (corpus_hash(stored.manifest) != stored.hash) throw DataError(path.string() + ": damaged: the hash does not fit the domains");
  for (const auto& [key, record] : stored.manifest) {
    check_size(text_path(directory, key.first, key.second), record.bytes);
    check_size(ends_path(directory, key.first, key.second), record.documents * 8);
  }
  return stored;
}

nlohmann::json read_origin(const fs::path& directory) {
  const fs::path path = directory / "corpus.json";
  const auto json = parse_json_or_discard(read_file(path));
  if (!json.is_object() || !json.contains("origin")) throw DataError(path.string() + ": damaged: no origin");
  return json["origin"];
}

std::vector<DomainInfo> domain_infos(const Manifest& manifest) {
  std::vector<DomainInfo> infos;
  for (const auto& [key, record] : manifest) {
    if (infos.empty() || infos.back().name != key.first) infos.push_back({key.first, {}, {}});
    infos.back().documents[to_string(key.second)] = record.documents;
    infos.back().bytes[to_string(key.second)] = record.bytes;
  }
  return infos;
}

struct CorpusWriter::Stream {
  OutputFile text, ends;
  SplitRecord& record;
  Sha256 sha{};

  void add(std::string_view document) {
    record.documents += 1;
    record.bytes += static_cast<int64_t>(document.size());
    text.write(document);
    uint64_t end = static_cast<uint64_t>(record.bytes);
    ends.write({reinterpret_cast<const char*>(&end), sizeof end});
    sha.update(document.size());
    sha.update(document);
  }
};

CorpusWriter::CorpusWriter(const std::string& name) : name_(name), folder_(corpora_folder() / name) {}
CorpusWriter::~CorpusWriter() = default;

CorpusWriter::Stream& CorpusWriter::stream(const std::string& domain, Split split) {
  auto& place = streams_[{domain, split}];
  if (place) return *place;
  if (streams_.size() > 3 * kMostDomains)
    throw DataError("more than " + std::to_string(kMostDomains) + " domains (the latest: \"" + domain +
                    "\"): choose another domain field, or rename domains together");
  place.reset(new Stream{OutputFile(text_path(folder_.path(), domain, split)), OutputFile(ends_path(folder_.path(), domain, split)),
                         manifest_[{domain, split}]});
  return *place;
}

void CorpusWriter::add(const std::string& domain, Split split, std::string_view text) {
  stop_here_if_asked();
  stream(domain, split).add(text);
  ++documents_;
}

std::string CorpusWriter::finish(const nlohmann::json& origin, Existing existing) {
  for (auto& [key, stream] : streams_) {
    stream->record.sha256 = hex(stream->sha.finish());
    stream->text.close();
    stream->ends.close();
  }
  const std::string hash = corpus_hash(manifest_);
  nlohmann::json json = {{"format", kFormat}, {"name", name_}, {"hash", hash}, {"origin", origin}, {"domains", nlohmann::json::object()}};
  for (const auto& [key, record] : manifest_)
    json["domains"][key.first][to_string(key.second)] = {
        {"documents", record.documents}, {"bytes", record.bytes}, {"sha256", record.sha256}};
  write_file(folder_.path() / "corpus.json", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder_.commit(existing);
  return hash;
}

std::string plain_domain(std::string_view name) {
  std::string plain;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+' || (c == '.' && !plain.empty());
    if (kept)
      plain += c;
    else if (!plain.empty() && plain.back() != '-')
      plain += '-';
  }
  plain.resize(std::min<size_t>(plain.size(), 64));
  while (!plain.empty() && plain.back() == '-') plain.pop_back();
  return plain;
}

bool valid_corpus_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  if (name.empty() || name.size() > 100 || name.front() == '.' || name.front() == '-') return false;
  for (char c : name)
    if (!allowed(c)) return false;
  return true;
}

}  // namespace saccade
