// What reports of studies say of what they cannot compare, evaluate or tell, through the real program.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "analysis/figures/recipe.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run.h"
#include "tests/app/program.h"

namespace saccade::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class StudyReportTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  void write_study(const QString& name, const Json& file) const { program_.write(name, QByteArray::fromStdString(file.dump())); }
  fs::path folder(const QString& name) const { return program_.path(name).toStdString(); }

  /// The report of an ended study some, then all, of whose checkpoints are gone, and with them what was evaluated of them.
  void without_checkpoints(const fs::path& study) {
    const auto report = [&](const QStringList& more) {
      return program_.run(QStringList{"-q", "--json", "study", "report", QString::fromStdString(study.string())} + more);
    };
    const auto rows_at_end = [](const Json& object) {
      for (const Json& table : object.at("tables"))
        if (table.at("id") == "end") return table.at("rows").size();
      return size_t{0};
    };
    std::vector<fs::path> runs;
    for (const auto& entry : fs::directory_iterator(study / "runs")) runs.push_back(entry.path());
    std::sort(runs.begin(), runs.end());
    fs::remove_all(study / "evaluations");
    fs::remove_all(runs.front() / "checkpoints");
    const Json some = report({}).json();
    QVERIFY2(some.at("remarks").dump().find("cannot be evaluated on the validation split: " + runs.front().string()) != std::string::npos,
             some.at("remarks").dump().c_str());
    for (const Json& table : some.at("tables"))
      for (const Json& row : table.at("rows"))
        for (const Json& entry : row)
          for (const Json& source : entry.value("sources", Json::array()))
            if (table.at("id") != "tuning" && table.at("id") != "cost")
              QVERIFY2(source.dump().find(runs.front().filename().string()) == std::string::npos, source.dump().c_str());
    fs::remove_all(study / "evaluations");
    for (const fs::path& run : runs) fs::remove_all(run / "checkpoints");
    const auto none = report({});
    QVERIFY2(is_one_error(none) && none.code == 3 && none.err.contains("no run of this study can be evaluated"), qPrintable(none.err));
    const Json recorded = report({"--recorded"}).json();
    QCOMPARE(rows_at_end(recorded), runs.size());
    QVERIFY(recorded.at("remarks").dump().find("cannot be evaluated") == std::string::npos);
  }

  /// Two lengths of sequences, two seeds, a branch.
  static Json length_study() {
    return {{"question", "Which length?"},
            {"base", "transformer-pp-tiny"},
            {"set",
             {{"data.corpus", "mine"},
              {"data.train", {"prose"}},
              {"data.ood", {"code"}},
              {"training.steps", 8},
              {"training.warmup_steps", 1},
              {"training.batch_tokens", 256},
              {"training.evaluation_tokens", 256}}},
            {"axes", Json::array({{{"setting", "data.sequence_length"}, {"values", {32, 64}}}})},
            {"seeds", {1, 2}},
            {"branches", {0.5}},
            {"evaluations", {{"split", "validation"}, {"tokens", 512}, {"paired_error", 0}}}};
  }

  static std::string title_of(const std::string& recipe) { return load_recipe(find_recipe(recipe)).title; }

  static Json table_of(const Json& report, const std::string& id) {
    for (const Json& table : report.at("tables"))
      if (table.at("id") == id) return table;
    return {};
  }

  /// Of the differences of the seeds' mean losses, sequence by sequence; the root of their number takes nothing off.
  void error_is_of_the_mean_over_seeds(double told) const {
    const auto mean_of_seeds = [&](const std::string& cell) {
      std::vector<double> mean;
      for (const char* seed : {"1", "2"}) {
        const fs::path file = folder("length") / "evaluations" / (cell + "_seed-" + seed + ".validation.512.length-32.json");
        const Json domain = Json::parse(read_text(file)).at("domains").at(0);
        mean.resize(domain.at("by_sequence").size());
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += domain.at("by_sequence")[i].get<double>() / 2;
      }
      return mean;
    };
    const std::vector<double> first = mean_of_seeds("sequence-length-32"), other = mean_of_seeds("sequence-length-64");
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(first.size());
    QVERIFY(n > 4);
    for (size_t i = 0; i < first.size(); ++i) mean += (other[i] - first[i]) / n;
    for (size_t i = 0; i < first.size(); ++i) squares += std::pow(other[i] - first[i] - mean, 2);
    const double error = std::sqrt(squares / (n - 1) / n);
    QVERIFY2(std::abs(told / error - 1) < 0.02, qPrintable(QString("%1, expected %2").arg(told).arg(error)));
  }

  /// Every step of every branch, the first one too.
  void branches_are_counted(double tokens) const {
    const fs::path run = folder("length") / "runs" / "sequence-length-32_seed-1";
    const int64_t own = Run(run).info().step, of_branch = Run(run / "branches" / "step-4").info().step - 4;
    QVERIFY(own == 8 && of_branch > 0);
    QCOMPARE(tokens, static_cast<double>(256 * (own + of_branch)));
  }

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  /// Two rates that are as good as one tell nothing of the better one; two that are far apart do.
  void aSearchThatTellsLittleIsSaidToBeOne() {
    const auto said = [&](const QString& study) {
      return program_.run({"-q", "--json", "study", "report", program_.path(study)})
          .json()["remarks"]
          .dump()
          .find("end within 1 % of each other");
    };
    for (const auto& [name, other_rate] : {std::pair{"flat", 0.000101}, {"steep", 0.01}}) {
      write_study(QString(name) + ".json", {{"question", "Which rate?"},
                                            {"base", Program::config()},
                                            {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8}}}})},
                                            {"tuning", {{"setting", "training.learning_rate"}, {"values", {0.0001, other_rate}}}}});
      const QString file = program_.path(QString(name) + ".json");
      QCOMPARE(program_.run({"-q", "study", "start", file, "--out", program_.path(name), "--wait"}).code, 0);
    }
    QVERIFY(said("flat") != std::string::npos);
    QCOMPARE(said("steep"), std::string::npos);
  }

  /// A byte that changes in a journal after a report has read it: in the run that is shown also where the file's time does not tell, in
  /// the other one of the search where it does.
  void aHoleInAJournalIsTold() {
    const auto told = [&] {
      std::map<std::string, std::string> runs;
      const Json report = program_.run({"-q", "--json", "study", "report", program_.path("flat")}).json();
      for (const Json& remark : report.at("remarks"))
        if (const std::string text = remark; text.find(": of the journal, ") != std::string::npos)
          runs[text.substr(0, text.find(':'))] = text;
      return runs;
    };
    QCOMPARE(told().size(), size_t{0});
    std::vector<fs::path> journals;
    for (const auto& entry : fs::directory_iterator(folder("flat") / "runs")) journals.push_back(entry.path() / "journal.jsonl");
    QCOMPARE(journals.size(), size_t{2});
    for (const fs::path& journal : journals) {
      const auto written = fs::last_write_time(journal);
      const std::string lines = read_text(journal);
      const size_t middle = lines.find('\n', lines.size() / 2) + 20;  // within a record
      std::fstream file(journal, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(middle));
      const char flipped = static_cast<char>(file.get() ^ 1);
      file.seekp(static_cast<std::streamoff>(middle));
      file.put(flipped);
      file.close();
      fs::last_write_time(journal, written);
    }
    const std::map<std::string, std::string> shown = told();
    QCOMPARE(shown.size(), size_t{1});
    QVERIFY2(shown.begin()->second.find("1 record behind step") != std::string::npos, shown.begin()->second.c_str());
    for (const fs::path& journal : journals) fs::last_write_time(journal, fs::file_time_type::clock::now());
    QCOMPARE(told().size(), size_t{2});
  }

  /// A causal model beside one that looks ahead: the report says so.
  void reportsWarnOfLookAhead() {
    const Json file{{"question", "Does looking ahead pay?"},
                    {"base", "transformer-pp-tiny"},
                    {"set",
                     {{"data.corpus", "mine"},
                      {"data.train", {"prose"}},
                      {"data.ood", {"code"}},
                      {"training.steps", 3},
                      {"training.warmup_steps", 1},
                      {"training.batch_tokens", 256},
                      {"training.evaluation_tokens", 1024}}},
                    {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "avey-tiny"}}}})}};
    write_study("ahead.json", file);
    const auto started = program_.run({"-q", "study", "start", program_.path("ahead.json"), "--out", program_.path("ahead"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    const Json remarks = program_.run({"--json", "study", "report", program_.path("ahead")}).json()["remarks"];
    const std::string wanted = "avey-tiny looks ahead, so its losses are no causal model's, which the others' are.";
    QVERIFY2(std::count(remarks.begin(), remarks.end(), wanted) == 1, remarks.dump().c_str());
    QVERIFY(remarks.dump().find("transformer-pp-tiny looks ahead") == std::string::npos);
  }

  /// Two windows on two domains: no loss of one domain is subtracted from one of the other.
  void losses_of_other_data_are_not_compared() {
    const auto on = [](const char* train, const char* ood) {
      return Json{{"name", train}, {"set", {{"data.train", Json::array({train})}, {"data.ood", Json::array({ood})}}}};
    };
    const Json file{{"question", "Which window?"},
                    {"base", "transformer-pp-tiny"},
                    {"set",
                     {{"data.corpus", "mine"},
                      {"training.steps", 3},
                      {"training.warmup_steps", 1},
                      {"training.batch_tokens", 256},
                      {"training.evaluation_tokens", 1024}}},
                    {"axes", Json::array({{{"name", "trained on"}, {"cases", Json::array({on("prose", "code"), on("code", "prose")})}},
                                          {{"setting", "architecture.window"}, {"values", {8, 16}}}})},
                    {"evaluations", {{"split", "validation"}, {"tokens", 512}}}};
    write_study("data.json", file);
    const auto started = program_.run({"-q", "study", "start", program_.path("data.json"), "--out", program_.path("data-study"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    const Json report = program_.run({"--json", "study", "report", program_.path("data-study")}).json();
    std::map<std::string, std::vector<std::string>> rows;
    for (const Json& table : report.at("tables"))
      for (const Json& row : table.at("rows")) rows[table.at("id")].push_back(row.at(0).at("text"));
    QCOMPARE(rows["end"].size(), size_t{4});
    QVERIFY(!rows.contains("differences") && !rows.contains("equal-loss") && !rows.contains("equal-cost"));
    for (const std::string data : {"prose", "code"}) {
      const std::vector<std::string>& lines = rows["differences-" + data];
      QVERIFY2(!lines.empty(), report.at("tables").dump().c_str());
      for (const std::string& line : lines)
        QVERIFY2(line.find(data) != std::string::npos && line.find("16") != std::string::npos, line.c_str());
      QCOMPARE(rows["equal-loss-" + data].size(), size_t{2});
    }
    QVERIFY(report.at("remarks").dump().find("within each of prose, code alone") != std::string::npos);
    without_checkpoints(folder("data-study"));
  }

  /// Sequences of 32 tokens are another text than of 64: no loss of one is subtracted from one of the other, but where all are evaluated
  /// at one length.
  void lossesOfOtherLengthsAreNotCompared() {
    write_study("length.json", length_study());
    const auto started = program_.run({"-q", "study", "start", program_.path("length.json"), "--out", program_.path("length"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    const auto report = [&](const QStringList& more) {
      return program_.run(QStringList{"-q", "--json", "study", "report", program_.path("length")} + more).json();
    };
    const Json own = report({});
    QVERIFY(table_of(own, "differences").is_null());
    QVERIFY2(own.at("remarks").dump().find("are compared within each of sequence-length-32, sequence-length-64 alone") != std::string::npos,
             own.at("remarks").dump().c_str());
    const Json one = report({"--length", "32"});
    const std::string text_of_ends = table_of(one, "end").at("notes").dump();  // a domain may hold fewer
    QVERIFY2(text_of_ends.find("split, up to 512 tokens of every domain") != std::string::npos, text_of_ends.c_str());
    const Json difference = table_of(one, "differences").at("rows").at(0);
    QCOMPARE(difference.at(1).at("text"), Json("in-domain"));
    QCOMPARE(difference.at(2).at("value"), Json(2));  // pairs
    error_is_of_the_mean_over_seeds(difference.at(6).at("value"));
    branches_are_counted(table_of(one, "cost").at("rows").at(0).at(3).at("value"));
    QCOMPARE(program_.run({"study", "report", program_.path("length"), "--length", "4096"}).code, 2);
  }

  /// What is kept of an evaluation, and is damaged, is made anew where the checkpoint is there; else the report says both.
  void aDamagedEvaluationIsMadeAnew() {
    const QString name = "length/evaluations/sequence-length-32_seed-1.validation.512.length-32.json";
    const fs::path file = folder(name), checkpoints = folder("length") / "runs" / "sequence-length-32_seed-1" / "checkpoints";
    const std::string whole = read_text(file);
    const auto report = [&](const QStringList& more) {
      return program_.run(QStringList{"-q", "--json", "study", "report", program_.path("length"), "--length", "32"} + more);
    };
    for (const QStringList& how : {QStringList{}, {"--devices", "cpu", "--jobs", "2"}}) {
      program_.damage(name);
      const auto made = report(how);
      QVERIFY2(made.code == 0, qPrintable(made.err));
      const std::string remarks = made.json()["remarks"].dump();
      QVERIFY2(remarks.find("validation.512.length-32.json was damaged, and has been made anew") != std::string::npos, remarks.c_str());
      QVERIFY2(remarks.find("Left out") == std::string::npos, remarks.c_str());
      QCOMPARE(Json::parse(read_text(file)).at("domains"), Json::parse(whole).at("domains"));
    }
    QCOMPARE(report({}).json()["remarks"].dump().find("was damaged"), std::string::npos);
    program_.damage(name);
    fs::rename(checkpoints, checkpoints.string() + ".kept");
    const std::string remarks = report({}).json()["remarks"].dump();
    fs::rename(checkpoints.string() + ".kept", checkpoints);
    QVERIFY2(remarks.find("Left out") != std::string::npos && remarks.find("it is not made anew: ") != std::string::npos, remarks.c_str());
  }

  /// The same text in other tokens: nats per token do not compare, bits per byte of the text do.
  void tokenizersAreComparedInBitsPerByte() {
    Json file = length_study();
    file["axes"] = Json::array({{{"setting", "data.tokenizer"}, {"values", {"bytes", "bpe:300"}}}});
    file["set"]["data.sequence_length"] = 32;
    write_study("tokens.json", file);
    const auto started = program_.run({"-q", "study", "start", program_.path("tokens.json"), "--out", program_.path("tokens"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    for (const QStringList& how : {QStringList{}, {"--recorded"}}) {
      const Json report = program_.run(QStringList{"-q", "--json", "study", "report", program_.path("tokens")} + how).json();
      QVERIFY2(report.at("remarks").dump().find("compared in bits per byte") != std::string::npos, report.at("remarks").dump().c_str());
      const Json end = table_of(report, "end"), row = table_of(report, "differences").at("rows").at(0);
      std::map<std::string, size_t> column;
      for (size_t i = 0; i < end.at("header").size(); ++i) column[end["header"][i]] = i;
      const auto at_end = [&](size_t cell, const char* name) { return end["rows"][cell][column.at(name)]["value"].get<double>(); };
      // Of a byte model bits per byte are nats per token over ln 2, but for ends of documents.
      const double ratio = at_end(0, "in-domain bits per byte") / at_end(0, "in-domain loss") * std::log(2.0);
      QVERIFY2(ratio > 1 - 1e-9 && ratio < 1.1, std::to_string(ratio).c_str());
      QCOMPARE(row.at(1).at("text"), Json("in-domain"));
      const double expected = at_end(1, "in-domain bits per byte") - at_end(0, "in-domain bits per byte");
      QVERIFY2(std::abs(row.at(3).at("value").get<double>() - expected) < 1e-9, row.dump().c_str());
      QVERIFY(row.at(6).at("value").is_null());  // no sequence is the same
      QVERIFY(table_of(report, "differences").at("notes").dump().find("in bits per byte") != std::string::npos);
      QCOMPARE(table_of(report, "equal-loss").at("rows").size(), size_t{2});
      QVERIFY(table_of(report, "equal-loss").at("notes").dump().find("all in bits per byte") != std::string::npos);
    }
  }

  /// The loss at which OOD losses are equal, with and without branches, and figures by recipes.
  void theReportSaysWhatItIsDrawnBy() {
    Json file = length_study();
    file["axes"] = Json::array({{{"setting", "architecture.window"}, {"values", {8, 16}}}});
    file["set"].update({{"data.sequence_length", 32}, {"training.evaluate_every", 2}});
    for (const bool branches : {true, false}) {
      const QString name = branches ? "train-axis" : "middle-axis";
      if (!branches) file.erase("branches");
      file["report"] = {{"tables", {"end", "equal-loss"}},
                        {"figures", {"ood-against-pretraining", "2505.18522-figure-3d", "2506.11305-figure-1"}},
                        {"pretraining", "train"},
                        {"window", 256}};
      write_study(name + ".json", file);
      const auto started = program_.run({"-q", "study", "start", program_.path(name + ".json"), "--out", program_.path(name), "--wait"});
      QVERIFY2(started.code == 0, qPrintable(started.err));
      const Json report = program_.run({"-q", "--json", "study", "report", program_.path(name)}).json();
      const std::string notes = table_of(report, "equal-loss").at("notes").dump(), remarks = report.at("remarks").dump();
      QVERIFY2(notes.find("training loss, mean over the last 256 tokens") != std::string::npos, notes.c_str());
      QVERIFY2(remarks.find("training loss, mean over the last 256 tokens") != std::string::npos, remarks.c_str());
      const std::string csv = read_text(folder(name) / "report" / "ood-against-pretraining.figure.csv");
      QVERIFY2(csv.find("training loss (nats per token)") != std::string::npos, csv.c_str());
      // A step has 256 tokens, so the last point across is the training loss of the last step.
      const Run run(folder(name) / "runs" / "window-8_seed-1");
      QVERIFY2(csv.find(std::to_string(run.find("train/loss")->value.back()).substr(0, 6)) != std::string::npos, csv.c_str());
      for (const char* made : {"2505.18522-figure-3d.svg", "2505.18522-figure-3d.csv"})
        QVERIFY2(fs::file_size(folder(name) / "report" / made) > 100, made);
      const std::string of_recipe = read_text(folder(name) / "report" / "2505.18522-figure-3d.csv");  // shows the same losses as the tables
      QVERIFY2(of_recipe.find("\"training loss, smoothed (nats)\"") != std::string::npos, of_recipe.c_str());
      QVERIFY2(remarks.find("The figure 2506.11305-figure-1 is not drawn: no run has recorded what panel 1") != std::string::npos,
               remarks.c_str());
      QVERIFY(!fs::exists(folder(name) / "report" / "2506.11305-figure-1.csv"));
      QVERIFY(read_text(folder(name) / "report" / "report.html").find("<h2>" + title_of("2505.18522-figure-3d")) != std::string::npos);
    }
    program_.run({"-q", "study", "report", program_.path("train-axis"), "--split", "test", "--tokens", "512"});
    const std::string tested = read_text(folder("train-axis") / "report" / "2505.18522-figure-3d.csv");
    QVERIFY2(tested.find("\"OOD loss, test split (nats)\"") != std::string::npos, tested.c_str());
    file["report"]["pretraining"] = "weighted", file["report"].erase("window");
    write_study("middle-axis.json", file);
    QVERIFY(
        program_.run({"-q", "study", "start", program_.path("middle-axis.json"), "--out", program_.path("middle-axis"), "--wait"}).code ==
        0);
    const Json report = program_.run({"-q", "--json", "study", "report", program_.path("middle-axis")}).json();
    QVERIFY(table_of(report, "equal-loss").at("notes").dump().find("weighted by their tokens in training") != std::string::npos);
  }

  /// A setting that another one makes idle is no finding.
  void equalConfigsAreToldOf() {
    Json file = length_study();
    file["axes"] = Json::array({{{"name", "how"}, {"cases", Json::array({{{"name", "plain"}}, {{"name", "same"}}})}}});
    file.erase("branches");
    write_study("same.json", file);
    QVERIFY(program_.run({"-q", "study", "start", program_.path("same.json"), "--out", program_.path("same"), "--wait"}).code == 0);
    const Json remarks = program_.run({"-q", "--json", "study", "report", program_.path("same")}).json()["remarks"];
    QVERIFY2(remarks.dump().find("plain and same are one config") != std::string::npos, remarks.dump().c_str());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StudyReportTest)
#include "study_report_test.moc"
