#include "analysis/tasks/task_items.h"

#include <sys/stat.h>

#include <QtTest>
#include <fstream>
#include <set>

#include "analysis/tasks/task_forms.h"
#include "kernels/engine/error.h"
#include "models/corpus/parquet_rows.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;
using nlohmann::json;

/// Prompts and continuations of every task, byte for byte. What the evaluation harness makes of these rows is written out by hand from its
/// published rules.
class TaskItemsTest : public QObject {
  Q_OBJECT

  struct Expected {
    std::vector<TaskRequest> requests;
    size_t gold;
  };
  QTemporaryDir folder_;

  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path file = fs::path(folder_.path().toStdString()) / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  static std::vector<TaskRequest> of(const std::string& context, const std::vector<std::string>& choices,
                                     const std::string& delimiter = " ") {
    std::vector<TaskRequest> requests;
    for (const std::string& choice : choices) requests.push_back({context, delimiter + choice, choice});
    return requests;
  }
  static QByteArray shown(const TaskItem& item) {
    QByteArray text;
    for (const TaskRequest& r : item.requests)
      text += "[" + QByteArray::fromStdString(r.context) + "][" + QByteArray::fromStdString(r.continuation) + "][" +
              QByteArray::fromStdString(r.choice) + "] ";
    return text + QByteArray::number(static_cast<qulonglong>(item.gold));
  }
  void compare(const std::string& task, const json& row, const Expected& expected) const {
    const fs::path data = write("row.jsonl", row.dump() + "\n");
    const TaskItems read = read_task_items(find_task(task), data, {.shots = 0});
    QCOMPARE(read.items.size(), size_t{1});
    QVERIFY2(read.items[0].requests == expected.requests && read.items[0].gold == expected.gold, shown(read.items[0]));
  }

 private Q_SLOTS:
  /// The file that ARC is published as: in a folder beside nothing else, and by its own name.
  void parquet() {
    const fs::path folder = fs::path(folder_.path().toStdString()) / "arc", made = folder / "ARC-Easy-Test.parquet";
    fs::create_directories(folder);
    fs::copy_file(fs::path(qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString()) / "tests/fixtures/parquet/arc.parquet", made);
    for (const fs::path& data : {folder, made}) try {
        const TaskItems read = read_task_items(find_task("arc-easy"), data, {});
        QVERIFY(reads_parquet());
        QVERIFY(read.items.at(0).requests == of("Question: What melts?\nAnswer:", {"Ice", "Stone", "Glass"}));
        QCOMPARE(read.items.at(0).gold, size_t{0});
      } catch (const DataError& error) {
        QVERIFY2(!reads_parquet() && std::string(error.what()).find("python3 -c") != std::string::npos, error.what());
      }
  }

  /// SWDE, SQuAD and FDA: context and value trimmed, unless they are not to be.
  void recall_from_documents() {
    for (const char* task : {"swde", "squad_completion", "fda"}) {
      const fs::path data = write("row.jsonl", json{{"text", "Page.\nName: "}, {"value", " Ada "}, {"key", "Name"}}.dump() + "\n");
      TaskItems read = read_task_items(find_task(task), data, {});
      QCOMPARE(read.items[0].requests.front().context, std::string("Page.\nName:"));
      QCOMPARE(read.items[0].target, std::string("Ada"));
      QCOMPARE(read.items[0].max_tokens, int64_t{48});
      read = read_task_items(find_task(task), data, {.trim = false});
      QCOMPARE(read.items[0].requests.front().context, std::string("Page.\nName: "));
      QCOMPARE(read.items[0].target, std::string(" Ada "));
      QVERIFY_THROWS_EXCEPTION(DataError, read_task_items(find_task(task), write("row.jsonl", "{\"text\": \"a\"}\n"), {}));
      QVERIFY_THROWS_EXCEPTION(DataError,
                               read_task_items(find_task(task), write("row.jsonl", "{\"text\": \"a\", \"value\": \" \"}\n"), {}));
    }
  }

