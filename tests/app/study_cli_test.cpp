// saccade study and saccade queue through the real program: a study runs to its report, survives kill -9, and lists quickly.
#include "tests/app/program.h"

#include <sys/mount.h>
#include <sys/resource.h>

#include <QElapsedTimer>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "analysis/runs/journal.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_lock.h"
#include "analysis/studies/queue_worker.h"
#include "analysis/studies/study_folder.h"
#include "tests/support/instrumented.h"

using namespace saccade;
using namespace saccade::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

Json small_study(const Json& base) {
  return {{"question", "Which width?"},
          {"base", base},
          {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
          {"seeds", {1, 2}},
          {"tuning", {{"setting", "training.learning_rate"}, {"values", {0.0001, 0.01}}}}};
}

}  // namespace

class StudyCliTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  void write_study(const QString& name, const Json& file) const { program_.write(name, QByteArray::fromStdString(file.dump())); }
  fs::path folder(const QString& name) const { return program_.path(name).toStdString(); }

  Json status(const QString& study) const { return program_.run({"--json", "study", "status", program_.path(study)}).json(); }

  /// The device's queue has no worker and no entry.
  bool at_rest() const {
    return QTest::qWaitFor(
        [&] {
          const Json queues = program_.run({"--json", "queue", "list"}).json();
          for (const Json& queue : queues)
            if (!queue["worker"].is_null() || (!queue["entries"].empty() && queue["paused"] == false)) return false;
          return true;
        },
        120000);
  }

  /// Contents of every run that has finished, by folder: nothing may touch it afterwards.
  std::map<std::string, std::string> finished(const QString& study) const {
    std::map<std::string, std::string> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(study) / "runs", none)) {
      if (!holds_run(entry.path()) || read_run_info(entry.path()).state != RunState::finished) continue;
      for (const char* name : {"run.json", "journal.jsonl"}) {
        std::ifstream file(entry.path() / name, std::ios::binary);
        files[entry.path().filename().string() + "/" + name] = std::string(std::istreambuf_iterator<char>(file), {});
      }
    }
    return files;
  }

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  /// plan → start → status → report, with numbers that can be checked.
  void runsToItsReport() {
    write_study("widths.json", small_study(Program::config()));
    const auto plan = program_.run({"--json", "study", "plan", program_.path("widths.json"), "--budget", "1"});
    QCOMPARE(plan.code, 0);
    QCOMPARE(plan.json()["runs"], 6);  // two widths: two rates, then the other seed at the better one
    QCOMPARE(plan.json()["tokens"], 6 * 12 * 128);
    QVERIFY(plan.json()["seconds"].get<double>() > 0);
    QCOMPARE(plan.json()["runs_within_budget"], 6);
    const auto started = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    const Json now = status("widths");
    QCOMPARE(now["complete"], true);
    QCOMPARE(now["runs"].size(), size_t{6});
    for (const Json& cell : now["cells"]) QCOMPARE(cell["tuning"]["state"], "edge");
    QVERIFY(at_rest());
    const auto again = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QCOMPARE(again.code, 0);  // nothing is left to do
    QCOMPARE(status("widths")["runs"].size(), size_t{6});

    const auto report = program_.run({"--json", "study", "report", program_.path("widths"), "--recorded"});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    const Json json = report.json();
    const Json& end = json["tables"][0];
    QCOMPARE(end["id"], "end");
    const Json& loss = end["rows"][0][4];
    QCOMPARE(loss["sources"].size(), size_t{2});
    QVERIFY(end["rows"][0][2]["sources"][0].get<std::string>().ends_with(", the last 1 % of the steps up to 12, training batches"));
    double sum = 0;
    for (const Json& source : loss["sources"]) {
      const std::string text = source;  // "runs/NAME, step 12, validation split"
      sum += Run(folder("widths") / text.substr(0, text.find(','))).find("validation/loss")->value.back();
    }
    QVERIFY(std::abs(loss["value"].get<double>() - sum / 2) < 1e-12);
    for (const char* name :
         {"report.html", "report.md", "end.csv", "end.tex", "differences.csv", "tuning.svg", "ood-against-pretraining.svg"})
      QVERIFY2(fs::file_size(folder("widths") / "report" / name) > 100, name);
    QFile html(program_.path("widths/report/report.html"));
    QVERIFY(html.open(QIODevice::ReadOnly));
    const QByteArray page = html.readAll();
    QVERIFY(page.contains("<svg ") && page.contains("title=\"runs/width-8_"));
    QVERIFY(!page.contains("src=") && !page.contains("href=") && !page.contains("@import"));  // nothing is loaded
    QVERIFY(page.contains("mid-schedule"));
  }

  /// A study that says nothing of evaluations: as much text as differences need, or all there is.
  void evaluatesAsTheErrorAsks() {
    const Json report = program_.run({"-q", "--json", "study", "report", program_.path("widths")}).json();
    int64_t lines = 0;
    for (const Json& table : report["tables"])
      for (const Json& row : table["rows"]) {
        if (table["id"] != "differences" || row[1]["text"] == "OOD at equal loss") continue;
        ++lines;
        const bool whole = report["tables"][0]["notes"].dump().find("the whole validation split") != std::string::npos;
        const double error = row[6]["value"];
        QVERIFY2(error > 0 && (whole || error <= 0.005), row.dump().c_str());
      }
    QCOMPARE(lines, int64_t{2});  // in-domain and OOD of the other width
    QVERIFY(report["remarks"].dump().find("of no more text") == std::string::npos);
    for (const auto& run : fs::directory_iterator(folder("widths") / "runs")) fs::rename(run.path() / "checkpoints", run.path() / "gone");
    fs::rename(folder("widths") / "evaluations", folder("widths") / "gone");
    const Json without = program_.run({"-q", "--json", "study", "report", program_.path("widths")}).json();
    QVERIFY2(without["remarks"].dump().find("of no more text, since ") != std::string::npos, without["remarks"].dump().c_str());
    QCOMPARE(without["tables"][0]["rows"].size(), size_t{2});  // as training recorded them: none is left out
    for (const Json& row : without["tables"][0]["rows"]) QCOMPARE(row[1]["value"], 2);
    fs::rename(folder("widths") / "gone", folder("widths") / "evaluations");
    for (const auto& run : fs::directory_iterator(folder("widths") / "runs")) fs::rename(run.path() / "gone", run.path() / "checkpoints");
  }

  /// Values that nobody foresaw: the next ones beyond edges, or those that are named. The study's file may be started again.
  void aSearchIsExtended() {
    Json file = small_study(Program::config());
    file["axes"] = Json::array(), file["seeds"] = {1};
    write_study("further.json", file);
    const QString folder_name = program_.path("further");
    const auto run = [&](const QStringList& words) { return program_.run(QStringList{"-q", "--json", "study"} + words); };
    QCOMPARE(run({"start", program_.path("further.json"), "--out", folder_name, "--wait"}).code, 0);
    const auto tried = [&] {
      std::vector<double> values;
      const Json now = status("further");
      for (const Json& value : now["cells"][0]["tuning"]["tried"]) values.push_back(value["value"]);
      return values;
    };
    QCOMPARE(tried(), (std::vector<double>{0.0001, 0.01}));
    const auto known = run({"extend", folder_name, "--values", "0.01"});
    QVERIFY2(is_one_error(known) && known.code == 2 && known.err.contains("among those that are tried already"), qPrintable(known.err));
    const auto beyond = run({"extend", folder_name, "--wait"});
    QVERIFY2(beyond.code == 0, qPrintable(beyond.err));
    const std::vector<double> three = tried();
    QCOMPARE(three.size(), size_t{3});
    QCOMPARE(beyond.json()["values_added"].size(), size_t{1});
    QVERIFY(three.front() < 0.0001 || three.back() > 0.01);
    QCOMPARE(run({"extend", folder_name, "--rates", "0.001,0.003", "--seeds", "1", "--wait"}).code, 0);
    QCOMPARE(tried().size(), size_t{5});
    QCOMPARE(run({"start", program_.path("further.json"), "--out", folder_name, "--wait"}).code, 0);
    QCOMPARE(tried().size(), size_t{5});
    QCOMPARE(status("further")["runs"].size(), size_t{6});  // five rates, and a second seed at the best
  }

  /// A line for each cell at equal tokens, FLOPs and seconds, from the journals of its runs.
  void readsAtEqualCost() {
    const Json report = program_.run({"--json", "study", "report", program_.path("widths")}).json();
    const Json& table = report["tables"].back();
    QCOMPARE(table["id"], "equal-cost");
    QCOMPARE(table["rows"].size(), size_t{6});
    double least = INFINITY;
    std::map<std::string, std::vector<double>>
        firsts;  // of each cell: seconds at a seed's first evaluation, which differ by the machine's load
    for (const auto& [name, content] : finished("widths")) {
      if (!name.ends_with("run.json")) continue;
      const Run run(folder("widths") / "runs" / name.substr(0, name.find('/')));
      const std::string folder_name = run.info().directory.filename().string();
      if (report["tables"][0].dump().find(folder_name) == std::string::npos) continue;  // not at a best rate
      const std::vector<double>& seconds = run.find("validation/loss")->seconds;
      least = std::min(least, seconds.back());
      firsts[folder_name.substr(0, folder_name.find('_'))].push_back(seconds.front());
    }
    QCOMPARE(firsts.size(), size_t{2});
    for (size_t i = 0; i < 6; ++i) {
      const Json& row = table["rows"][i];
      const std::vector<double>& first = firsts.at(row[0]["text"]);
      const auto seeds = i < 4 ? std::ptrdiff_t{2} : std::count_if(first.begin(), first.end(), [&](double at) { return at <= least; });
      QCOMPARE(row[2]["text"], std::to_string(seeds));
      QCOMPARE(row[3]["value"].is_number(), seeds > 0);
      QCOMPARE(row[4]["value"].is_number(), seeds > 0);
      if (i < 4) QVERIFY(row[1]["text"].get<std::string>().ends_with(i < 2 ? " tokens" : " FLOPs"));
    }
    QCOMPARE(table["rows"][0][6]["text"], "ends");  // as many tokens for all
    char shown[64];
    std::snprintf(shown, sizeof shown, "%.4g s of training", least);
    QCOMPARE(table["rows"][4][1]["text"], shown);
    QVERIFY(table["notes"][1].get<std::string>().starts_with("Seconds are those of the training steps alone, on cpu, "));
    const auto equal = program_.run({"--json", "compare", program_.path("widths/runs"), "--equal", "flops"});
    QVERIFY2(equal.code == 0 && equal.json()["equal"]["amount"].is_number(), qPrintable(equal.err));
    QVERIFY(program_.run({"compare", program_.path("widths/runs"), "--equal", "hours"}).code == 2);
  }

  /// Two runs of one rate each: the ranking is untuned, and compare says so of both, also with --json.
  void compareSaysAPairIsUntuned() {
    program_.train("narrow");
    program_.train("wide", {"architecture.width=24"});
    const auto text = program_.run({"compare", program_.path("narrow"), program_.path("wide")});
    QCOMPARE(text.code, 0);
    QVERIFY2(text.out.contains("untuned: one rate only"), qPrintable(text.out));
    for (const char* row : {"width 16", "width 24"}) QVERIFY2(text.out.contains(row), qPrintable(text.out));
    const Json json = program_.run({"--json", "compare", program_.path("narrow"), program_.path("wide")}).json();
    QCOMPARE(json["rows"].size(), size_t{2});
    for (const Json& row : json["rows"]) QCOMPARE(row["tuning"]["state"], "untuned");
    QCOMPARE(json["tuning"].size(), size_t{1});
    QVERIFY(QString::fromStdString(json["tuning"][0]).endsWith("untuned: one rate only"));
  }

  void compareSaysTunedOrNot() {
    QVERIFY(fs::exists(folder("widths")));
    const auto of_study = program_.run({"compare", program_.path("widths/runs")});
    QVERIFY2(of_study.out.contains("edge: "), qPrintable(of_study.out));
    QVERIFY2(of_study.out.contains("not at its best value: "), qPrintable(of_study.out));  // the rate that each width did not choose
    const Json rows = program_.run({"--json", "compare", program_.path("widths/runs")}).json()["rows"];
    QCOMPARE(rows.size(), size_t{4});
    for (const Json& row : rows)  // both seeds have the best rate, one has the other
      QCOMPARE(row["tuning"]["state"], row["runs"].size() == 2 ? "edge" : "not at its best value");
    program_.train("alone");
    QCOMPARE(program_.run({"compare", program_.path("widths")}).out, of_study.out);  // a study's folder stands for its runs
    const auto alone = program_.run({"--json", "compare", program_.path("alone")});
    QCOMPARE(alone.json()["rows"][0]["tuning"]["state"], "untuned");
    QCOMPARE(alone.json()["tuning"][0].get<std::string>().substr(0, 30), std::string("Transformer++: untuned: one rat").substr(0, 30));
    QVERIFY(program_.run({"compare", program_.path("alone")}).out.contains("untuned: one rate only"));
  }

  /// A run that is named brings its cooldown branches along, as one in a folder does, and so is read at ends of cooldowns.
  void comparedRunsBringTheirBranches() {
    program_.train("cooled", {"training.schedule=wsd", "training.cooldown_at=[0.5]", "training.steps=8"});
    const QString branch = program_.path("cooled/branches/step-4");
    for (const QStringList& more : {QStringList{}, QStringList{branch}}) {
      const auto named = program_.run(QStringList{"--json", "compare", program_.path("cooled")} + more);
      QVERIFY2(named.code == 0 && named.json()["rows"].size() == 1, qPrintable(named.err + named.out));
      QVERIFY2(named.json()["rows"][0]["read_from"] == "branch ends", qPrintable(named.out));
    }
  }

  /// A run by itself gets repetitions beside it, with the smallest seeds that it has not had.
  void aRunIsRepeatedWithOtherSeeds() {
    program_.train("single-seed2", {"training.seed=2", "training.learning_rate=0.00123"});  // no other run here repeats it
    const auto queued = program_.run({"queue", "seeds", program_.path("single-seed2"), "2"});
    QVERIFY2(queued.code == 0 && queued.err.contains("single-seed1 added") && queued.err.contains("single-seed3 added"),
             qPrintable(queued.err));
    QVERIFY(at_rest());
    std::set<std::string> settings;
    for (const int64_t seed : {1, 2, 3}) {
      const Run run(folder("single-seed" + QString::number(seed)));
      QVERIFY(run.info().state == RunState::finished && run.info().seed == seed);
      settings.insert(run.setting());
    }
    QCOMPARE(settings.size(), size_t{1});
    QVERIFY(program_.run({"queue", "seeds", program_.path("nowhere")}).code == 2);
  }

  /// A study whose folder was removed while one of its runs is at work ends there: a new study of that name is begun and comes to its end.
  void aNewStudyOwesNothingToARemovedOne() {
    Json file = small_study(Program::config());
    file["base"]["training"]["steps"] = 1000000;
    file.erase("tuning");
    write_study("again.json", file);
    const auto started = program_.run({"-q", "study", "start", program_.path("again.json"), "--out", program_.path("again")});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    fs::path run;
    const auto at_work = [&] {
      std::error_code none;
      for (const auto& each : fs::directory_iterator(folder("again") / "runs", none))
        if (const auto holder = lock_holder(each.path()); holder && holder->process > 0 && fs::exists(each.path() / "journal.jsonl", none))
          run = each.path();
      return !run.empty();
    };
    QVERIFY(QTest::qWaitFor(at_work, 60000));
    const int process = lock_holder(run)->process;
    QCOMPARE(::kill(process, SIGSTOP), 0);  // it ends once the new study is there
    fs::remove_all(folder("again"));
    file["base"]["training"]["steps"] = 12;
    write_study("again.json", file);
    const auto anew = program_.run({"-q", "study", "start", program_.path("again.json"), "--out", program_.path("again")});
    QCOMPARE(::kill(process, SIGCONT), 0);
    QVERIFY2(anew.code == 0, qPrintable(anew.err));
    QVERIFY(at_rest());
    const Json now = status("again");
    QVERIFY2(now["complete"] == true, qPrintable(QString::fromStdString(now.dump())));
    QCOMPARE(finished("again").size(), size_t{8});  // two files of each of four runs
  }

  /// A grid that is extended adds runs and leaves the others as they are, byte by byte.
  void extendingAddsRuns() {
    Json file = small_study(Program::config());
    file["axes"][0]["values"] = {8, 16, 24};
    write_study("widths.json", file);
    const auto before = finished("widths");
    QCOMPARE(before.size(), size_t{12});
    const auto result = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const auto after = finished("widths");
    QCOMPARE(after.size(), size_t{18});
    for (const auto& [name, content] : before) QVERIFY2(after.at(name) == content, name.c_str());
    QVERIFY(at_rest());
  }

  /// Every cell gets the smallest seeds it lacks; only those are trained, at the best value, and they stay when the file is started again.
  void seedsAreAddedToCells() {
    const auto before = finished("widths");
    const auto all = program_.run({"--json", "study", "seeds", program_.path("widths"), "1", "--wait"});
    QVERIFY2(all.code == 0, qPrintable(all.err));
    QCOMPARE(all.json()["seeds_added"], (Json{{"width-8", {3}}, {"width-16", {3}}, {"width-24", {3}}}));
    QCOMPARE(finished("widths").size(), size_t{24});
    const auto one = program_.run({"study", "seeds", program_.path("widths"), "1", "--cell", "width-24", "--wait"});
    QVERIFY2(one.code == 0 && one.err.contains("width-24: seeds 4 added"), qPrintable(one.err));
    const std::string run = before.lower_bound("width-24")->first;
    const auto by_run =
        program_.run({"queue", "seeds", program_.path("widths/runs/" + QString::fromStdString(run.substr(0, run.find('/'))))});
    QVERIFY2(by_run.code == 0 && by_run.err.contains("width-24: seed 5 added"), qPrintable(by_run.err));
    QVERIFY(at_rest());
    const auto after = finished("widths");
    QCOMPARE(after.size(), size_t{28});
    for (const auto& [name, content] : before) QVERIFY2(after.at(name) == content, name.c_str());
    const auto wrong = program_.run({"study", "seeds", program_.path("widths"), "1", "--cell", "width-25"});
    QVERIFY(wrong.code == 2 && wrong.err.contains("did you mean \"width-24\"?"));
    const auto again = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(again.code == 0, qPrintable(again.err));
    const Json now = status("widths");
    QCOMPARE(now["runs"].size(), size_t{14});
    QCOMPARE(now["complete"], true);
    const Json report = program_.run({"--json", "study", "report", program_.path("widths")}).json();
    std::map<std::string, std::string> seeds;
    for (const Json& row : report["tables"][0]["rows"]) seeds[row[0]["text"]] = row[1]["text"];
    QCOMPARE(seeds, (std::map<std::string, std::string>{{"width-8", "3"}, {"width-16", "3"}, {"width-24", "5"}}));
    for (const Json& table : report["tables"])
      if (table["id"] == "differences")
        for (const Json& row : table["rows"])
          if (row[1]["text"] != "OOD at equal loss") QCOMPARE(row[2]["text"], "3");  // pairs: the seeds that both have
    QVERIFY(at_rest());
  }

  /// A report says which run it lacks, in itself and by how it ends.
  void aRunThatCannotBeReadIsNamed() {
    const fs::path run = folder("widths") / "runs";
    fs::path file;
    for (const auto& entry : fs::directory_iterator(run))
      if (entry.path().filename().string().starts_with("width-24")) file = entry.path() / "run.json";
    QVERIFY(!file.empty());
    fs::rename(file, file.string() + ".kept");
    fs::create_directory(file);
    const auto report = program_.run({"--json", "study", "report", program_.path("widths"), "--recorded"});
    fs::remove(file);
    fs::rename(file.string() + ".kept", file);
    QVERIFY2(report.code == 3 && report.err.contains("it lacks a run that cannot be read"), qPrintable(report.err));
    QVERIFY(report.json()["remarks"].dump().find("Left out, for it cannot be read") != std::string::npos);
    QCOMPARE(program_.run({"-q", "study", "report", program_.path("widths"), "--recorded"}).code, 0);
  }

  /// As many runs at a time as the cores hold, with equal shares of them, and the same losses as one after the other.
  void runsShareTheCores() {
    Json base = Program::config();
    base["threads"] = 0;
    write_study("shared.json", small_study(base));
    const auto shared =
        program_.run({"-q", "study", "start", program_.path("shared.json"), "--out", program_.path("shared"), "--jobs", "auto", "--wait"});
    QVERIFY2(shared.code == 0, qPrintable(shared.err));
    QVERIFY(at_rest());
    QCOMPARE(program_.run({"--json", "queue", "list"}).json()[0]["jobs"], "auto");
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    int64_t least = cores;
    for (const auto& entry : fs::directory_iterator(folder("shared") / "runs")) {
      const Run run(entry.path());
      const int64_t threads = run.info().config["threads"];
      QVERIFY(threads >= 1 && threads <= cores);
      least = std::min(least, threads);
      const Run alone(folder("widths") / "runs" / entry.path().filename());
      QCOMPARE(run.find("train/loss")->value, alone.find("train/loss")->value);
      QCOMPARE(run.find("ood/loss")->value, alone.find("ood/loss")->value);
    }
    QVERIFY(cores < 2 || least <= cores / 2);  // four were ready when the first one began
    QVERIFY(program_.run({"queue", "go-on", "--jobs", "1"}).code == 0);
    const auto wrong = program_.run({"queue", "go-on", "--jobs", "many"});
    QVERIFY2(wrong.code == 2 && wrong.err.contains("expected auto, or a number from 1 to 64"), qPrintable(wrong.err));
  }

  /// The worker measures what runs make together, from their journals, as it does on a GPU; here of runs with a core each.
  void theWorkerMeasuresWhatRunsMakeTogether() {
    for (const char* name : {"data", "cache", "runs"})
      qputenv(("SACCADE_" + QByteArray(name).toUpper()).constData(), program_.path(name).toUtf8());
    Json base = Program::config();
    const int steps = 40000 / kSlower;  // as long as it takes to measure
    base["training"].update({{"steps", steps}, {"evaluate_every", steps}, {"probe_every", steps}, {"checkpoint_every", steps}});
    Json file = small_study(base);
    file["axes"][0]["values"] = {16, 24};
    file["seeds"] = {1};
    file.erase("tuning");
    write_study("measured.json", file);
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(
        program_.run({"-q", "study", "start", program_.path("measured.json"), "--out", program_.path("measured"), "--jobs", "auto"}).code ==
        0);
    const DeviceQueue queue("cpu");
    queue.edit([](QueueState& state) { state.paused = false; });  // no worker but this one
    QStringList said;
    const std::atomic<bool> stop = false;
    QueueWorker(
        queue, qEnvironmentVariable("SACCADE_BINARY").toStdString(), [&](const std::string& line) { said << QString::fromStdString(line); },
        true)
        .work(stop);
    QCOMPARE(status("measured")["complete"], true);
    QCOMPARE(finished("measured").size(), size_t{4});
    const QStringList measured = said.filter(QRegularExpression("^2 runs at a time make [0-9.]+ times the tokens a second of 1$"));
    QVERIFY2(!measured.isEmpty(), qPrintable(said.join("\n")));
    qInfo("%s", qPrintable(said.join("\n")));
    const qsizetype first_end = said.indexOf("width-16_seed-1: finished"), second = said.indexOf("width-24_seed-1: started");
    QVERIFY(second >= 0 && second < first_end);  // beside the first one, once that was measured
    QVERIFY(program_.run({"queue", "go-on", "--jobs", "1"}).code == 0);
    QVERIFY(at_rest());
  }

  /// A study that stands in the queues of two devices: their workers share its runs, and each is begun once. (Both train on the CPU here,
  /// as the config says, since a second device is not at hand.)
  void workersOfTwoQueuesShareAStudy() {
    for (const char* name : {"data", "cache", "runs"})
      qputenv(("SACCADE_" + QByteArray(name).toUpper()).constData(), program_.path(name).toUtf8());
    Json base = Program::config();
    base["device"] = "cpu";
    Json file = small_study(base);
    file["axes"][0]["values"] = {8, 16, 24, 32};
    write_study("shared-out.json", file);
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(program_.run({"-q", "study", "start", program_.path("shared-out.json"), "--out", program_.path("shared-out"), "--jobs", "2"})
                .code == 0);
    const DeviceQueue first("cpu"), second("cuda:7");
    enqueue_study(second, folder("shared-out"));
    first.edit([](QueueState& state) { state.paused = false; });  // no workers but these
    const std::atomic<bool> stop = false;
    const auto work = [&](const DeviceQueue& queue, std::vector<std::string>& said) {
      QueueWorker(queue, qEnvironmentVariable("SACCADE_BINARY").toStdString(), [&](const std::string& line) {
        said.push_back(line);
      }).work(stop);
    };
    std::vector<std::string> by_first, by_second;
    std::thread other([&] { work(second, by_second); });
    work(first, by_first);
    other.join();
    const auto started = [](const std::vector<std::string>& said) {
      std::set<std::string> runs;
      for (const std::string& line : said)
        if (line.ends_with(": started") && !runs.insert(line).second) runs.insert(line + " again");
      return runs;
    };
    const std::set<std::string> one = started(by_first), two = started(by_second);
    qInfo("%zu and %zu runs", one.size(), two.size());
    QVERIFY(!one.empty() && !two.empty());
    std::set<std::string> all = one;
    all.insert(two.begin(), two.end());
    QCOMPARE(all.size(), one.size() + two.size());
    QCOMPARE(all.size(), size_t{12});  // four widths at two rates, then another seed at the better one
    QCOMPARE(status("shared-out")["complete"], true);
    QCOMPARE(finished("shared-out").size(), size_t{24});
    for (const auto& entry : fs::directory_iterator(folder("shared-out") / "logs")) QFAIL(entry.path().c_str());
    QVERIFY(program_.run({"queue", "go-on", "--device", "cpu", "--jobs", "1"}).code == 0);
    QVERIFY(second.read().entries.empty());
    fs::remove_all(second.folder());
    QVERIFY(at_rest());
  }

  /// --devices is kept, and decides where its runs train whatever their configs say.
  void isSpreadOverDevices() {
    Json base = Program::config();
    base["device"] = "cuda:9";
    Json file = small_study(base);
    file.erase("tuning");
    write_study("spread.json", file);
    const auto start = [&](const QString& devices) {
      return program_.run(
          {"--json", "study", "start", program_.path("spread.json"), "--out", program_.path("spread"), "--devices", devices});
    };
    for (const auto& [devices, why] : {std::pair{"cpu,cpu", "names cpu twice"}, std::pair{"gpu", "expected all, or a list of cuda:N"},
                                       std::pair{"cuda:90-91", "cuda:90"}}) {
      const auto wrong = start(devices);
      QVERIFY2(wrong.code != 0 && wrong.err.contains(why), qPrintable(wrong.out + wrong.err));
    }
    const auto begun = start("cpu");
    QVERIFY2(begun.code == 0 && begun.json()["queue"] == "cpu", qPrintable(begun.out + begun.err));
    const auto resumed = program_.run({"--json", "study", "resume", program_.path("spread"), "--wait"});
    QVERIFY2(resumed.code == 0 && resumed.json()["complete"] == true, qPrintable(resumed.out + resumed.err));
    for (const auto& entry : fs::directory_iterator(folder("spread") / "runs")) {
      const RunInfo info = read_run_info(entry.path());
      QCOMPARE(info.config["device"], "cuda:9");
      QCOMPARE(info.provenance["device"], "cpu");
    }
    QVERIFY(at_rest());
  }

  /// The worker and runs are killed at random instants; what had finished is never touched again, and every run comes to its end once.
  void survivesKills() {
    Json base = Program::config();
    base["training"]["steps"] = 60;
    base["training"]["checkpoint_every"] = 10;
    Json file = small_study(base);
    file["axes"][0]["values"] = {8, 16, 24};
    write_study("killed.json", file);
    std::mt19937 random(20260101);
    std::map<std::string, std::string> known;
    int kills = 0;
    QVERIFY(program_.run({"-q", "study", "start", program_.path("killed.json"), "--out", program_.path("killed"), "--jobs", "2"}).code ==
            0);
    for (int round = 0; round < 8; ++round) {
      QTest::qWait(std::uniform_int_distribution<int>(100, 900)(random));
      const Json queues = program_.run({"--json", "queue", "list"}).json();
      if (round != 4 && queues[0]["worker"].is_number()) kills += ::kill(queues[0]["worker"].get<int>(), SIGKILL) == 0;
      std::error_code none;
      for (const auto& run : fs::directory_iterator(folder("killed") / "runs", none))
        if (const auto holder = lock_holder(run.path()); round % 2 == 0 && holder && holder->process > 0)
          kills += ::kill(holder->process, SIGKILL) == 0;
      for (const auto& [name, content] : finished("killed")) known.try_emplace(name, content);
      QVERIFY(program_.run({"-q", "study", "resume", program_.path("killed"), "--jobs", "2"}).code == 0);
    }
    const auto result = program_.run({"-q", "study", "resume", program_.path("killed"), "--wait"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const auto after = finished("killed");
    qInfo("%d processes were killed; %zu runs had finished meanwhile", kills, known.size() / 2);
    QVERIFY(kills >= 4);
    for (const auto& [name, content] : known) QVERIFY2(after.at(name) == content, name.c_str());
    const Json now = status("killed");
    QCOMPARE(now["complete"], true);
    QCOMPARE(now["runs"].size(), size_t{9});
    size_t folders = 0;
    std::set<std::string> identities;
    for (const auto& entry : fs::directory_iterator(folder("killed") / "runs")) {
      ++folders;
      QVERIFY(identities.insert(run_identity(read_run_info(entry.path()).config)).second);
      const Run run(entry.path());
      std::vector<double> steps(60);
      std::iota(steps.begin(), steps.end(), 1);
      QCOMPARE(run.find("train/loss")->step, steps);
    }
    QCOMPARE(folders, size_t{9});
    QVERIFY(at_rest());
  }

  /// Stop takes the study out and its runs to a checkpoint; resume goes on; a limit and a run that cannot be trained are told.
  void stopsAndResumes() {
    Json base = Program::config();
    base["training"].update({{"steps", 1500}, {"evaluate_every", 500}, {"probe_every", 500}, {"checkpoint_every", 500}});
    Json file = small_study(base);
    file.erase("tuning");
    write_study("long.json", file);
    QVERIFY(program_.run({"-q", "study", "start", program_.path("long.json"), "--out", program_.path("long"), "--jobs", "1"}).code == 0);
    QVERIFY(program_.wait_for_records("long/runs/width-8_seed-1", 20));
    const auto stopped = program_.run({"--json", "study", "stop", program_.path("long")});
    QCOMPARE(stopped.json()["queued"], true);
    QVERIFY2(stopped.json()["stopping"] == 1, qPrintable(stopped.out + stopped.err));
    QVERIFY(at_rest());
    const Json now = status("long");
    QCOMPARE(now["runs"][0]["status"], "unfinished");
    QCOMPARE(now["runs"][1]["status"], "to do");
    QVERIFY(now["runs"][0]["step"].get<int>() > 0);
    const auto resumed = program_.run({"--json", "study", "resume", program_.path("long"), "--wait"});
    QVERIFY2(resumed.json()["complete"] == true, qPrintable(resumed.err));
    QCOMPARE(finished("long").size(), size_t{8});
  }

  void limitsAndFailuresAreTold() {
    Json file = small_study(Program::config());
    file.erase("tuning");
    write_study("few.json", file);
    const auto few = program_.run({"study", "start", program_.path("few.json"), "--out", program_.path("few"), "--limit", "1", "--wait"});
    QVERIFY(few.code != 0 && few.err.contains("the limit of runs is reached"));
    QCOMPARE(finished("few").size(), size_t{2});
    file["set"] = {{"data.corpus", "no-such-corpus"}};
    write_study("wrong.json", file);
    const auto wrong = program_.run({"study", "start", program_.path("wrong.json"), "--out", program_.path("wrong"), "--wait"});
    QVERIFY2(wrong.code != 0 && wrong.err.contains("4 runs were given up"), qPrintable(wrong.err));
    const Json now = status("wrong");
    QCOMPARE(now["runs"][0]["status"], "given up");
    QVERIFY(QString::fromStdString(now["runs"][0]["problem"]).contains("no-such-corpus"));
    QVERIFY(at_rest());
  }

  /// Runs on a disk without room wait for it, instead of being given up one after the other.
  void aFullDiskIsWaitedFor() {
    const QString disk = program_.path("disk");
    QDir().mkpath(disk);
    if (::mount("none", disk.toUtf8(), "tmpfs", 0, "size=64m") != 0) QSKIP("no right to mount a small file system: full disk not tested");
    const auto unmount = qScopeGuard([&] { ::umount(disk.toUtf8()); });
    Json file = small_study(Program::config());
    file.erase("tuning");
    file["axes"][0]["values"] = {64, 80};
    write_study("room.json", file);
    program_.write("disk/fill", QByteArray((64 << 20) - (600 << 10), 'x'));  // the study's own files have room
    QVERIFY(program_.run({"study", "start", program_.path("room.json"), "--out", disk + "/room"}).code == 0);
    const Json queues = program_.run({"--json", "queue", "list"}).json();
    const QString log = QString::fromStdString(queues[0]["log"].get<std::string>());
    const auto said = [&](const char* words) {
      QFile of(log);
      return of.open(QIODevice::ReadOnly) && of.readAll().contains(words);
    };
    QVERIFY(QTest::qWaitFor([&] { return said("waits for room on the disk"); }, 60000));
    QTest::qWait(1000);
    QVERIFY(status("disk/room")["runs"][0]["status"] == "to do" && finished("disk/room").empty());
    QVERIFY(QFile::remove(disk + "/fill"));
    QVERIFY(QTest::qWaitFor([&] { return finished("disk/room").size() == 4; }, 120000));
    QVERIFY(at_rest());
    const Json room = status("disk/room");
    for (const Json& run : room.at("runs")) QCOMPARE(run["status"], "finished");
  }

  void queueHasAnOrder() {
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    for (const char* name : {"a", "b", "c"})
      QVERIFY(
          program_.run({"queue", "add", program_.path("config.json"), "--out", program_.path(name), "--set", "training.steps=3"}).code ==
          0);
    const auto order = [&] {
      QStringList names;
      const Json queue = program_.run({"--json", "queue", "list"}).json()[0];
      for (const Json& entry : queue["entries"])
        names << QString::fromStdString(fs::path(entry["directory"].get<std::string>()).filename().string());
      return names.join(" ");
    };
    QCOMPARE(order(), QString("a b c"));
    QVERIFY(program_.run({"queue", "move", "c", "1"}).code == 0);
    QCOMPARE(order(), QString("c a b"));
    QVERIFY(program_.run({"queue", "remove", "a"}).code == 0);
    QCOMPARE(order(), QString("c b"));
    auto unknown = program_.run({"queue", "remove", "a"});
    QVERIFY(is_one_error(unknown) && unknown.code == 2);
    const Json before = program_.run({"--json", "queue", "list"}).json()[0];
    const int b = before["entries"][1]["id"].get<int>();
    QVERIFY(program_.run({"queue", "remove", "c"}).code == 0 && program_.run({"queue", "remove", "b"}).code == 0);
    QCOMPARE(order(), QString());
    QVERIFY(program_.run({"queue", "put-back", QString::number(b)}).code == 0);
    QVERIFY(program_.run({"queue", "put-back", QString::number(before["entries"][0]["id"].get<int>())}).code == 0);
    QVERIFY(program_.run({"queue", "put-back", QString::number(b)}).code == 0);  // it is there already
    QCOMPARE(program_.run({"--json", "queue", "list"}).json()[0]["entries"], before["entries"]);
    unknown = program_.run({"queue", "put-back", "4711"});
    QVERIFY2(is_one_error(unknown) && unknown.code == 2 && unknown.err.contains("nothing with the number 4711"), qPrintable(unknown.err));
    QVERIFY(program_.run({"queue", "add", program_.path("config.json"), "--out", program_.path("b")}).code == 2);  // waits already
    QVERIFY(!fs::exists(folder("c")));
    QVERIFY(program_.run({"queue", "go-on"}).code == 0);
    QVERIFY(at_rest());
    QCOMPARE(read_run_info(folder("c")).state, RunState::finished);
    QCOMPARE(read_run_info(folder("b")).state, RunState::finished);
    QVERIFY(!fs::exists(folder("a")));
  }

  /// Made-up runs, written without the program: a thousand of them are listed in a second.
  void listsAThousandRuns() {
    Json file = small_study(Program::config());
    file.erase("tuning");
    file["axes"][0] = {{"setting", "training.learning_rate"}, {"log_range", {{"from", 0.0001}, {"to", 0.1}, {"count", 250}}}};
    file["seeds"] = {1, 2, 3, 4};
    write_study("thousand.json", file);
    const Study study = load_study(folder("thousand.json"));
    create_study_folder(folder("thousand"), study);
    for (const WantedRun& wanted : view_study(study, {}).wanted) write_made_up(folder("thousand") / "runs" / wanted.name, wanted.run);
    const auto processor = [] {
      rusage used{};
      ::getrusage(RUSAGE_CHILDREN, &used);
      const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
      return seconds(used.ru_utime) + seconds(used.ru_stime);
    };
    /// Seconds of one of three looks, at least: by the clock, or of processors where others keep the machine busy.
    const auto least_of_three = [&](const char* look, bool anew) {
      double by_clock = INFINITY, of_processors = INFINITY;
      for (int i = 0; i < 3; ++i) {
        if (anew) fs::remove(folder("thousand") / "index.json");  // then every journal is read
        const double before = processor();
        QElapsedTimer clock;
        clock.start();
        const auto result = program_.run({"study", "status", program_.path("thousand")});
        by_clock = std::min(by_clock, static_cast<double>(clock.elapsed()) / 1e3);
        of_processors = std::min(of_processors, processor() - before);
        if (result.code != 0 || !result.out.contains("1000 finished")) qFatal("%s", qPrintable(result.err + result.out.left(400)));
      }
      qInfo("status of 1 000 runs, %s: %.2f s, of processors %.2f s", look, by_clock, of_processors);
      return std::min(by_clock, of_processors);
    };
    QVERIFY(least_of_three("the first look", true) <= 1 * kSlower);
    QVERIFY(least_of_three("later", false) <= 1 * kSlower);
  }

 private:
  static void write_made_up(const fs::path& directory, const StudyRun& run) {
    fs::create_directories(directory);
    const Json config = to_json(run.config);
    const Json object{{"format_version", 1},
                      {"name", run.config.name},
                      {"title", "Transformer++"},
                      {"state", "finished"},
                      {"message", ""},
                      {"step", 40},
                      {"steps", 40},
                      {"seed", run.seed},
                      {"parameters", 1000},
                      {"config", config},
                      {"provenance", {{"config_hash", config_hash(config)}}}};
    std::ofstream(directory / "run.json") << object.dump(2);
    std::ofstream journal(directory / "journal.jsonl");
    int64_t number = 0;
    for (int64_t step = 1; step <= 40; ++step) {
      const Position at{step, step * 128, static_cast<double>(step), static_cast<double>(step)};
      journal << journal_line(number++, to_record(StepRecord{step, at.tokens, at.flops, at.seconds, 3.0, 1e-3, 1, 1000}));
      if (step % 10 == 0)
        journal << journal_line(number++, to_record(EvaluationRecord{at, {{"prose", false, 2, 0.1}, {"code", true, 3, 0.1}}}));
    }
    journal << journal_line(number, state_record(RunState::finished, 40, ""));
  }
};

QTEST_GUILESS_MAIN(StudyCliTest)
#include "study_cli_test.moc"
