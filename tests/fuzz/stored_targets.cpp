#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "analysis/runs/journal.h"
#include "analysis/runs/kept_choices.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_notes.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/studies/queue.h"
#include "analysis/studies/run_summaries.h"
#include "analysis/studies/study_folder.h"
#include "analysis/tasks/task_run.h"
#include "analysis/training/divergence.h"
#include "models/config/config.h"
#include "models/corpus/corpus_store.h"
#include "tests/fuzz/targets.h"

namespace saccade::test {

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Records with numbers in their order only, and a reader that goes on where another stood sees the same.
void journal(std::string_view bytes) {
  const fs::path path = written("journal.jsonl", bytes);
  JournalReader all(path);
  std::vector<std::string> records, parts;
  all.poll([&](const Record& record) { records.push_back(record.dump(-1, ' ', false, Record::error_handler_t::replace)); });
  const size_t half = bytes.size() / 2;
  written("journal.jsonl", bytes.substr(0, half));
  JournalReader growing(path);
  const auto take = [&](const Record& record) { parts.push_back(record.dump(-1, ' ', false, Record::error_handler_t::replace)); };
  growing.poll(take);
  written("journal.jsonl", bytes);
  growing.poll(take);
  require(records == parts, "a journal that grew is another than one read at once");
}

void run_json(std::string_view bytes) {
  written("run/run.json", bytes);
  const RunInfo info = read_run_info(fuzz_folder() / "run");
  require(info.step >= 0 && info.steps >= 0 && info.parameters >= 0, "a negative count");
  static_cast<void>(Run(fuzz_folder() / "run").damage());
}

/// A run's journal behind a good run.json.
void run_journal(std::string_view bytes) {
  static const bool made = [] {
    RunInfo info;
    info.directory = fuzz_folder() / "run";
    info.config = to_json(resolve_config(nlohmann::json::object(), "fuzz"));
    info.provenance = nlohmann::json::object();
    write_run_info(info);
    return true;
  }();
  static_cast<void>(made);
  written("run/journal.jsonl", bytes);
  const Run run(fuzz_folder() / "run");
  for (const Series& series : run.series())
    require(series.step.size() == series.value.size() && series.tokens.size() == series.value.size(), "columns of different lengths");
  Run outline(fuzz_folder() / "run", {.most_points = 8, .outline = true});
  static_cast<void>(outline.lost());
}

void notes(std::string_view bytes) {
  written("run/notes.json", bytes);
  const RunNotes once = read_notes(fuzz_folder() / "run");
  write_notes(fuzz_folder() / "run", once);
  require(read_notes(fuzz_folder() / "run") == once, "notes are others when they are read again");
}

/// Scores of a task, as they are kept in a run. What is accepted is the same when it is written with its seal and read again.
void task_result(std::string_view bytes) {
  const fs::path path = written("scored/tasks/task-step-1.json", bytes);
  const std::vector<TaskResult> once = read_task_results(fuzz_folder() / "scored");
  write_sealed_json(path, to_json(once.at(0)));
  require(to_json(read_task_results(fuzz_folder() / "scored").at(0)) == to_json(once.at(0)), "scores are others when they are read again");
}

/// What is accepted is the same when it is written and read again.
void queue(std::string_view bytes) {
  static const DeviceQueue device((fuzz_folder(), "cpu"));
  const fs::path file = device.folder() / "queue.json";
  std::ofstream(file, std::ios::binary) << bytes;
  const auto nothing = [](QueueState&) {};
  device.edit(nothing);
  const std::string once = content_of(file);
  const QueueState state = device.edit(nothing);
  require(content_of(file) == once, "a queue is another when it is read again");
  for (const QueueEntry& entry : state.entries) find_entry(state, std::to_string(entry.id));
}

void study_state(std::string_view bytes) {
  written("study/state.json", bytes);
  const StudyState once = read_study_state(fuzz_folder() / "study");
  edit_study_state(fuzz_folder() / "study", [](StudyState&) {});
  const StudyState again = read_study_state(fuzz_folder() / "study");
  require(again.gave_up == once.gave_up && again.stopped == once.stopped && again.most_runs == once.most_runs,
          "a study's state is another when it is read again");
}

/// What a study keeps of its runs, with STAMP where run.json's own belongs: whatever it holds, the run is read.
void study_index(std::string_view bytes) {
  static const std::string stamp = [] {
    const fs::path run = fuzz_folder() / "indexed/runs/first";
    fs::create_directories(run);
    RunInfo info;
    info.directory = run;
    info.state = RunState::finished;
    info.config = to_json(resolve_config(nlohmann::json::object(), "fuzz"));
    info.provenance = nlohmann::json::object();
    write_run_info(info);
    struct stat state {};
    require(::stat((run / "run.json").c_str(), &state) == 0, "a run that was written is not there");
    return std::to_string(state.st_ino) + " " + std::to_string(state.st_mtim.tv_sec) + "." + std::to_string(state.st_mtim.tv_nsec);
  }();
  std::string index(bytes);
  if (const size_t at = index.find("STAMP"); at != std::string::npos) index.replace(at, 5, stamp);
  written("indexed/index.json", index);
  std::map<std::string, std::string> problems;
  const std::vector<RunSummary> runs = run_summaries(fuzz_folder() / "indexed", &problems);
  require(runs.size() == 1 && problems.empty() && runs[0].name == "first", "a run is not read since an index is odd");
}

void diverged(std::string_view bytes) {
  written("run/diverged-step-7.json", bytes);
  static_cast<void>(diverged_position(fuzz_folder() / "run", 7));
}

constexpr const char* kDomain = "prose";

/// A small corpus, made once.
const fs::path& small_corpus() {
  static const fs::path directory = [] {
    fuzz_folder();
    CorpusWriter writer("small");
    for (const char* text : {"a first document", "", "and another, with \xc3\xb6"}) writer.add(kDomain, Split::train, text);
    writer.add(kDomain, Split::validation, "for validation");
    writer.finish({{"missing", {{"code", "no source files"}}}}, Existing::replace);
    return corpora_folder() / "small";
  }();
  return directory;
}

std::vector<std::string> documents_of(const Corpus& corpus) {
  std::vector<std::string> documents;
  for (const DomainInfo& domain : corpus.domains())
    for (const Split split : {Split::train, Split::validation, Split::test})
      corpus.each_document(domain.name, split, [&](std::string_view text) {
        documents.emplace_back(text);
        return true;
      });
  return documents;
}

/// The first byte says which of a corpus' files the others are.
void corpus(std::string_view bytes) {
  if (bytes.empty()) return;
  const fs::path files[] = {small_corpus() / "corpus.json", ends_path(small_corpus(), kDomain, Split::train)};
  const fs::path& file = files[static_cast<unsigned char>(bytes[0]) % std::size(files)];
  static const std::string kept[] = {content_of(files[0]), content_of(files[1])};
  for (size_t i = 0; i < std::size(files); ++i) std::ofstream(files[i], std::ios::binary) << kept[i];
  std::ofstream(file, std::ios::binary) << bytes.substr(1);
  const Corpus opened = Corpus::open("small");
  documents_of(opened);
  static_cast<void>(opened.missing_domain("code"));
}

/// Changes to a stored file: where (two bytes), and what stands there then. An odd number of bytes cuts the file at the place of the last.
std::string edited(std::string stored, std::string_view changes) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(changes[i])); };
  for (size_t i = 0; i + 2 < changes.size(); i += 3)
    if (!stored.empty()) stored[(byte(i) * 256 + byte(i + 1)) % stored.size()] = changes[i + 2];
  if (changes.size() % 3 == 2) stored.resize((byte(changes.size() - 2) * 256 + byte(changes.size() - 1)) % (stored.size() + 1));
  return stored;
}

