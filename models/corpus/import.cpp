#include <algorithm>
#include <set>
#include <unordered_set>

#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/corpus.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/document_reader.h"
#include "models/corpus/seen_documents.h"
#include "models/corpus/tasks.h"
#include "models/corpus/utf8.h"
#include "models/json.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostProblems = 100;

/// The sets of SlimPajama and RedPajama (Soboleva et al. 2023) under the names people use.
std::string known_set(const std::string& domain) {
  static const std::map<std::string, std::string> sets{
      {"RedPajamaCommonCrawl", "web"}, {"RedPajamaC4", "c4"},          {"RedPajamaGithub", "github"},      {"RedPajamaBook", "books"},
      {"RedPajamaArXiv", "arxiv"},     {"RedPajamaWikipedia", "wiki"}, {"RedPajamaStackExchange", "stack"}};
  const auto found = sets.find(domain);
  return found == sets.end() ? domain : found->second;
}

/// "meta.redpajama_set_name" → the value there, or null.
const nlohmann::json* find_field(const nlohmann::json& record, const std::string& path) {
  const nlohmann::json* at = &record;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(path.substr(begin, end - begin));
    if (found == at->end()) return nullptr;
    at = &*found;
    begin = end + 1;
  }
  return at;
}

class Importer : public DocumentVisitor {
 public:
  Importer(const ImportOptions& options, const std::function<void(double, const std::string&)>& progress)
      : options_(options), progress_(progress), writer_(options.name), seen_(corpora_folder(), options.duplicates_memory) {
    if (options.min_tokens > 0) tokenizer_ = make_built_in_tokenizer(options.tokenizer);
    if (options.min_tokens > 0 && !tokenizer_) tokenizer_ = open_tokenizer_file(options.tokenizer);
  }

  /// `left_out`: lines on what of the sources is no part of `files`.
  ImportReport run(const std::vector<SourceFile>& files, const std::vector<std::string>& left_out) {
    for (const std::string& line : left_out)
      if (report_.problems.size() < kMostProblems) report_.problems.push_back(line);
    for (const SourceFile& file : files) total_bytes_ += file.bytes;
    try {
      for (const SourceFile& file : files) {
        file_ = &file;
        read_documents(file, *this);
        bytes_before_ += file.bytes;
      }
    } catch (const Enough&) {
    }
    check_outcome(files);
    writer_.finish(origin(), options_.replace ? Existing::replace : Existing::refuse);
    return report_;
  }

  void piece(std::string_view bytes, int64_t line) override {
    if (const size_t valid = valid_utf8(bytes); valid != bytes.size()) {
      ++report_.invalid_utf8;
      return problem(line, "invalid UTF-8 at byte " + std::to_string(valid + 1));
    }
    if (file_->json_lines) return record(bytes, line);
    add(bytes, file_->domain, line);
  }

  void too_long(int64_t line) override {
    malformed(line, "more than " + std::to_string(kLongestLine >> 20) + " MiB in one " + (file_->separator ? "row" : "line"));
  }

  void progress(int64_t bytes_of_file) override {
    if (progress_)
      progress_(static_cast<double>(bytes_before_ + bytes_of_file) / static_cast<double>(std::max<int64_t>(total_bytes_, 1)),
                file_->path.filename().string() + ": " + std::to_string(report_.documents) + " documents");
  }

  std::vector<std::string> columns() const override {
    std::vector<std::string> outermost;
    for (const std::string& path : {options_.text_field, options_.domain_field}) outermost.push_back(path.substr(0, path.find('.')));
    return outermost;
  }

  void malformed(int64_t line, const std::string& what) override {
    ++report_.malformed;
    problem(line, what);
  }

