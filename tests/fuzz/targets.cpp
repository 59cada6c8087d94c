#include "tests/fuzz/targets.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analysis/comparison/run_filter.h"
#include "analysis/figures/figure.h"
#include "analysis/inspection/base64.h"
#include "analysis/inspection/service.h"
#include "analysis/runs/journal.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/studies/study.h"
#include "kernels/engine/error.h"
#include "models/config/config.h"
#include "models/config_text.h"
#include "models/corpus/document_reader.h"
#include "models/corpus/piece_tokenizer.h"
#include "models/corpus/token_shards.h"
#include "models/corpus/tokenizer.h"

namespace saccade::test {

namespace fs = std::filesystem;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// A folder of this process, in memory where the system has such.
const fs::path& folder() {
  static const fs::path path = [] {
    const fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    const fs::path made = base / ("saccade-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(made / "run");
    std::atexit([] {
      std::error_code ignored;
      fs::remove_all(folder(), ignored);
    });
    return made;
  }();
  return path;
}

fs::path written(const std::string& name, std::string_view bytes) {
  const fs::path path = folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// What is accepted is the same when it is written and read again.
void config(std::string_view bytes) {
  const RunConfig once = parse_config(std::string(bytes), "fuzz");
  require(to_json(parse_config(to_json(once).dump(), "again")) == to_json(once), "a config is another when it is read again");
}

void overrides(std::string_view bytes) {
  nlohmann::json object = {{"training", {{"steps", 1}}}};
  apply_override(object, std::string(bytes));
}

void study(std::string_view bytes) { parse_study(std::string(bytes), "fuzz", "fuzz"); }

void figure(std::string_view bytes) {
  const Figure once = figure_from_json(parse_json_text(std::string(bytes), "fuzz"));
  figure_from_json(to_json(once));
}

void filter(std::string_view bytes) { static_cast<void>(RunFilter(std::string(bytes)).empty()); }

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
  const RunInfo info = read_run_info(folder() / "run");
  require(info.step >= 0 && info.steps >= 0 && info.parameters >= 0, "a negative count");
  static_cast<void>(Run(folder() / "run").damage());
}

/// A run's journal behind a good run.json.
void run_journal(std::string_view bytes) {
  static const bool made = [] {
    RunInfo info;
    info.directory = folder() / "run";
    info.config = to_json(resolve_config(nlohmann::json::object(), "fuzz"));
    info.provenance = nlohmann::json::object();
    write_run_info(info);
    return true;
  }();
  static_cast<void>(made);
  written("run/journal.jsonl", bytes);
  const Run run(folder() / "run");
  for (const Series& series : run.series())
    require(series.step.size() == series.value.size() && series.tokens.size() == series.value.size(), "columns of different lengths");
  Run outline(folder() / "run", {.most_points = 8, .outline = true});
  static_cast<void>(outline.lost());
}

/// What is accepted encodes and decodes, and is the same when it is read again from a run.
void check_tokenizer(const Tokenizer& parsed) {
  const std::vector<int32_t> tokens = parsed.encode("The quick brown f\xc3\xb6x, 123\n\t \xff end");
  for (const int32_t token : tokens) require(token >= 0 && token < parsed.vocabulary(), "a token outside the vocabulary");
  parsed.decode(tokens);
  for (int32_t token = 0; token < std::min<int64_t>(parsed.vocabulary(), 100); ++token) parsed.piece(token);
  require(parse_tokenizer(parsed.serialized(), parsed.name())->hash() == parsed.hash(), "a tokenizer is another when it is read again");
}

void tokenizer(std::string_view bytes) { check_tokenizer(*parse_sentencepiece(std::string(bytes), "fuzz")); }
void tokenizer_json(std::string_view bytes) { check_tokenizer(*parse_tokenizer_json(std::string(bytes), "fuzz")); }
void rank_file(std::string_view bytes) { check_tokenizer(*parse_rank_file(std::string(bytes), "cl100k_base")); }

void token_shards(std::string_view bytes) {
  written("shards/fuzz_train.bin", bytes);
  const std::vector<TokenShard> shards = read_token_shards(folder() / "shards");
  require(hash_of(shards).size() == 64, "no hash");
  const auto tokenizer = make_byte_tokenizer();
  const ShardTokens stream(shards, "fuzz", Split::train, *tokenizer);
  std::vector<int32_t> tokens(static_cast<size_t>(stream.size()));
  stream.read(0, tokens);
  for (const int32_t token : tokens) require(token >= 0 && token < tokenizer->vocabulary(), "a token outside the vocabulary");
}

class Pieces : public DocumentVisitor {
 public:
  void piece(std::string_view bytes, int64_t) override { require(bytes.size() <= kLongestLine, "a piece longer than a line may be"); }
  void too_long(int64_t) override {}
  void malformed(int64_t, const std::string&) override {}
  void progress(int64_t) override {}
};

/// The first byte says which kind of file it is.
void documents(std::string_view bytes) {
  if (bytes.empty()) return;
  static constexpr const char* kNames[] = {"text.jsonl", "text.txt", "text.jsonl.gz", "text.jsonl.zst", "text.csv", "text.tsv"};
  const size_t kind = static_cast<unsigned char>(bytes[0]) % std::size(kNames);
  SourceFile file;
  file.path = written(kNames[kind], bytes.substr(1));
  file.json_lines = kind != 1;
  file.separator = kind == 4 ? ',' : kind == 5 ? '\t' : '\0';
  file.bytes = static_cast<int64_t>(bytes.size()) - 1;
  Pieces pieces;
  read_documents(file, pieces);
}

/// A line of a request; there is no run, so that what is read of it is all that happens.
void inspection(std::string_view bytes) {
  InspectionService service(folder() / "no-run", 0);
  const std::string answer = service.answer(std::string(bytes));
  require(answer.find('\n') == std::string::npos, "an answer of more than a line");
  const nlohmann::json reply = nlohmann::json::parse(answer, nullptr, false);
  require(reply.is_object() && reply.contains("id") && reply.contains("error") != reply.contains("result"), "an answer that is none");
}

void base64(std::string_view bytes) {
  const std::vector<float> values = floats_of_base64(bytes);
  require(floats_of_base64(base64_of_floats(values)).size() == values.size(), "floats are others when they are sent again");
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> all{{"config", config},
                                           {"overrides", overrides},
                                           {"study", study},
                                           {"figure", figure},
                                           {"filter", filter},
                                           {"journal", journal},
                                           {"run_json", run_json},
                                           {"run_journal", run_journal},
                                           {"tokenizer", tokenizer},
                                           {"tokenizer_json", tokenizer_json},
                                           {"rank_file", rank_file},
                                           {"documents", documents},
                                           {"inspection", inspection},
                                           {"base64", base64},
                                           {"token_shards", token_shards}};
  return all;
}

void run_target(const FuzzTarget& target, std::string_view bytes) try { target.run(bytes); } catch (const Error&) {
}

}  // namespace saccade::test
