#include <array>

#include "analysis/comparison/run_filter.h"
#include "analysis/comparison/sequence_losses.h"
#include "analysis/figures/bench_figures.h"
#include "analysis/figures/figure.h"
#include "analysis/figures/published.h"
#include "analysis/figures/recipe.h"
#include "analysis/inspection/base64.h"
#include "analysis/inspection/service.h"
#include "analysis/studies/study.h"
#include "analysis/tasks/task_items.h"
#include "models/config/config.h"
#include "models/config_text.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/document_reader.h"
#include "models/corpus/piece_tokenizer.h"
#include "models/corpus/pod.h"
#include "models/corpus/roff.h"
#include "models/corpus/token_shards.h"
#include "models/corpus/tokenizer.h"
#include "models/tasks/symbol_task.h"
#include "tests/fuzz/targets.h"

namespace saccade::test {

namespace fs = std::filesystem;

namespace {

/// Up to the first newline, and what is behind it.
std::pair<std::string, std::string_view> line_and_rest(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  return {std::string(bytes.substr(0, end)), bytes.substr(std::min(end + 1, bytes.size()))};
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

void recipe(std::string_view bytes) {
  const FigureRecipe once = parse_recipe(std::string(bytes), "fuzz", "fuzz");
  require(to_json(parse_recipe(to_json(once).dump(), "again", "fuzz")) == to_json(once), "a recipe is another when it is read again");
}

/// What is read can be drawn.
void bench(std::string_view bytes) {
  const std::vector<BenchedModel> models = parse_bench(std::string(bytes), "fuzz");
  for (const std::string& quantity : bench_quantities()) to_csv(bench_figure(models, quantity).figure);
  bench_table(models, "", "");
}

void published(std::string_view bytes) {
  const PublishedTable table = parse_published(std::string(bytes), "fuzz");
  Figure figure;
  figure.x.names = table.columns;
  add_published_scores(figure, table);
  require(published_page_table(table).rows.size() == table.rows.size(), "rows are lost");
}

void filter(std::string_view bytes) { static_cast<void>(RunFilter(std::string(bytes)).empty()); }

void losses(std::string_view bytes) {
  const SequenceLosses read = parse_sequence_losses(parse_json_text(std::string(bytes), "fuzz"), "fuzz");
  for (const bool ood : {false, true}) mean_over_domains(read, ood), paired_difference(read, read, ood);
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
/// The vocabulary in the first line, the merges in the others.
void vocabulary_and_merges(std::string_view bytes) {
  const auto [vocabulary, merges] = line_and_rest(bytes);
  check_tokenizer(*parse_tokenizer_json(join_vocabulary_and_merges(vocabulary, std::string(merges), "fuzz"), "fuzz"));
}

void token_shards(std::string_view bytes) {
  written("shards/fuzz_train.bin", bytes);
  const std::vector<TokenShard> shards = read_token_shards(fuzz_folder() / "shards");
  require(hash_of(shards).size() == 64, "no hash");
  const auto tokenizer = make_byte_tokenizer();
  const ShardTokens stream(shards, "fuzz", Split::train, *tokenizer);
  std::vector<int32_t> tokens(static_cast<size_t>(stream.size()));
  stream.read(0, tokens);
  for (const int32_t token : tokens) require(token >= 0 && token < tokenizer->vocabulary(), "a token outside the vocabulary");
}

class Pieces : public DocumentVisitor {
 public:
  void piece(std::string_view bytes, int64_t) override { require(bytes.size() <= 8 * kLongestLine, "a piece longer than a line may be"); }
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

/// A folder to import with one file, whose name is the first line: what it is goes by that (text, table, packed, Parquet).
void sources(std::string_view bytes) {
  auto [name, content] = line_and_rest(bytes);
  name = name.substr(0, 100);
  if (name.empty() || name == "." || name == ".." || name.find_first_of(std::string("/\0", 2)) != name.npos) return;
  fs::remove_all(fuzz_folder() / "sources");
  written("sources/" + name, content);
  std::vector<std::string> left_out;
  Pieces pieces;
  for (const SourceFile& file : find_sources({fuzz_folder() / "sources"}, true, left_out)) {
    require(plain_domain(file.domain) == file.domain, "a domain that is no plain name");
    read_documents(file, pieces);
  }
}

void manual_page(std::string_view bytes) { roff_to_text(bytes); }
void perl(std::string_view bytes) { pod_to_text(bytes), perl_code(bytes); }

/// A task's file in the first line behind a byte that says how its data is kept, which is what follows.
void task(std::string_view bytes) {
  if (bytes.empty()) return;
  static constexpr std::array kNames{"data.jsonl", "data.json", "data.csv", "data.tsv", "data.jsonl.gz"};
  const auto [description, data] = line_and_rest(bytes.substr(1));
  const Task parsed = find_task(written("task/task.json", description).string());
  const fs::path file = written(std::string("task/") + kNames[static_cast<unsigned char>(bytes[0]) % kNames.size()], data);
  for (const TaskItem& item : read_task_items(parsed, file, {.shots = 0}).items) {
    require(!item.requests.empty(), "an item that asks nothing");
    require(item.gold < item.requests.size(), "the right choice is none of them");
  }
}

/// A difficulty of every generated task.
void symbol_domain(std::string_view bytes) {
  for (const SymbolTask* entry : symbol_tasks()) try {
      const SymbolDomain domain(*entry, std::string(bytes), "fuzz");
      if (domain.length() > 1024) continue;
      const SymbolExample example = domain.example(Split::test, 3);
      require(static_cast<int64_t>(example.tokens.size()) <= domain.length() && example.targets.size() == example.tokens.size(),
              "an example longer than its domain says");
      for (const int32_t token : example.tokens) require(token >= 0 && token < domain.vocabulary(), "a symbol that there is not");
    } catch (const Error&) {
    }
}

/// A line of a request; there is no run, so that what is read of it is all that happens.
void inspection(std::string_view bytes) {
  InspectionService service(fuzz_folder() / "no-run", 0);
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

std::vector<FuzzTarget> text_targets() {
  return {{"config", config},
          {"overrides", overrides},
          {"study", study},
          {"figure", figure},
          {"recipe", recipe},
          {"bench", bench},
          {"published", published},
          {"filter", filter},
          {"losses", losses},
          {"tokenizer", tokenizer},
          {"tokenizer_json", tokenizer_json},
          {"rank_file", rank_file},
          {"vocabulary_and_merges", vocabulary_and_merges},
          {"token_shards", token_shards},
          {"documents", documents},
          {"sources", sources},
          {"manual_page", manual_page},
          {"perl", perl},
          {"task", task},
          {"symbol_domain", symbol_domain},
          {"inspection", inspection},
          {"base64", base64}};
}

}  // namespace saccade::test