 private:
  /// What corpus.json keeps: counts, and by what lengths documents were left out, of which domains how many.
  nlohmann::json origin() const {
    nlohmann::json origin = {{"made_by", "import"},
                             {"documents", report_.documents},
                             {"duplicates", report_.duplicates},
                             {"invalid_utf8", report_.invalid_utf8},
                             {"malformed", report_.malformed}};
    if (options_.min_bytes > 0 || tokenizer_) origin["too_short"] = report_.too_short, origin["too_short_by_domain"] = too_short_;
    if (options_.min_bytes > 0) origin["min_bytes"] = options_.min_bytes;
    if (tokenizer_) {
      origin["min_tokens"] = options_.min_tokens;
      origin["tokenizer"] = tokenizer_->name(), origin["tokenizer_hash"] = tokenizer_->hash();
    }
    return origin;
  }

  struct Enough {};  ///< thrown where the corpus has what was asked for

  void record(std::string_view line, int64_t number) {
    std::string twice;
    const auto json = parse_json_or_discard(line, &twice);
    if (!twice.empty()) return malformed(number, "the key \"" + twice + "\" twice in one object");
    if (json.is_discarded()) return malformed(number, "no JSON");
    if (!json.is_object()) return malformed(number, "a JSON " + std::string(json.type_name()) + ", expected an object");
    const nlohmann::json* text = find_field(json, options_.text_field);
    if (!text) return malformed(number, "no field \"" + options_.text_field + "\"" + fields_of(json));
    if (!text->is_string()) return malformed(number, "\"" + options_.text_field + "\" is a " + text->type_name() + ", expected a string");
    const nlohmann::json* domain = find_field(json, options_.domain_field);
    domain_field_seen_ |= domain != nullptr;
    if (fields_.empty()) fields_ = fields_of(json);
    if (domain && !domain->is_string() && !domain->is_null())
      return malformed(number, "\"" + options_.domain_field + "\" is a " + domain->type_name() + ", expected a string");
    add(text->get_ref<const std::string&>(), domain && domain->is_string() ? domain->get<std::string>() : file_->domain, number);
  }

  /// "; it has body, id": what the record has in place of a field that is missed.
  static std::string fields_of(const nlohmann::json& record) {
    constexpr size_t kNamed = 8;
    std::string names;
    size_t count = 0;
    for (const auto& [name, value] : record.items())
      if (count++ < kNamed) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "; it has none" : "; it has " + names + (count > kNamed ? " and others" : "");
  }

  void add(std::string_view text, const std::string& domain, int64_t line) {
    if (text.empty()) return malformed(line, "an empty document");
    if (text.find('\0') != text.npos) return malformed(line, "a zero byte: this is no text");
    if (too_short(text)) {
      ++report_.too_short, ++too_short_[plain_name(domain)];
      return;
    }
    const DocumentKey key = document_key(text);
    if (full(text) && !seen_.contains(key)) throw Enough();
    if (!seen_.insert(key)) {
      ++report_.duplicates;
      return;
    }
    writer_.add(plain_name(domain), file_->split.value_or(split_of(key)), text);
    ++report_.documents;
    report_.bytes += static_cast<int64_t>(text.size());
  }

  std::string plain_name(const std::string& domain) {
    auto& plain = plain_names_[domain];
    if (!plain.empty()) return plain;
    for (const std::string& name : {domain, known_set(domain), plain_domain(known_set(domain))})
      if (const auto renamed = options_.rename.find(name); renamed != options_.rename.end()) {
        renamed_.insert(name);
        return plain = plain_domain(renamed->second);
      }
    plain = plain_domain(known_set(domain));
    if (plain.empty()) plain = "text";
    return plain;
  }

  Split split_of(const DocumentKey& key) const {
    const double place = static_cast<double>(key.high >> 11) * 0x1.0p-53;
    if (place < options_.validation_share) return Split::validation;
    return place < options_.validation_share + options_.test_share ? Split::test : Split::train;
  }

  bool too_short(std::string_view text) const {
    if (static_cast<int64_t>(text.size()) < options_.min_bytes) return true;
    return tokenizer_ && static_cast<int64_t>(tokenizer_->encode(text).size()) < options_.min_tokens;
  }