  void comma_separated_values() {
    const std::string task = R"({"name": "mine", "context": "{q}", "choices": ["{a}", "{b}"], "gold": "{right}", "files": "mine.csv"})";
    const Task mine = find_task(write("mine.json", task).string());
    try {
      const TaskItems read =
          read_task_items(mine, write("mine.csv", "q,a,b,right\n\"He said \"\"no\"\",\nthen\",x,\"y, z\",1\nq2,u,v,0\n"), {});
      QCOMPARE(read.items.size(), size_t{2});
      QVERIFY(read.items[0].requests == of("He said \"no\",\nthen", {"x", "y, z"}));
      QCOMPARE(read.items[0].gold, size_t{1});
    } catch (const DataError& error) {
      if (std::string(error.what()).find("built without libcsv") == std::string::npos) throw;
      QSKIP("built without libcsv");
    }
    Task tabs = mine;
    tabs.columns = {"q", "a", "b", "right"};
    QCOMPARE(read_task_items(tabs, write("mine.tsv", "q1\tx\ty\t0\n"), {}).items.size(), size_t{1});
    for (const char* bad : {"q,a,b,right\nonly,three,fields\n", "q,a,b,right\n\"open,x,y,1\n", "q,a\nx,y\n", "q,a,b,right\n"})
      QVERIFY_THROWS_EXCEPTION(DataError, read_task_items(mine, write("mine.csv", bad), {}));
  }

  void arc() {
    const Expected expected{of("Question: What melts?\nAnswer:", {"ice", "stone", "ash"}), 1};
    for (const char* task : {"arc-easy", "arc_challenge"}) {
      compare(
          task,
          {{"question", "What melts?"}, {"choices", {{"text", {"ice", "stone", "ash"}}, {"label", {"A", "B", "C"}}}}, {"answerKey", "B"}},
          expected);
      compare(
          task,
          {{"question", "What melts?"}, {"choices", {{"text", {"ice", "stone", "ash"}}, {"label", {"1", "2", "3"}}}}, {"answerKey", "2"}},
          expected);
      compare(task,
              {{"question",
                {{"stem", "What melts?"},
                 {"choices", {{{"text", "ice"}, {"label", "A"}}, {{"text", "stone"}, {"label", "B"}}, {{"text", "ash"}, {"label", "C"}}}}}},
               {"answerKey", "B"}},
              expected);
    }
  }

  void openbookqa() {
    compare("openbookqa",
            {{"question_stem", "The sun is"}, {"choices", {{"text", {"hot", "cold"}}, {"label", {"A", "B"}}}}, {"answerKey", "A "}},
            {of("The sun is", {"hot", "cold"}), 0});
    compare("openbookqa",
            {{"question", {{"stem", "The sun is"}, {"choices", {{{"text", "hot"}, {"label", "A"}}, {{"text", "cold"}, {"label", "B"}}}}}},
             {"answerKey", "B"}},
            {of("The sun is", {"hot", "cold"}), 1});
  }

  void hellaswag() {
    compare("hellaswag",
            {{"activity_label", "Baking"},
             {"ctx_a", "A man [substeps] stands.  He smiles."},
             {"ctx_b", "the Dough"},
             {"endings", {" rises [title] well", "falls  flat", "a", "b"}},
             {"label", "1"}},
            {of("Baking: A man stands. He smiles. The dough", {"rises. well", "falls flat", "a", "b"}), 1});
    compare("hellaswag",
            {{"activity_label", "Cuisine"}, {"ctx_a", "On voit."}, {"ctx_b", "éCLAIRS À LA CRÈME"}, {"endings", {"a", "b"}}, {"label", 0}},
            {of("Cuisine: On voit. Éclairs à la crème", {"a", "b"}), 0});
    QCOMPARE(clean_hellaswag(" [header] How [title] To   go [step] on "), std::string(" How. To  go on"));
  }

  void piqa() {
    const json row{{"goal", "Open a jar"}, {"sol1", "twist"}, {"sol2", "sing"}};
    json labelled = row;
    labelled["label"] = 1;
    compare("piqa", labelled, {of("Question: Open a jar\nAnswer:", {"twist", "sing"}), 1});
    write("valid-labels.lst", "1\n");
    compare("piqa", row, {of("Question: Open a jar\nAnswer:", {"twist", "sing"}), 1});
    write("valid-labels.lst", "1\n0\n");
    write("row.jsonl", row.dump() + "\n");
    QVERIFY_THROWS_EXCEPTION(DataError, read_task_items(find_task("piqa"), folder_.filePath("row.jsonl").toStdString()));
  }