/// Tokens of a store whose file was changed are refused, or those that were stored.
void token_store(std::string_view bytes) {
  const auto tokens_of = [] {
    const auto tokenizer = make_byte_tokenizer();
    small_corpus();
    const auto store = TokenStore::open(Corpus::open("small"), kDomain, Split::train, *tokenizer);
    std::vector<int32_t> tokens(static_cast<size_t>(store->size()));
    store->read(0, tokens);
    static_cast<void>(store->document_ends());
    return tokens;
  };
  static const std::vector<int32_t> stored = tokens_of();
  static const fs::path file = [] {
    for (const auto& entry : fs::recursive_directory_iterator(cache_folder()))
      if (entry.path().extension() == ".tokens") return entry.path();
    return fs::path();
  }();
  static const std::string content = content_of(file);
  std::ofstream(file, std::ios::binary) << edited(content, bytes);
  require(tokens_of() == stored, "a changed token store was accepted with other tokens");
}

/// What is found is what the last good line of the name says, also behind one that is added.
void kept_choices(std::string_view bytes) {
  const fs::path path = written("timed-choices.txt", bytes);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  const std::optional<int> before = KeptChoices(path).find("product 1 2");
  KeptChoices(path).keep("another", 3);
  KeptChoices after(path);
  require(after.find("product 1 2") == before, "a line that was added changed another choice");
}

}  // namespace

std::vector<FuzzTarget> stored_targets() {
  return {{"journal", journal},   {"run_json", run_json},       {"run_journal", run_journal}, {"notes", notes},
          {"queue", queue},       {"task_result", task_result}, {"study_state", study_state}, {"study_index", study_index},
          {"diverged", diverged}, {"corpus", corpus},           {"token_store", token_store}, {"kept_choices", kept_choices}};
}

}  // namespace saccade::test
