// saccade corpus import|list|show|samples: text in, and what is there.
#include "models/corpus/corpus.h"

#include <algorithm>

#include "analysis/figures/count_text.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/corpus_store.h"

namespace saccade::cli {
namespace {

Split parse_split(const std::string& name) {
  for (Split split : {Split::train, Split::validation, Split::test})
    if (name == to_string(split)) return split;
  throw UsageError("split \"" + name + "\", expected train, validation or test");
}

int64_t count(const std::map<std::string, int64_t>& by_split, const char* split) {
  const auto found = by_split.find(split);
  return found == by_split.end() ? 0 : found->second;
}

nlohmann::json domains_json(const std::vector<DomainInfo>& domains) {
  nlohmann::json json = nlohmann::json::object();
  for (const DomainInfo& info : domains)
    for (const auto& [split, documents] : info.documents)
      json[info.name][split] = {{"documents", documents}, {"bytes", info.bytes.at(split)}};
  return json;
}

std::string domains_table(const std::vector<DomainInfo>& domains) {
  std::vector<std::vector<std::string>> rows;
  for (const DomainInfo& info : domains)
    for (const char* split : {"train", "validation", "test"})
      rows.push_back({info.name, split, std::to_string(count(info.documents, split)), std::to_string(count(info.bytes, split))});
  return table({"domain", "split", "documents", "bytes"}, rows);
}

/// Documents that an import left out for their length, by domain; empty for a corpus that was made without a least one.
std::map<std::string, int64_t> too_short(const Corpus& corpus) {
  if (!std::filesystem::exists(corpus.directory() / "corpus.json")) return {};  // token shards, generated text
  const nlohmann::json origin = read_origin(corpus.directory());
  if (!origin.is_object() || !origin.contains("too_short_by_domain")) return {};
  return origin["too_short_by_domain"].get<std::map<std::string, int64_t>>();
}
/// "web 7, github 3"
std::string list_of(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [domain, count] : counts) text += (text.empty() ? "" : ", ") + domain + " " + std::to_string(count);
  return text;
}

// ---- import

int import(ImportOptions options, const std::vector<std::string>& sources, const std::vector<std::string>& renames) {
  options.sources.assign(sources.begin(), sources.end());
  for (const std::string& rename : renames) {
    const size_t equals = rename.find('=');
    if (equals == 0 || equals == rename.npos) throw UsageError("--rename " + rename + ", expected OLD=NEW");
    options.rename[rename.substr(0, equals)] = rename.substr(equals + 1);
  }
  catch_stop_signals();
  ImportReport report;
  {
    Progress progress("import");
    report = import_corpus(options, [&](double fraction, const std::string& detail) {
      if (stop_requested()) throw Interrupted("import stopped: corpus \"" + options.name + "\" was not made");
      progress.update(fraction, detail);
    });
  }
  for (const std::string& problem : report.problems) say(problem);
  const Corpus corpus = Corpus::open(options.name);
  print_result({{"name", corpus.name()},
                {"hash", corpus.hash()},
                {"documents", report.documents},
                {"bytes", report.bytes},
                {"too_short", report.too_short},
                {"too_short_by_domain", too_short(corpus)},
                {"duplicates", report.duplicates},
                {"invalid_utf8", report.invalid_utf8},
                {"malformed", report.malformed},
                {"problems", report.problems},
                {"domains", domains_json(corpus.domains())}},
               domains_table(corpus.domains()) + "\n" + counted(report.documents, "document") + ", " + std::to_string(report.bytes) +
                   " bytes; left out: " +
                   (report.too_short > 0 ? std::to_string(report.too_short) + " too short (" + list_of(too_short(corpus)) + "), " : "") +
                   counted(report.duplicates, "duplicate") + ", " + std::to_string(report.invalid_utf8) + " with invalid UTF-8, " +
                   std::to_string(report.malformed) + " malformed\n");
  return 0;
}

std::function<int()> declare_import(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  auto sources = std::make_shared<std::vector<std::string>>();
  auto renames = std::make_shared<std::vector<std::string>>();
  auto ignore_splits = std::make_shared<bool>(false);
  app.add_option("NAME", options->name, "Name of the new corpus")->required();
  app.add_option("SOURCE", *sources, "Folders of text, or .txt, .jsonl, .csv and .tsv files, also as .gz and .zst; .parquet with Arrow")
      ->required();
  app.add_option("--domain-field", options->domain_field, "Field of a JSON line, or a column, that names the domain; dots lead inside")
      ->capture_default_str();
  app.add_option("--text-field", options->text_field, "Field of a JSON line, or a table's column, that holds the text")
      ->capture_default_str();
  app.add_option("--rename", *renames, "Rename a domain: OLD=NEW; domains with the same NEW are merged")
      ->type_name("OLD=NEW")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--validation-share", options->validation_share, "Share of documents for validation")->capture_default_str();
  app.add_option("--test-share", options->test_share, "Share of documents for test")->capture_default_str();
  app.add_option("--min-bytes", options->min_bytes, "Leave out documents with fewer bytes")->capture_default_str();
  app.add_option("--min-tokens", options->min_tokens, "Leave out documents with fewer tokens")->capture_default_str();
  app.add_option("--tokenizer", options->tokenizer, "What --min-tokens counts: bytes or a tokenizer's file")->capture_default_str();
  app.add_option("--max-documents", options->max_documents, "End when the corpus has so many documents; 0: at the sources' end")
      ->capture_default_str();
  app.add_option("--max-bytes", options->max_bytes, "End before the corpus has more bytes of text; 0: at the sources' end")
      ->capture_default_str();
  app.add_option_function<int64_t>(
         "--duplicates-memory", [=](int64_t mib) { options->duplicates_memory = mib << 20; },
         "MiB for telling duplicates; what does not fit goes to disk, 16 bytes a document")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("2048");
  app.add_flag("--ignore-file-splits", *ignore_splits, "Split by document hash even where names say train, validation or test");
  app.add_flag("--replace", options->replace, "Replace a corpus of that name");
  return [=] {
    options->use_file_splits = !*ignore_splits;
    return import(*options, *sources, *renames);
  };
}

// ---- list, show, samples

int list_all() {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::pair<std::string, std::string>> rows;
  for (const CorpusSummary& corpus : list_corpora()) {
    json.push_back({{"name", corpus.name},
                    {"hash", corpus.hash},
                    {"built_in", corpus.built_in},
                    {"present", corpus.present},
                    {"problem", corpus.problem},
                    {"domains", domains_json(corpus.domains)}});
    std::string names;
    for (const DomainInfo& info : corpus.domains) names += (names.empty() ? "" : " ") + info.name;
    const std::string what = !corpus.problem.empty() ? corpus.problem : corpus.present ? names : "(built in, made on first use)";
    rows.emplace_back(corpus.name, what);
  }
  print_result(json, list(rows));
  return 0;
}

int show(const std::string& name) {
  const Corpus corpus = Corpus::open(name, say);
  const std::map<std::string, int64_t> left_out = too_short(corpus);
  print_result({{"name", corpus.name()},
                {"hash", corpus.hash()},
                {"directory", corpus.directory().string()},
                {"too_short_by_domain", left_out},
                {"domains", domains_json(corpus.domains())}},
               domains_table(corpus.domains()) + (left_out.empty() ? "" : "\nleft out as too short: " + list_of(left_out) + "\n") +
                   "\nhash " + corpus.hash() + "\nin   " + corpus.directory().string() + "\n");
  return 0;
}

struct SampleOptions {
  std::string name, domain, split = "validation";
  int64_t count = 3, bytes = 500;
};

/// At most `limit` bytes, cut between characters.
std::string cut(std::string_view text, int64_t limit) {
  auto size = static_cast<size_t>(limit);
  if (size >= text.size()) return std::string(text);
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "…";
}

/// Evenly spaced documents.
int samples(const SampleOptions& options) {
  const Corpus corpus = Corpus::open(options.name, say);
  const Split split = parse_split(options.split);
  if (options.count < 1 || options.bytes < 1) throw UsageError("--count and --bytes must be at least 1");
  nlohmann::json json = nlohmann::json::array();
  std::string text;
  for (const DomainInfo& info : corpus.domains()) {
    if (!options.domain.empty() && info.name != options.domain) continue;
    const int64_t documents = count(info.documents, to_string(split)), step = std::max<int64_t>(1, documents / options.count);
    int64_t number = 0, shown = 0;
    corpus.each_document(info.name, split, [&](std::string_view document) {
      if (number++ % step != 0) return true;
      const std::string shown_text = cut(document, options.bytes);
      json.push_back(
          {{"domain", info.name}, {"split", options.split}, {"document", number - 1}, {"bytes", document.size()}, {"text", shown_text}});
      text += "── " + info.name + "." + options.split + ", document " + std::to_string(number - 1) + ", " +
              std::to_string(document.size()) + " bytes\n" + printable(shown_text, true) + "\n\n";
      return ++shown < options.count;
    });
  }
  if (!options.domain.empty() && !corpus.has_domain(options.domain)) throw DataError(corpus.missing_domain(options.domain));
  print_result(json, text);
  return 0;
}

std::function<int()> declare_samples(CLI::App& app) {
  auto options = std::make_shared<SampleOptions>();
  app.add_option("NAME", options->name, "Corpus")->required();
  app.add_option("--domain", options->domain, "Only this domain");
  app.add_option("--split", options->split, "train, validation or test")->capture_default_str();
  app.add_option("--count", options->count, "Documents of each domain")->capture_default_str();
  app.add_option("--bytes", options->bytes, "Bytes shown of a document")->capture_default_str();
  return [options] { return samples(*options); };
}

std::function<int()> declare_show(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "Corpus")->required();
  return [name] { return show(*name); };
}

const RegisterCommand corpus_command{
    {"corpus", "Import text as a corpus, list corpora, show documents.",
     "saccade corpus import mytext part-1.jsonl.zst --domain-field meta.source", [](CLI::App& app) {
       auto chosen = std::make_shared<std::function<int()>>();
       const auto add = [&](const std::string& name, const std::string& summary, const std::string& example, auto declare) {
         CLI::App* sub = app.add_subcommand(name, summary);
         sub->footer("Example: " + example);
         sub->callback([chosen, run = declare(*sub)] { *chosen = run; });
       };
       app.require_subcommand(1);
       add("import", "Make a corpus from files and folders.", "saccade corpus import mytext part-1.jsonl.zst --rename RedPajamaC4=web",
           declare_import);
       add("list", "Corpora on this machine.", "saccade corpus list", [](CLI::App&) { return std::function<int()>(list_all); });
       add("show", "Domains, splits, documents, bytes and hash.", "saccade corpus show local-text", declare_show);
       add("samples", "Documents of a corpus, as text.", "saccade corpus samples local-text --domain prose --count 2", declare_samples);
       return [chosen] { return (*chosen)(); };
     }}};

}  // namespace
}  // namespace saccade::cli