  void siqa() {
    compare("siqa",
            {{"context", "Kai fell."},
             {"question", "How is Kai?"},
             {"answerA", "sore"},
             {"answerB", "rich"},
             {"answerC", "tall"},
             {"label", "1"}},
            {of("Q: Kai fell. How is Kai?\nA:", {"sore", "rich", "tall"}), 0});
  }

  void winogrande() {
    const std::string rest = "was too big.";
    compare(
        "winogrande",
        {{"sentence", "The cup did not fit the bag as the _ was too big."}, {"option1", "cup"}, {"option2", "bag"}, {"answer", "1"}},
        {{{"The cup did not fit the bag as the cup", " " + rest, rest}, {"The cup did not fit the bag as the bag", " " + rest, rest}}, 0});
  }

  void wsc273() {
    const json row{{"text", "Paul called.  Then he was out."},
                   {"pronoun", "he"},
                   {"pronoun_loc", 18},
                   {"options", {"Paul", "The boss"}},
                   {"label", 1}};
    const std::string rest = " was out.";
    compare("wsc273", row, {{{"Paul called. Then Paul", " " + rest, rest}, {"Paul called. Then the boss", " " + rest, rest}}, 1});
    json possessive = row;
    possessive["text"] = "It broke. His hat fell.";
    possessive["pronoun"] = "His";
    possessive["pronoun_loc"] = 10;
    const std::string hat = " hat fell.";
    compare("wsc273", possessive, {{{"It broke. Paul's", " " + hat, hat}, {"It broke. The boss's", " " + hat, hat}}, 1});
    json accented = row;  // places are of characters, not of bytes
    accented["text"] = "José met Zoë. Then he was out.";
    accented["pronoun_loc"] = 19;
    compare("wsc273", accented, {{{"José met Zoë. Then Paul", " " + rest, rest}, {"José met Zoë. Then the boss", " " + rest, rest}}, 1});
    accented["text"] = "“He left Zoë. He was out.";
    accented["pronoun"] = "He", accented["pronoun_loc"] = 14;
    compare("wsc273", accented, {{{"“He left Zoë. Paul", " " + rest, rest}, {"“He left Zoë. The boss", " " + rest, rest}}, 1});
    write("row.jsonl", row.dump() + "\n");
    const TaskItems strict = read_task_items(find_task("wsc273"), folder_.filePath("row.jsonl").toStdString(), {.strict_spaces = true});
    QCOMPARE(strict.items[0].requests[0].continuation, rest);
  }

  void boolq() {
    const Expected expected{of("Cats purr.\nQuestion: do cats purr?\nAnswer:", {"no", "yes"}), 1};
    for (const json& label : {json(1), json("1"), json(true)})
      compare("boolq", {{"passage", "Cats purr."}, {"question", "do cats purr"}, {"label", label}}, expected);
    compare("boolq", {{"passage", "Cats purr."}, {"question", "do cats purr"}, {"answer", true}}, expected);
    // Guessing says what is most frequent in the file, however few of its items are scored.
    std::string rows;
    for (const bool answer : {false, true, true, true}) rows += json{{"passage", "p"}, {"question", "q"}, {"answer", answer}}.dump() + "\n";
    const fs::path data = write("boolq.jsonl", rows);
    QCOMPARE(read_task_items(find_task("boolq"), data).chance, 0.75);
    const TaskItems one = read_task_items(find_task("boolq"), data, {.limit = 1});
    QVERIFY(one.chance == 0.75 && one.items.size() == 1 && one.there == 4);
  }

  void race() {
    const Expected expected{of("Article: A.\n\nThe cat sat on mats.\nQuestion: Who?\nAnswer: Ann\nWhy?", {"a", "b", "c", "d"}), 3};
    compare("race",
            {{"article", "A."},
             {"questions", {"The cat sat on  _  .", "Who?", "Why?"}},
             {"options", {{"mats.", "x", "y", "z"}, {"Al", "Ann", "y", "z"}, {"a", "b", "c", "d"}}},
             {"answers", {"A", "B", "D"}}},
            expected);
    compare("race",
            {{"article", "A."},
             {"problems",
              {{{"question", "The cat sat on  _  ."}, {"options", {"mats.", "x", "y", "z"}}, {"answer", "A"}},
               {{"question", "Who?"}, {"options", {"Al", "Ann", "y", "z"}}, {"answer", "B"}},
               {{"question", "Why?"}, {"options", {"a", "b", "c", "d"}}, {"answer", "D"}}}}},
            expected);
  }

