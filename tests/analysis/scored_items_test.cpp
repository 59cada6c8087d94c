#include <QtTest>
#include <fstream>

#include "analysis/inspection/inspector.h"
#include "analysis/inspection/item_text.h"
#include "analysis/inspection/service.h"
#include "analysis/inspection/symbol_answers.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/tasks/scored_items.h"
#include "kernels/engine/error.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Items that a run failed: which they are, and that they come back as they were scored.
class ScoredItemsTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  TinyCorpus corpus_;
  std::atomic<bool> stop_ = false;

  fs::path path(const char* name) const { return folder_.filePath(name).toStdString(); }
  void write(const char* name, const std::string& text) const { std::ofstream(path(name)) << text; }
  /// Trained once.
  fs::path run() {
    if (!fs::exists(path("run"))) work_on(path("run"), tiny_config());
    return path("run");
  }
  TaskResult scored(const Task& task, const TaskRunOptions& options) { return evaluate_task(run(), task, options, {}, stop_); }
  static std::string bytes_of(const InspectedText& text) { return {text.tokens.begin(), text.tokens.end()}; }
  /// Whether it throws with these words.
  template <class E, class F>
  static bool says(const QString& words, F&& f) {
    try {
      f();
    } catch (const E& error) {
      return QString(error.what()).contains(words);
    }
    return false;
  }

 private Q_SLOTS:
  void a_needle_comes_back() {
    TaskRunOptions options;
    options.items.limit = 25, options.items.seed = 7;
    const Task task = at_difficulties(find_task("passkey"), {300}, {}).front();
    const TaskResult result = scored(task, options);
    const FailedItems failed = failed_items(run(), task.name, 12);
    QCOMPARE(failed.asked, int64_t{25});
    QCOMPARE(failed.kind, Task::Kind::generation);
    QVERIFY(!failed.items.empty());  // of a model that has seen 1 500 bytes
    for (const AnsweredItem& item : failed.items) QVERIFY(!item.target.empty() && item.answer.find(item.target) == std::string::npos);
    const FailedItems first = failed_items(run(), task.name, 12, ItemGroup{"depth", 10});
    QVERIFY(first.asked > 0 && first.asked < 25);
    for (const AnsweredItem& item : first.items) QCOMPARE(item.group, std::string("depth 10 %"));

    const RunConfig config = tiny_config();
    const auto tokenizer = make_byte_tokenizer();
    for (const AnsweredItem& item : {failed.items.front(), failed.items.back()}) {
      const InspectedText text = item_text({run(), task.name, 12, item.number}, config, *tokenizer, 4096);
      const std::string all = bytes_of(text);
      QVERIFY2(all.ends_with("\nThe pass key is " + item.target), all.c_str());
      QCOMPARE(text.left_out, int64_t{0});
      QCOMPARE(text.answers.size(), size_t{1});
      const KnownAnswer& answer = text.answers.front();
      QCOMPARE(answer.size, static_cast<int64_t>(item.target.size()));
      QCOMPARE(all.substr(static_cast<size_t>(answer.source), item.target.size()), item.target);
      QCOMPARE(all.substr(static_cast<size_t>(answer.query) + 1), item.target);
      QCOMPARE(text.query, answer.query);
      QVERIFY(answer.source < answer.query - 20);  // the needle, not the question
    }
    // What does not fit loses its beginning, and the answer with it where that is lost.
    const InspectedText end = item_text({run(), task.name, 12, failed.items.front().number}, config, *tokenizer, 40);
    QCOMPARE(end.tokens.size(), size_t{40});
    QVERIFY(end.left_out > 900 && end.answers.empty() && end.query > 0);
    QCOMPARE(end.lost_answers, int64_t{1});
    QVERIFY(bytes_of(end).ends_with(failed.items.front().target));
    Q_UNUSED(result)
  }

  void another_seed_is_noticed() {
    TaskRunOptions options;
    options.items.limit = 2, options.items.seed = 7;
    const Task task = at_difficulties(find_task("passkey"), {400}, {}).front();
    scored(task, options);
    const fs::path file = run() / "tasks" / "passkey-400-step-12-limit-2-seed-7.json";
    nlohmann::json kept = nlohmann::json::parse(read_text(file));
    QCOMPARE(kept.at("made_from").at("seed"), 7);
    kept["made_from"]["seed"] = 8;
    kept.erase("crc32c");
    write_sealed_json(file, kept);
    const auto tokenizer = make_byte_tokenizer();
    QVERIFY(says<DataError>("another seed", [&] { scored_item(run(), task.name, 12, 0, tiny_config(), *tokenizer); }));
    QVERIFY(says<UsageError>("expected 0 to 1", [&] { scored_item(run(), task.name, 12, 2, tiny_config(), *tokenizer); }));
    QVERIFY(says<DataError>("were not kept", [&] { failed_items(run(), "passkey-500", 12); }));
    QVERIFY(says<UsageError>("no task's name", [&] { failed_items(run(), "../passkey-400", 12); }));
  }

  void choices_come_from_their_file() {
    write("mine.json",
          R"({"name": "mine", "context": "The {what} is", "choices": ["red", "blue"], "gold": "{right}", "files": "mine.jsonl"})");
    std::string rows;
    for (int i = 0; i < 12; ++i) rows += nlohmann::json{{"what", "thing " + std::to_string(i)}, {"right", i % 2}}.dump() + "\n";
    write("mine.jsonl", rows);
    TaskRunOptions options;
    options.data = path("mine.jsonl");
    const TaskResult result = scored(find_task(path("mine.json").string()), options);
    const FailedItems failed = failed_items(run(), "mine", 12);
    QCOMPARE(failed.kind, Task::Kind::choices);
    QCOMPARE(failed.asked, int64_t{12});
    QVERIFY(!failed.items.empty());
    QVERIFY(std::abs(static_cast<double>(failed.items.size()) / 12 - (1 - result.score().value)) < 1e-12);
    const auto tokenizer = make_byte_tokenizer();
    for (const AnsweredItem& item : failed.items) {
      QVERIFY(item.chosen != item.gold && item.gold == static_cast<size_t>(item.number % 2));
      const InspectedText text = item_text({run(), "mine", 12, item.number}, tiny_config(), *tokenizer, 4096);
      QCOMPARE(bytes_of(text), "The thing " + std::to_string(item.number) + " is " + (item.gold == 0 ? "red" : "blue"));
      QCOMPARE(text.tokens.at(static_cast<size_t>(text.query) + 1), item.gold == 0 ? 'r' : 'b');
      QVERIFY(text.answers.empty());
    }
    write("mine.jsonl", rows + R"({"what": "more", "right": 0})" + "\n");
    QVERIFY(says<DataError>("is not what it was", [&] { scored_item(run(), "mine", 12, 0, tiny_config(), *tokenizer); }));
    write("mine.json",
          R"({"name": "mine", "context": "A {what} is", "choices": ["red", "blue"], "gold": "{right}", "files": "mine.jsonl"})");
    QVERIFY(says<DataError>("not the one any more", [&] { scored_item(run(), "mine", 12, 0, tiny_config(), *tokenizer); }));
  }

  void symbols_say_where_their_answers_stand() {
    const nlohmann::json object = tiny_symbol_run();
    const fs::path run = path("symbols");
    work_on(run, resolve_config(object, "symbols"));
    TaskRunOptions options;
    options.samples = 20;
    const Task task = at_difficulties(find_task("mqar"), {}, {"length-16-pairs-3-vocabulary-32"}).front();
    evaluate_task(run, task, options, {}, stop_);
    const FailedItems failed = failed_items(run, task.name, 12);
    QCOMPARE(failed.kind, Task::Kind::symbols);
    QCOMPARE(failed.asked, int64_t{20});
    QVERIFY(!failed.items.empty() && failed.items.front().right < 1);
    const int64_t number = failed.items.front().number;
    const InspectedText text = item_text({run, task.name, 12, number}, resolve_config(object, "symbols"), *make_byte_tokenizer(), 4096);
    const SymbolExample example =
        SymbolDomain(symbol_task("mqar"), "length-16-pairs-3-vocabulary-32", "test").example(Split::test, static_cast<uint64_t>(number));
    QCOMPARE(text.tokens, example.tokens);
    int64_t asked = 0;
    for (const KnownAnswer& answer : text.answers)
      for (int64_t i = 0; i < answer.size; ++i, ++asked) {
        const auto query = static_cast<size_t>(answer.query + i);
        QCOMPARE(example.sources.at(query), static_cast<int32_t>(answer.source + i));
        QCOMPARE(example.targets.at(query), example.tokens.at(static_cast<size_t>(answer.source + i)));
      }
    QCOMPARE(asked, int64_t{3});
    QCOMPARE(text.query, text.answers.front().query);
    QCOMPARE(text.asked->size(), size_t{3});
    for (const auto& [query, token] : *text.asked) QCOMPARE(token, example.targets.at(static_cast<size_t>(query)));

    // To a run that reads text the symbols would be bytes.
    const char* reader = "is read by the tokenizer symbols:32, the run's is bytes";
    QVERIFY(says<DataError>(reader, [&] { item_text({run, task.name, 12, number}, tiny_config(), *make_byte_tokenizer(), 4096); }));

    // The answer is not what follows in the text: the model's share for it is told beside.
    Inspector inspector(run);
    inspector.read(text);
    const QueryPredictions predictions = inspector.predictions(text.query, 1);
    QVERIFY(predictions.answer && predictions.target);
    QCOMPARE(predictions.answer->token, example.targets.at(static_cast<size_t>(text.query)));
    QCOMPARE(predictions.target->token, example.tokens.at(static_cast<size_t>(text.query) + 1));
    QVERIFY(!inspector.predictions(0, 1).answer);
    // Losses are of the answers alone, as in training, and so is what a what-if changes.
    const auto query = static_cast<size_t>(text.query);
    const std::vector<float>& losses = inspector.capture().token_losses;
    QVERIFY(std::abs(-std::log(predictions.answer->probability) - static_cast<double>(losses.at(query))) < 1e-4);
    QCOMPARE(std::count_if(losses.begin(), losses.end(), [](float loss) { return loss != 0; }), std::ptrdiff_t{3});
    const CounterfactualResult changed = inspector.change({Counterfactual::Kind::mask, 0, 0, text.query, 0}, text.query, 1);
    QVERIFY(std::abs(changed.loss - static_cast<double>(losses.at(query))) < 1e-6);
    QVERIFY(changed.changed_from == text.query && changed.mean_over >= 1 && changed.mean_over <= 3);
    QVERIFY(std::isnan(inspector.change({Counterfactual::Kind::mask, 0, 0, text.query, 0}, 0, 1).loss));
    InspectedText odd = text;
    odd.asked = {{{0, 32}}};
    QVERIFY(says<UsageError>("token 32 is not one of 32", [&] { inspector.read(odd); }));
    odd.asked = {{{static_cast<int64_t>(text.tokens.size()), 1}}};
    QVERIFY(says<UsageError>("is asked of", [&] { inspector.read(odd); }));
  }

  /// Captured while training, symbols are read once more as they were trained on.
  void captured_symbols_keep_what_was_asked() {
    const fs::path run = path("captured");
    work_on(run, resolve_config(tiny_symbol_run(), "captured"));
    const std::vector<Capture> samples = Run(run).captures(12);
    QVERIFY(samples.size() >= 2);
    for (size_t s = 0; s < samples.size(); ++s) {
      const Capture& sample = samples[s];
      QCOMPARE(sample.asked->size(), (sample.domain.find("pairs-3") != std::string::npos) ? size_t{3} : size_t{2});
      InspectionService service(run, 0);
      const nlohmann::json ask{{"method", "text"}, {"parameters", {{"source", "captured"}, {"sample", s}}}};
      const nlohmann::json text = nlohmann::json::parse(service.answer(ask.dump())).at("result");
      for (const nlohmann::json& asked : text.at("asked")) QCOMPARE(sample.asked->at(asked.at("query")), asked.at("token").get<int32_t>());
      QCOMPARE(text.at("asked").size(), sample.asked->size());
      const std::vector<KnownAnswer> answers = answers_of(sample, "mqar");
      QCOMPARE(text.at("answers").size(), answers.size());
      int64_t known = 0;
      for (const KnownAnswer& answer : answers)
        for (int64_t i = 0; i < answer.size; ++i, ++known)
          QCOMPARE(sample.tokens.at(static_cast<size_t>(answer.source + i)), sample.asked->at(answer.query + i));
      QCOMPARE(known, static_cast<int64_t>(sample.asked->size()));
      Capture another = sample;
      another.asked->begin()->second ^= 1;
      QVERIFY(answers_of(another, "mqar").empty() && answers_of(sample, "").empty() && answers_of(sample, "of-tomorrow").empty());
      const auto losses = text.at("losses").get<std::vector<double>>();
      QCOMPARE(losses.size(), sample.tokens.size() - (sample.asked->contains(static_cast<int64_t>(sample.tokens.size()) - 1) ? 0 : 1));
      for (size_t t = 0; t < losses.size(); ++t) {
        QVERIFY(std::abs(losses.at(t) - static_cast<double>(sample.token_losses[t])) < 1e-4);
        QCOMPARE(losses.at(t) != 0, sample.asked->contains(static_cast<int64_t>(t)));
      }
    }
  }

  /// Of a long example the part that is captured may ask for nothing: then no query has a loss, where one of text had.
  void captured_symbols_may_ask_for_nothing() {
    nlohmann::json object = tiny_symbol_run();
    object["training"]["capture_tokens"] = 4;
    const fs::path run = path("cut");
    work_on(run, resolve_config(object, "cut"));
    const Capture sample = Run(run).captures(12).front();
    QCOMPARE(sample.tokens.size(), size_t{4});
    QVERIFY(sample.asked && sample.asked->empty());
    InspectionService service(run, 0);
    const auto ask = [&](const nlohmann::json& request) { return nlohmann::json::parse(service.answer(request.dump())).at("result"); };
    const nlohmann::json text = ask({{"method", "text"}, {"parameters", {{"source", "captured"}}}});
    QCOMPARE(text.at("losses").get<std::vector<double>>(), std::vector<double>(3));
    QVERIFY(text.at("asked").is_array() && text.at("answers").empty());
    const nlohmann::json change{{"kind", "mask"}, {"layer", 0}, {"head", 0}, {"query", 2}, {"source", 0}};
    const nlohmann::json changed = ask({{"method", "change"}, {"parameters", change}});
    QVERIFY(changed.at("loss").is_null() && changed.at("changed_from") == -1);
  }
};

}  // namespace saccade::test

QTEST_APPLESS_MAIN(saccade::test::ScoredItemsTest)
#include "scored_items_test.moc"
