#include "analysis/tasks/scoring.h"

#include <QRegularExpression>
#include <QtTest>
#include <cmath>
#include <numeric>

#include "analysis/runs/hdf5.h"
#include "analysis/runs/results_file.h"
#include "analysis/tasks/checkpoint_means.h"
#include "analysis/tasks/task_run.h"
#include "analysis/training/loss_course.h"
#include "kernels/engine/error.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/embedding/embedding.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Longest match over a list of words; the last one ends texts.
class Words : public Tokenizer {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) { words_.push_back("<end>"); }
  int64_t vocabulary() const override { return static_cast<int64_t>(words_.size()); }
  int32_t end_of_text() const override { return static_cast<int32_t>(words_.size()) - 1; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    while (!text.empty()) {
      size_t best = words_.size();
      for (size_t i = 0; i + 1 < words_.size(); ++i)
        if (text.starts_with(words_[i]) && (best == words_.size() || words_[i].size() > words_[best].size())) best = i;
      if (best == words_.size()) throw std::logic_error("no word begins like " + std::string(text));
      tokens.push_back(static_cast<int32_t>(best));
      text.remove_prefix(words_[best].size());
    }
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t t : tokens) text += words_[static_cast<size_t>(t)];
    return text;
  }
  std::string piece(int32_t token) const override { return words_[static_cast<size_t>(token)]; }
  std::string name() const override { return "words"; }
  std::string hash() const override { return "words"; }

 private:
  std::vector<std::string> words_;
};

/// p(next | token) stands in a table, so that a pencil can follow.
class Bigrams : public Model {
 public:
  Bigrams(Arena& arena, const std::vector<std::vector<double>>& p) {
    const auto V = static_cast<int64_t>(p.size());
    std::vector<double> logs, one(static_cast<size_t>(V * V));
    for (const auto& row : p)
      for (const double x : row) logs.push_back(std::log(x));
    for (int64_t i = 0; i < V; ++i) one[static_cast<size_t>(i * V + i)] = 1;
    table_ = arena.allocate({V, V}, DType::f64), identity_ = arena.allocate({V, V}, DType::f64);
    from_doubles(table_, logs), from_doubles(identity_, one);
  }
  Tensor hidden(Tape& tape, const Tensor& tokens, Probe*) const override { return embedding(tape, table_, tokens); }
  Tensor output_weight() const override { return identity_; }
  double state_values_per_token() const override { return 0; }

 private:
  Tensor table_, identity_;
};

class TaskScoringTest : public QObject {
  Q_OBJECT

  static EncodedRequest encoded(const std::string& context, const std::string& continuation, int64_t longest = 0,
                                Prefix prefix = Prefix::none) {
    static const Words words({"a", "b", " ", "ab", " a", " b"});
    return encode_request(words, {context, continuation, continuation}, prefix, longest);
  }

 private Q_SLOTS:
  /// Words: a 0, b 1, blank 2, ab 3, " a" 4, " b" 5, end 6.
  void the_continuation_is_what_comes_behind_the_context() {
    using Tokens = std::vector<int32_t>;
    EncodedRequest r = encoded("a", " b");
    QCOMPARE(r.tokens, (Tokens{0, 5}));
    QCOMPARE(r.scored, int64_t{1});
    r = encoded("a ", "b");  // the blank moves over
    QCOMPARE(r.tokens, (Tokens{0, 5}));
    QCOMPARE(r.scored, int64_t{1});
    r = encoded("a a", "b b");  // the boundary token is another than the context's own
    QCOMPARE(r.tokens, (Tokens{0, 4, 1, 5}));
    QCOMPARE(r.scored, int64_t{2});
    r = encoded("", "ab");
    QCOMPARE(r.tokens, (Tokens{6, 3}));
    QCOMPARE(r.scored, int64_t{1});
    r = encoded("a", " b", 0, Prefix::end_of_text);
    QCOMPARE(r.tokens, (Tokens{6, 0, 5}));
    QCOMPARE(encoded("a", " b", 0, Prefix::begin).tokens, (Tokens{6, 0, 5}));  // texts begin with nothing of their own
    QVERIFY_THROWS_EXCEPTION(DataError, encoded("a", ""));
    QVERIFY_THROWS_EXCEPTION(DataError, encoded("a", "b"));  // "ab" is one token
  }