  void sciq() {
    compare("sciq",
            {{"support", " \n Ice floats."},
             {"question", "What floats?"},
             {"distractor1", "iron"},
             {"distractor2", "lead"},
             {"distractor3", "gold"},
             {"correct_answer", "ice"}},
            {of("Ice floats.\nQuestion: What floats?\nAnswer:", {"iron", "lead", "gold", "ice"}), 3});
  }

  void copa() {
    const json row{
        {"premise", "The man fell. "}, {"choice1", "He tripped."}, {"choice2", "It rained."}, {"question", "cause"}, {"label", 0}};
    compare("copa", row, {of("The man fell because", {" he tripped.", " it rained."}), 0});
    json foreign = row;  // letters and blanks that are not ASCII
    foreign["premise"] = "Élodie tomba…\u00a0";
    foreign["choice1"] = "Était-ce Ali?";
    compare("copa", foreign, {of("Élodie tomba because", {" était-ce Ali?", " it rained."}), 0});
    json effect = row;
    effect["question"] = "effect";
    compare("copa", effect, {of("The man fell therefore", {" he tripped.", " it rained."}), 0});
  }

  void mmlu_with_its_examples() {
    const auto row = [](const std::string& question, int answer) {
      return json{{"question", question}, {"subject", "high_school_physics"}, {"choices", {"w", "x", "y", "z"}}, {"answer", answer}}
                 .dump() +
             "\n";
    };
    write("mmlu.jsonl", row(" Why? ", 2));
    write("mmlu-dev.jsonl", row("One?", 0) + row("Two?", 3) + row("Three?", 1));
    const TaskItems read = read_task_items(find_task("mmlu"), folder_.path().toStdString(), {.shots = 2});
    const auto question = [](const std::string& text) { return text + "\nA. w\nB. x\nC. y\nD. z\nAnswer:"; };
    const std::string context = "The following are multiple choice questions (with answers) about high school physics.\n\n" +
                                question("One?") + " A\n\n" + question("Two?") + " D\n\n" + question("Why?");
    QVERIFY2(read.items[0].requests == of(context, {"A", "B", "C", "D"}) && read.items[0].gold == 2, shown(read.items[0]));
    QCOMPARE(read.items[0].group, std::string("high_school_physics"));
    QVERIFY_THROWS_EXCEPTION(DataError, read_task_items(find_task("mmlu"), folder_.path().toStdString()));  // five are wanted, three there
  }

