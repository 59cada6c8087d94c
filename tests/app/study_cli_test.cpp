// saccade study through the real program: a study runs to its report, is searched further and compared.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/app/study_fixture.h"

using namespace saccade;
using namespace saccade::test;
namespace fs = std::filesystem;

class StudyCliTest : public StudyTest {
  Q_OBJECT

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

  /// What the command line gave is blamed there, not in the file.
  void wrongValuesOfTheCommandLineAreNamed() {
    for (const auto& [set, why] : {std::pair{"devic=cpu", "--set is \"devic\"; expected the dotted name of a setting"},
                                   std::pair{"devic=cpu", "did you mean \"device\"?"}, std::pair{"device=cpux", "saccade: --set device: "},
                                   std::pair{"training.steps=-1", "saccade: --set training.steps: "}}) {
      const auto wrong = program_.run({"study", "plan", program_.path("widths.json"), "--no-measure", "--set", set});
      QVERIFY2(is_one_error(wrong) && wrong.code == 2 && wrong.err.contains(why), qPrintable(wrong.err));
    }
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
};

QTEST_GUILESS_MAIN(StudyCliTest)
#include "study_cli_test.moc"