  bool full(std::string_view more) const {
    return (options_.max_documents > 0 && report_.documents == options_.max_documents) ||
           (options_.max_bytes > 0 && report_.bytes + static_cast<int64_t>(more.size()) > options_.max_bytes);
  }

  void problem(int64_t line, const std::string& what) {
    if (report_.problems.size() < kMostProblems)
      report_.problems.push_back(file_->path.string() + (line ? ":" + std::to_string(line) : "") + ": " + what);
  }

  void check_outcome(const std::vector<SourceFile>& files) {
    const bool json_lines = std::any_of(files.begin(), files.end(), [](const auto& file) { return file.json_lines; });
    if (report_.documents == 0)
      throw DataError("no document to import in " + std::to_string(files.size()) + (files.size() == 1 ? " file" : " files") +
                      (report_.problems.empty() ? "" : "; first problem: " + report_.problems.front()));
    if (json_lines && !domain_field_seen_ && options_.domain_field != ImportOptions().domain_field)
      throw DataError("no record has the domain field \"" + options_.domain_field + "\"" + fields_);
    for (const auto& [from, to] : options_.rename)
      if (!renamed_.contains(from))
        report_.problems.push_back("rename \"" + from + "\" to \"" + to + "\": no document taken is of that domain");
    for (const DomainInfo& info : domain_infos(writer_.manifest()))
      for (const char* split : {"train", "validation"})
        if (!info.documents.contains(split) && report_.problems.size() < kMostProblems + 10)
          report_.problems.push_back("domain " + info.name + " has no " + split + " documents");
  }

  const ImportOptions& options_;
  const std::function<void(double, const std::string&)>& progress_;
  CorpusWriter writer_;
  ImportReport report_;
  SeenDocuments seen_;
  std::map<std::string, std::string> plain_names_;
  std::map<std::string, int64_t> too_short_;  ///< documents left out, by domain
  std::unique_ptr<Tokenizer> tokenizer_;      ///< that counts tokens, where they are
  const SourceFile* file_ = nullptr;
  int64_t total_bytes_ = 0, bytes_before_ = 0;
  bool domain_field_seen_ = false;
  std::string fields_;             ///< fields_of() the first record with text
  std::set<std::string> renamed_;  ///< the names of options_.rename that some document's domain had
};

void check_options(const ImportOptions& options) {
  if (!valid_corpus_name(options.name))
    throw UsageError("corpus name \"" + options.name + "\": a name is made of letters, digits, '.', '_' and '-'");
  if (options.name == "local-text" || is_task_corpus(options.name))
    throw UsageError("corpus name \"" + options.name + "\" is built in, choose another");
  if (!(options.validation_share >= 0 && options.test_share >= 0 && options.validation_share + options.test_share < 1))
    throw UsageError("the shares of validation and test must be at least 0 and together less than 1");
  if (options.duplicates_memory < SeenDocuments::kLeastMemory)
    throw UsageError("the table of documents seen needs at least " + std::to_string(SeenDocuments::kLeastMemory) + " bytes of memory");
  if (options.min_bytes < 0 || options.min_tokens < 0 || options.max_documents < 0 || options.max_bytes < 0)
    throw UsageError("lengths and counts of documents must be at least 0");
  for (const auto& [from, to] : options.rename)
    if (plain_domain(to).empty()) throw UsageError("rename \"" + from + "\" to \"" + to + "\": the new name has no letter or digit");
  if (!options.replace && fs::exists(corpora_folder() / options.name))
    throw UsageError("corpus \"" + options.name + "\" exists already: choose another name, or replace it (--replace)");
}

}  // namespace

ImportReport import_corpus(const ImportOptions& options, const std::function<void(double, const std::string&)>& progress) {
  check_options(options);
  std::vector<std::string> left_out;
  const std::vector<SourceFile> files = find_sources(options.sources, options.use_file_splits, left_out);
  return Importer(options, progress).run(files, left_out);
}

}  // namespace saccade