  /// A file for each subject, as the authors publish them: by their folder, by its folder "test", and one by itself.
  void mmlu_by_subjects() {
    const fs::path folder = fs::path(folder_.path().toStdString()) / "authors";
    fs::create_directories(folder / "test"), fs::create_directories(folder / "dev");
    const auto put = [&](const char* split, const std::string& subject, const std::string& rows) {
      write("authors/" + std::string(split) + "/" + subject + "_" + split + ".csv", rows);
    };
    put("test", "world_religions", "Why?,w,x,y,z,C\n");
    put("test", "anatomy", "\"Bones, \"\"long\"\" ones?\",1,2,3,4,A\n Hands? ,5,6,7,8,D\n");
    put("dev", "anatomy", "Teeth?,1,2,3,4,B\nNails?,1,2,3,4,C\n");
    put("dev", "world_religions", "When?,w,x,y,z,D\n");
    const auto read = [&](const fs::path& data, int64_t shots = 1) { return read_task_items(find_task("mmlu"), data, {.shots = shots}); };
    try {
      read(folder);
    } catch (const DataError& error) {
      if (std::string(error.what()).find("built without libcsv") == std::string::npos) throw;
      QSKIP("built without libcsv");
    }
    const auto header = [](const std::string& subject) {
      return "The following are multiple choice questions (with answers) about " + subject + ".\n\n";
    };
    for (const fs::path& data : {folder, folder / "test", folder / "test/", folder / "test" / "anatomy_test.csv"}) {
      const TaskItems items = read(data);
      QCOMPARE(items.items.size(), data.extension() == ".csv" ? size_t{2} : size_t{3});
      QVERIFY2(items.items[0].requests == of(header("anatomy") + "Teeth?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: B\n\n" +
                                                 "Bones, \"long\" ones?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:",
                                             {"A", "B", "C", "D"}) &&
                   items.items[0].gold == 0 && items.items[1].gold == 3,
               shown(items.items[0]));
      QCOMPARE(items.items[1].group, std::string("anatomy"));
      QCOMPARE(items.file, data);
    }
    QCOMPARE(read(folder, 0).items[2].requests[0].context, header("world religions") + "Why?\nA. w\nB. x\nC. y\nD. z\nAnswer:");
    QVERIFY_THROWS_EXCEPTION(DataError, read(folder, 2));  // of one subject there is one example
    fs::remove_all(folder / "dev");
    QVERIFY_THROWS_EXCEPTION(DataError, read(folder));
    for (const char* bad : {"Why?,w,x,y,z,E\n", "Why?,w,x,y,C\n", "question,A,B,C,D,answer\n"}) {
      put("test", "anatomy", bad);
      try {
        read(folder, 0);
        QFAIL(bad);
      } catch (const DataError& error) {
        QVERIFY2(std::string(error.what()).find("anatomy_test.csv:1: ") != std::string::npos, error.what());
      }
    }
  }

  /// Examples are the first of the training split, under its own name or that of the public files, with labels in a file beside it.
  void every_task_with_a_training_split_has_examples() {
    for (const Task& task : shipped_tasks()) {
      const bool one_split = task.name == "wsc273" || task.kind == Task::Kind::generation;
      QVERIFY2(task.shots_files.empty() == one_split, task.name.c_str());
      if (!one_split && task.name != "mmlu") QCOMPARE(task.shots_files.front(), task.name + "-train.jsonl");
    }
    const auto row = [](const std::string& goal, json more = json::object()) {
      more.update({{"goal", goal}, {"sol1", "a"}, {"sol2", "b"}});
      return more.dump() + "\n";
    };
    const fs::path folder = fs::path(folder_.path().toStdString()) / "shots";
    fs::create_directories(folder);
    write("shots/valid.jsonl", row("last")), write("shots/valid-labels.lst", "0\n");
    const auto read = [&](int64_t shots) { return read_task_items(find_task("piqa"), folder, {.shots = shots}); };
    QVERIFY_THROWS_EXCEPTION(DataError, read(1));
    write("shots/train.jsonl", row("one") + row("two") + row("three")), write("shots/train-labels.lst", "1\n0\n1\n");
    const std::string first = "Question: one\nAnswer: b\n\n", second = "Question: two\nAnswer: a\n\n";
    QVERIFY(read(2).items[0].requests == of(first + second + "Question: last\nAnswer:", {"a", "b"}));
    QVERIFY(read(2).hash != read(1).hash && read(0).items[0].requests == of("Question: last\nAnswer:", {"a", "b"}));
    write("shots/train-labels.lst", "1\n0\n");
    QVERIFY_THROWS_EXCEPTION(DataError, read(1));
    write("shots/piqa-train.jsonl", row("own", {{"label", 1}}));
    QVERIFY(read(1).items[0].requests == of("Question: own\nAnswer: b\n\nQuestion: last\nAnswer:", {"a", "b"}));
    QVERIFY_THROWS_EXCEPTION(UsageError, read_task_items(find_task("wsc273"), write("shots/wsc273.jsonl", "{}"), {.shots = 1}));
  }