  /// One that has a token of its own for it puts that before an empty context, and before every context where that is asked for.
  void texts_begin_as_the_tokenizer_says() {
    using Tokens = std::vector<int32_t>;
    struct Beginning : Words {
      using Words::Words;
      int32_t begin_of_text() const override { return 1; }
    };
    const Beginning words({"a", "<s>", " b"});
    QCOMPARE(encode_request(words, {"", "a", "a"}, Prefix::none, 0).tokens, (Tokens{1, 0}));
    QCOMPARE(encode_request(words, {"a", " b", "b"}, Prefix::none, 0).tokens, (Tokens{0, 2}));
    QCOMPARE(encode_request(words, {"a", " b", "b"}, Prefix::begin, 0).tokens, (Tokens{1, 0, 2}));
    QCOMPARE(encode_request(words, {"", "a", "a"}, Prefix::end_of_text, 0).tokens, (Tokens{3, 0}));
    for (const Prefix prefix : {Prefix::none, Prefix::begin, Prefix::end_of_text}) QVERIFY(parse_prefix(to_string(prefix)) == prefix);
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_prefix("bos"));
  }

  void the_beginning_is_cut_off() {
    EncodedRequest r = encoded("a a a", " b b", 3);
    QCOMPARE(r.tokens, (std::vector<int32_t>{4, 4, 5, 5}));
    QVERIFY(r.cut);
    QCOMPARE(r.scored, int64_t{2});
    r = encoded("a", " b b", 1);
    QCOMPARE(r.tokens, (std::vector<int32_t>{5, 5}));
    QCOMPARE(r.scored, int64_t{1});
    QVERIFY(!encoded("a a", " b", 2).cut);
  }

  /// Any mixture of lengths in a batch, and each alone: what the table says.
  void log_likelihoods_are_those_of_a_pencil() {
    Arena arena(Device::cpu());
    const Bigrams model(arena, {{0.5, 0.25, 0.25}, {0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}});
    const std::vector<EncodedRequest> requests{
        {{0, 1, 2}, 2, false}, {{2, 2, 0, 1}, 1, false}, {{1, 0}, 1, false}, {std::vector<int32_t>(70, 0), 69, false}};
    const std::vector<double> expected{std::log(0.25) + std::log(0.7), std::log(0.25), std::log(0.1), 69 * std::log(0.5)};
    for (const int64_t piece : {1, 64, 4096})
      for (const Batching batching : {Batching::padded, Batching::equal}) {
        EvaluationPass pass(
            model, arena, [](Tape&) {}, piece);
        std::vector<double> got(requests.size(), NAN);
        const std::vector<size_t> all{0, 1, 2, 3};
        score_requests(pass, requests, all, {batching}, [&](const std::vector<ScoredRequest>& batch) {
          for (const ScoredRequest& s : batch) got[s.request] = s.log_likelihood;
          return true;
        });
        for (size_t i = 0; i < expected.size(); ++i)
          QVERIFY2(std::abs(got[i] - expected[i]) < 1e-9, qPrintable(QString("%1: %2").arg(i).arg(got[i])));
      }
  }

  /// The likeliest behind 0 is 0, behind 1 it is 2, behind 2 it is 2; a tie goes to the first.
  void greedy_is_what_would_be_written() {
    Arena arena(Device::cpu());
    const Bigrams model(arena, {{0.5, 0.25, 0.25}, {0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}});
    const std::vector<EncodedRequest> requests{
        {{0, 0, 0}, 2, false}, {{0, 0, 1}, 2, false}, {{0, 1, 2, 2}, 2, false}, {{1, 2, 0}, 1, false}};
    for (const int64_t piece : {1, 4096}) {
      EvaluationPass pass(
          model, arena, [](Tape&) {}, piece);
      std::vector<bool> got(requests.size());
      score_requests(pass, requests, std::vector<size_t>{0, 1, 2, 3}, {.greedy = true}, [&](const std::vector<ScoredRequest>& batch) {
        for (const ScoredRequest& s : batch) got[s.request] = s.greedy;
        return true;
      });
      QCOMPARE(got, (std::vector<bool>{true, false, true, false}));
    }
    Arena other(Device::cpu());
    const Bigrams ties(other, {{0.4, 0.4, 0.2}, {0.4, 0.2, 0.4}, {0.2, 0.4, 0.4}});
    EvaluationPass pass(
        ties, other, [](Tape&) {}, 64);
    const std::vector<int32_t> tokens{0, 1, 2, 2}, targets{0, 2, kNoTarget, 1};
    const TokenScores scores = pass.token_scores(tokens.data(), targets.data(), 1, 4, true);
    QCOMPARE(scores.right, (std::vector<bool>{true, false, false, true}));
    QCOMPARE(scores.losses, pass.token_scores(tokens.data(), targets.data(), 1, 4, false).losses);
    QCOMPARE(scores.losses[2], 0.0);
  }

  void answers_are_compared() {
    QVERIFY(contains_answer(" The Value is x.", "value IS"));
    QVERIFY(!contains_answer("valu", "value"));
    QVERIFY(contains_answer("l’ÉCOLE de Żory", "école DE żory") && !contains_answer("ecole", "école"));
    QVERIFY(is_answer("\u00a0école\u2003\n", "école"));
    QVERIFY(is_answer(" 123\n", "123") && !is_answer("1234", "123") && !is_answer("", "1"));
    Task task;
    task.metric = "contains";
    const std::vector<TaskScore> scores =
        answer_scores(task, {{"", "", 1, "depth 20 %"}, {"", "", 0, "depth 10 %"}, {"", "", 0, "depth 20 %"}, {"", "", 1, "depth 20 %"}});
    QCOMPARE(scores.size(), size_t{3});
    QCOMPARE(scores[0].value, 0.5);
    QCOMPARE(scores[1].metric, std::string("contains depth 10 %"));
    QCOMPARE(scores[2].value, 2.0 / 3);
  }

  /// What reads the value that stands behind the key, or behind the words, that the prompt ends with is right throughout; what says nothing
  /// is never right, and what says the value of another sample neither.
  void an_oracle_reads_every_needle() {
    static const QRegularExpression key("special magic (?:number|uuid) for (\\S+) mentioned in the provided text is$"),
        pass_key("\nThe pass key is (\\d+)\n");
    const auto read = [](const QString& prompt) {
      const auto asked = key.match(prompt);
      if (!asked.hasMatch()) return pass_key.match(prompt).captured(1).toStdString();
      const QRegularExpression needle(" for " + asked.captured(1) + " is: (\\S+)\\.\\s");
      return " It is " + needle.match(prompt).captured(1).toUpper().toStdString() + ", of course.";
    };
    std::string essay;
    for (int i = 0; i < 200; ++i) essay += "Sentence " + std::to_string(i) + " says nothing of it. ";
    const auto tokenizer = make_byte_tokenizer();
    for (const char* id : {"s-niah-1", "s-niah-2", "s-niah-3", "passkey"}) {
      Task task = find_task(id);
      task.length = 2048;
      const TaskItems items = generate_task_items(task, *tokenizer, essay, {});
      QCOMPARE(items.items.size(), std::string(id) == "passkey" ? size_t{45} : size_t{500});
      double oracle = 0, silent = 0, other = 0;
      for (const TaskItem& item : items.items) {
        oracle += answer_is_right(task, read(QString::fromStdString(item.requests.front().context)), item.target);
        silent += answer_is_right(task, "", item.target);
        other += answer_is_right(task, items.items[&item == &items.items[0] ? 1 : 0].target, item.target);
      }
      QCOMPARE(oracle, static_cast<double>(items.items.size()));
      QVERIFY(silent == 0 && other == 0);
    }
  }

  void accuracy_by_characters_and_bytes() {
    const TaskItem item{{{"", "", "aaaa"}, {"", "", "\xC3\xA9\xC3\xA9"}, {"", "", "bb"}}, 1, ""};
    const ItemScore score = score_item(item, {-4.0, -3.0, -3.0});  // of a character: −1, −1.5, −1.5; of a byte: −1, −0.75, −1.5
    QCOMPARE(score.chosen, size_t{1});                             // a tie: the first
    QCOMPARE(score.chosen_norm, size_t{0});
    QCOMPARE(score.chosen_bytes, size_t{1});
    QCOMPARE(characters("\xC3\xA9\xE2\x82\xAC"
                        "a"),
             int64_t{3});
  }

  void scores_have_their_errors_and_groups() {
    Task task;
    task.metric = "acc";
    task.group_names = {{"x", "both"}, {"y", "both"}};
    const auto item = [](bool right, const std::string& group) { return ItemScore{{}, right ? 1UL : 0UL, 0, 0, 1, group}; };
    const std::vector<TaskScore> scores = task_scores(task, {item(true, "x"), item(true, "x"), item(false, "y"), item(true, "y")});
    QCOMPARE(scores[0].metric, std::string("acc"));
    QCOMPARE(scores[0].value, 0.75);
    QVERIFY(std::abs(scores[0].standard_error - 0.25) < 1e-12);  // deviation 0.5, four items
    QCOMPARE(scores.size(), size_t{6});
    QCOMPARE(scores[3].metric, std::string("acc x"));
    QCOMPARE(scores[3].value, 1.0);
    QCOMPARE(scores[5].metric, std::string("acc both"));
    QCOMPARE(scores[5].items, int64_t{4});
  }

  void chance() {
    const auto item = [](const std::vector<std::string>& choices, size_t gold) {
      TaskItem i;
      for (const std::string& c : choices) i.requests.push_back({"", " " + c, c});
      i.gold = gold;
      return i;
    };
    QCOMPARE(chance_level({item({"A", "B"}, 1), item({"A", "B"}, 1), item({"A", "B"}, 1)}), 0.5);  // letters are no classes, as of MMLU
    QCOMPARE(chance_level({item({"a", "b"}, 0), item({"c", "d", "e", "f"}, 0)}), 3.0 / 8);
    QCOMPARE(chance_level({item({"prompt"}, 0)}), 0.0);
    for (const Task& task : shipped_tasks()) QCOMPARE(task.chance_of_majority, task.name == "boolq");
  }

  /// The example of arXiv:2506.11305, appendix L: three checkpoints, whose averages of the tasks are given.
  void means_over_checkpoints() {
    std::vector<TaskResult> results;
    for (const auto& [step, average] : {std::pair<int64_t, double>{100, 0.42741}, {90, 0.42166}, {95, 0.42056}})
      for (const double beside : {-0.1, 0.1}) {
        TaskResult result;
        result.task = beside < 0 ? "low" : "high", result.metric = "acc", result.step = step;
        result.scores = {{"acc", average + beside, 0.01, 100}};
        results.push_back(result);
      }
    const auto averages = task_averages(results);
    QCOMPARE(averages.size(), size_t{3});
    QVERIFY(averages[0].first == 90 && std::abs(averages[0].second - 0.42166) < 1e-12);
    const std::vector<CheckpointMean> means = checkpoint_means(results);
    QCOMPARE(means.size(), size_t{3});
    QVERIFY(means[0].task == "low" && means[1].task == "high" && means[2].task.empty());
    QVERIFY(std::abs(means[0].mean - 0.32321) < 1e-6 && std::abs(means[1].mean - 0.52321) < 1e-6);
    const CheckpointMean& all = means[2];
    QCOMPARE(all.checkpoints, int64_t{3});
    QVERIFY(std::abs(all.mean - 0.42321) < 1e-6 && std::abs(*all.deviation - 0.00368) < 1e-5);
    QVERIFY(std::abs(*all.standard_error - 0.00213) < 1e-5);
    QVERIFY(std::abs(all.interval_95->first - 0.4141) < 1e-4 && std::abs(all.interval_95->second - 0.4324) < 1e-4);
    results.resize(2);
    QVERIFY(!checkpoint_means(results)[2].deviation && !checkpoint_means(results)[2].interval_95);
  }

  /// A run answers prompts: greedy, token by token, until a line ends; stopped and taken up; in journal and results.h5.
  void a_run_answers_by_generation() {
    const fs::path run = folder_.filePath("writer").toStdString(), data = folder_.filePath("swde.jsonl").toStdString();
    QCOMPARE(work_on(run, tiny_config()).state, RunState::finished);
    {
      std::ofstream rows(data);
      for (int i = 0; i < 6; ++i)
        rows << nlohmann::json{{"text", "the cat sat on " + std::to_string(i) + " \n"}, {"value", i == 3 ? "Q" : "t"}}.dump() << "\n";
    }
    std::atomic<bool> stop = false;
    TaskRunOptions options;
    options.data = data;
    const Task swde = find_task("swde");
    QCOMPARE(swde.max_tokens, int64_t{48});
    const TaskResult part = evaluate_task(run, swde, options, {{}, [&](double) { stop = true; }}, stop);
    QVERIFY(!part.is_whole());
    stop = false;
    const TaskResult result = evaluate_task(run, swde, options, {}, stop);
    QCOMPARE(result.answers.size(), size_t{6});
    LoadedModel loaded = load_model(run);
    const int64_t vocabulary = loaded.tokenizer->vocabulary();
    for (size_t i = 0; i < 6; ++i) {
      // The same again from whole forward passes.
      std::vector<int32_t> text = loaded.tokenizer->encode("the cat sat on " + std::to_string(i));
      std::string written;
      for (int n = 0; n < 48; ++n) {
        Tape tape(loaded.model->arena(), false);
        const Tensor tokens = loaded.model->arena().allocate({1, static_cast<int64_t>(text.size())}, DType::i32);
        copy_from_host(tokens, text.data());
        const std::vector<double> logits = to_doubles(loaded.model->model().logits(tape, tokens));
        const auto last = logits.end() - vocabulary;
        const auto next = static_cast<int32_t>(std::max_element(last, logits.end()) - last);
        if (next == loaded.tokenizer->end_of_text() || next == '\n') break;
        text.push_back(next), written += static_cast<char>(next);
      }
      QCOMPARE(result.answers[i].answer, written);
      QCOMPARE(result.answers[i].right, double(contains_answer(written, i == 3 ? "Q" : "t")));
    }
    const RunHistory history = recorded_history(run);
    QCOMPARE(history.task_scores().size(), size_t{1});
    QCOMPARE(history.task_scores()[0].task, std::string("swde"));
    QCOMPARE(history.task_scores()[0].scores.at(0).value, result.score().value);
    const h5::Reader file(run / "results.h5");
    const h5::Group group = file.root().open("run/evaluation/swde");
    QCOMPARE(group.read<double>("contains"), std::vector<double>{result.score().value});
    QCOMPARE(group.read<double>("step"), std::vector<double>{12});
    const h5::Group items = group.open("items/step-12");
    std::vector<double> right, tokens;
    std::vector<std::string> answers;
    for (const AnswerScore& a : result.answers)
      right.push_back(a.right), tokens.push_back(static_cast<double>(a.prompt_tokens)), answers.push_back(a.answer);
    QCOMPARE(items.read<double>("right"), right);
    QCOMPARE(items.read<double>("prompt_tokens"), tokens);
    QCOMPARE(items.read_texts("answer"), answers);
    QVERIFY(Run(run).damage().empty());
    QVERIFY(results_file_is_current(read_run_info(run)));
  }

  /// What each choice of each item got, as results.h5 has it.
  static void items_are_in_results(const fs::path& run, const TaskResult& result) {
    const h5::Reader file(run / "results.h5");
    const h5::Group group = file.root().open("run/evaluation/mine/items/step-12");
    QCOMPARE(group.dims("log_likelihoods"), (h5::Dims{40, 3}));
    const std::vector<double> found = group.read<double>("log_likelihoods"), characters = group.read<double>("characters"),
                              tokens = group.read<double>("tokens"), chosen = group.read<double>("chosen_norm"),
                              gold = group.read<double>("gold"), right = group.read<double>("right");
    double sum = 0;
    for (size_t i = 0; i < 40; ++i) {
      for (size_t c = 0; c < 3; ++c) QCOMPARE(found[3 * i + c], result.items[i].log_likelihoods[c]);
      QVERIFY(characters[3 * i] == 7 && characters[3 * i + 2] == 3);  // "cat sat", "mat"
      QVERIFY(tokens[3 * i] == (i % 7 == 0 ? 9 : 8));                 // bytes, with the space, and the one that an empty "a" leaves
      QCOMPARE(chosen[i], static_cast<double>(result.items[i].chosen_norm));
      QCOMPARE(right[i], chosen[i] == gold[i] ? 1.0 : 0.0);
      sum += right[i] / 40;
    }
    QVERIFY(std::abs(sum - result.score().value) < 1e-12);
  }

  /// A real run: scored whole, in parts after a stop, and read again.
  void a_run_is_scored_once() {
    const fs::path run = folder_.filePath("run").toStdString(), data = folder_.filePath("facts.jsonl").toStdString(),
                   file = folder_.filePath("mine.json").toStdString();
    QCOMPARE(work_on(run, tiny_config()).state, RunState::finished);
    std::ofstream(file)
        << R"({"name": "mine", "context": "the {a}", "choices": ["cat sat", "moon {b}", "mat"], "gold": "{g}", "metric": "acc_norm"})";
    {
      std::ofstream rows(data);
      for (int i = 0; i < 40; ++i)
        rows << nlohmann::json{{"a", std::string(static_cast<size_t>(i) % 7, 'x')}, {"b", i}, {"g", i % 3}}.dump() << "\n";
    }
    const Task mine = find_task(file.string());
    TaskRunOptions options;
    options.data = data;
    std::atomic<bool> stop = false;
    const TaskResult whole = evaluate_task(run, mine, options, {}, stop);
    QCOMPARE(whole.items.size(), size_t{40});
    QVERIFY(!whole.cached && whole.score().metric == "acc_norm" && std::isfinite(whole.score().standard_error));
    const TaskResult known = evaluate_task(run, mine, options, {}, stop);
    QVERIFY(known.cached);
    QCOMPARE(to_json(known), to_json(whole));
    QCOMPARE(read_task_results(run).size(), size_t{1});
    items_are_in_results(run, whole);

    // Stopped after its first batch, then to the end: the same bytes.
    TaskRunOptions again = options;
    again.again = true;
    int batches = 0;
    std::string said;
    const TaskResult part = evaluate_task(run, mine, again, {{}, [&](double) { stop = true, ++batches; }}, stop);
    QVERIFY(part.items.empty());
    QCOMPARE(batches, 1);
    stop = false;
    const TaskResult rest = evaluate_task(run, mine, again, {[&](const std::string& line) { said = line; }, {}}, stop);
    QVERIFY2(said.starts_with("goes on: "), said.c_str());
    QCOMPARE(to_json(rest), to_json(whole));

    // Fewer items, and a shorter input, are results beside it, none of which takes its place.
    TaskRunOptions few = options, brief = options;
    few.items.limit = 1, brief.max_length = 8;
    const TaskResult one = evaluate_task(run, mine, few, {}, stop);
    QVERIFY(one.partial && one.limit == 1 && one.options == "limit-1");
    QCOMPARE(evaluate_task(run, mine, brief, {}, stop).options, std::string("max-length-8"));
    QVERIFY(evaluate_task(run, mine, options, {}, stop).cached && evaluate_task(run, mine, few, {}, stop).cached);
    QVERIFY(fs::exists(run / "tasks" / "mine-step-12.json") && fs::exists(run / "tasks" / "mine-step-12-limit-1.json"));
    QCOMPARE(read_task_results(run).size(), size_t{3});
    QCOMPARE(to_json(read_task_result(run, "mine", 12)), to_json(whole));
    QCOMPARE(recorded_history(run).task_scores().size(), size_t{3});
    QCOMPARE(Run(run).task_scores().size(), size_t{1});
    QVERIFY(!Run(run).task_scores()[0].partial && Run(run).task_scores()[0].scores[0].items == 40);
    few.items.limit = 40;  // leaves nothing out
    QVERIFY(evaluate_task(run, mine, few, {}, stop).cached);

    // An item all three choices of which are cut is one that was cut.
    TaskRunOptions shortest = options;
    shortest.max_length = 2;
    QCOMPARE(evaluate_task(run, mine, shortest, {}, stop).cut, int64_t{40});

    // Other data is another result.
    std::ofstream(data, std::ios::app) << R"({"a": "y", "b": 1, "g": 0})"
                                       << "\n";
    const TaskResult more = evaluate_task(run, mine, options, {}, stop);
    QVERIFY(!more.cached);
    QCOMPARE(more.items.size(), size_t{41});
  }

 private:
  TinyCorpus corpus_;
  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TaskScoringTest)
#include "task_scoring_test.moc"