  void a_task_of_ones_own() {
    const fs::path file =
        write("mine.json", R"({"name": "mine", "data": "facts.jsonl", "context": "Q {q.text[1]}", "choices": ["{a}", "{b}"],
                                                 "gold": "{right}", "labels": ["first", "second"], "metric": "acc"})");
    const json row{{"q", {{"text", {"no", "yes"}}}}, {"a", 1}, {"b", true}, {"right", "second"}};
    write("facts.jsonl", row.dump() + "\n" + row.dump() + "\n");
    const Task mine = find_task(file.string());
    const TaskItems read = read_task_items(mine, folder_.path().toStdString(), {.limit = 1});
    QCOMPARE(read.items.size(), size_t{1});
    QVERIFY2(read.items[0].requests == of("Q yes", {"1", "true"}) && read.items[0].gold == 1, shown(read.items[0]));
    write("facts.jsonl", json::array({row, row, row}).dump());
    QCOMPARE(read_task_items(mine, folder_.path().toStdString()).items.size(), size_t{3});
    write("mine.json", R"({"name": "mine", "context": "a", "choices": ["b", "c"], "gold": "0", "metric": "acc_bytes"})");
    QCOMPARE(find_task(file.string()).metric, std::string("acc_bytes"));
    write("mine.json", R"({"name": "mine", "contxt": ""})");
    QVERIFY_THROWS_EXCEPTION(UsageError, find_task(file.string()));
  }

  /// What a file says decides neither over memory nor over time.
  void files_of_tasks_are_bounded() {
    const auto refusal = [&](const std::string& task, const fs::path& data) -> QByteArray {
      try {
        read_task_items(find_task(write("own.json", task).string()), data);
      } catch (const Error& error) {
        return error.what();
      }
      return "accepted";
    };
    const std::string task = R"({"name": "own", "context": "{q}", "choices": ["a", "b"], "gold": "{g}"})";
    QByteArray message = refusal(task, write("bytes.csv", "q,g\n\xff,0\n"));
    QVERIFY2(message.endsWith("bytes.csv:2: is not valid UTF-8"), message);
    message = refusal(task, write("wide.csv", std::string(1 << 20, ',') + "\n"));
    QVERIFY2(message.endsWith("wide.csv:1: has more than 65536 fields"), message);
    std::string rows = "q,g\n";
    for (size_t i = 0; i <= kMostTaskRows; ++i) rows += "x,0\n";
    message = refusal(task, write("many.csv", rows));
    QVERIFY2(message.endsWith("holds more than 1000000 items"), message);
    std::string array = "[{}";
    for (size_t i = 0; i <= kMostTaskRows; ++i) array += ",{}";
    message = refusal(task, write("many.json", array + "]"));
    QVERIFY2(message.endsWith("holds more than 1000000 items"), message);
    message = refusal(task, write("blank.jsonl", std::string(8 << 20, ' ')));
    QVERIFY2(!message.contains("accepted") && !message.contains('\n'), message);
    message = refusal(R"({"name": "own", "context": "{q[99999999999999999999]}", "choices": ["a", "b"], "gold": "{g}"})",
                      write("row.jsonl", R"({"q": ["x"], "g": 0})" + std::string("\n")));
    QVERIFY2(message.contains("expected a number of at most nine digits"), message);
    QCOMPARE(::mkfifo((folder_.path() + "/pipe.json").toUtf8(), 0600), 0);
    message = message_of<UsageError>([&] { find_task((folder_.path() + "/pipe.json").toStdString()); }).toUtf8();
    QVERIFY2(message.startsWith("cannot read"), message);
  }

  void every_shipped_task_says_where_its_file_comes_from() {
    const std::vector<Task> tasks = shipped_tasks();
    QCOMPARE(tasks.size(), size_t{20});
    QTemporaryDir empty;
    for (const Task& task : tasks) try {
        if (!task.generator.empty()) continue;  // of four no file is needed
        read_task_items(task, empty.path().toStdString());
        QFAIL("a file that is not there was read");
      } catch (const DataError& error) {
        const QByteArray message = error.what();
        QVERIFY2(message.contains(QByteArray::fromStdString(task.files.front())) && message.contains("huggingface.co"), message);
        QVERIFY(!message.contains('\n'));
      }
    QVERIFY_THROWS_EXCEPTION(UsageError, find_task("hellaswga"));
  }

  /// Of an array and of CSV too the line at which the row begins, blank lines and rows of several lines before it counted.
  void lines_of_rows() {
    const std::string task = R"({"name": "own", "context": "{q}", "choices": ["a", "b"], "gold": "{g}"})";
    const Task own = find_task(write("own.json", task).string());
    const auto refusal = [&](const std::string& name, const std::string& text) {
      return message_of<DataError>([&] { read_task_items(own, write(name, text)); });
    };
    const QString array = refusal("rows.json", "\n[\n  {\"q\": \"[,\\\"\", \"g\": 0},\n  {\n    \"q\": {\"a\": [1, 2]},\n \"g\": 0}\n]\n");
    QVERIFY2(array.contains("rows.json:4: field \"q\""), qPrintable(array));
    const QString label = refusal("rows.json", "[{\"q\": \"x\", \"g\": 0},\n\n{\"q\": \"x\", \"g\": 7}]");
    QVERIFY2(label.contains("rows.json:3: field \"g\" is \"7\""), qPrintable(label));
    const QString csv = refusal("rows.csv", "q,g\n\n\"two\nlines\",0\n\"x\ny\",5\n");
    if (csv.contains("built without libcsv")) return;
    QVERIFY2(csv.contains("rows.csv:5: field \"g\" is \"5\""), qPrintable(csv));
    const QString fields = refusal("rows.csv", "q,g\r\nx,0\r\nx");
    QVERIFY2(fields.contains("rows.csv:3: has 1 fields, expected 2"), qPrintable(fields));
  }

  /// Of the words that are given, no others; a task without keys takes none.
  void keys_of_given_words() {
    const auto tokenizer = make_byte_tokenizer();
    Task niah = find_task("s-niah-1");
    niah.length = 1024;
    TaskItemOptions options{.limit = 2};
    const std::string usual = generate_task_items(niah, *tokenizer, "", options).hash;
    options.adjectives = write("adjectives.txt", "żółty\n"), options.nouns = write("nouns.txt", "kot\n");
    const TaskItems given = generate_task_items(niah, *tokenizer, "", options);
    for (const TaskItem& item : given.items) QVERIFY(item.requests[0].context.find("for żółty-kot is") != std::string::npos);
    QVERIFY(given.hash != usual);
    Task passkey = find_task("passkey");
    passkey.length = 300;
    QVERIFY_THROWS_EXCEPTION(UsageError, generate_task_items(passkey, *tokenizer, "", options));
    options.nouns = write("none.txt", " \n");
    QVERIFY_THROWS_EXCEPTION(DataError, generate_task_items(niah, *tokenizer, "", options));
    options.nouns = folder_.filePath("missing.txt").toStdString();
    QVERIFY_THROWS_EXCEPTION(DataError, generate_task_items(niah, *tokenizer, "", options));
  }

  void rows_that_are_wrong_are_named_data() {
    QTest::addColumn<QByteArray>("line");
    QTest::addColumn<QByteArray>("expected");
    QTest::newRow("no JSON") << QByteArray("{\"goal\":") << QByteArray("row.jsonl:2:1:9: not JSON");
    QTest::newRow("a field is missing") << QByteArray(R"({"goal": "g", "sol1": "a", "label": 0})")
                                        << QByteArray("row.jsonl:2: has no field \"sol2\"");
    QTest::newRow("no text") << QByteArray(R"({"goal": {}, "sol1": "a", "sol2": "b", "label": 0})")
                             << QByteArray("field \"goal\" is no text");
    QTest::newRow("a wrong label") << QByteArray(R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 2})")
                                   << QByteArray("row.jsonl:2: field \"label\" is \"2\", expected a number from 0 to 1");
    QTest::newRow("nested deeply") << QByteArray("{\"goal\": " + QByteArray(200000, '[') + QByteArray(200000, ']') + "}")
                                   << QByteArray("row.jsonl:2 is nested deeper than 64 levels");
    QTest::newRow("a key twice") << QByteArray(R"({"goal": "g", "goal": "h"})") << QByteArray("/goal is given twice");
    QTest::newRow("no object") << QByteArray("[1]") << QByteArray("row.jsonl:2: expected an object");
  }
  void rows_that_are_wrong_are_named() {
    QFETCH(QByteArray, line);
    QFETCH(QByteArray, expected);
    const fs::path file =
        write("row.jsonl", R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 0})" + std::string("\n") + line.toStdString() + "\n");
    try {
      read_task_items(find_task("piqa"), file);
      QFAIL("accepted");
    } catch (const DataError& error) {
      QVERIFY2(QByteArray(error.what()).contains(expected), error.what());
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TaskItemsTest)
#include "task_items_test.moc"
