// The studies that come with the program: every one is read and expanded, and the smallest runs to its report.
#include <set>

#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_plan.h"
#include "tests/app/program.h"

using namespace saccade;
using namespace saccade::test;
using Json = nlohmann::json;

namespace {

/// FLOPs of all runs of a study, without timing anything.
double flops_of(const std::string& name) { return plan_study(view_study(load_study(find_study(name)), {}), {.measure = false}).flops; }

}  // namespace

class ShippedStudiesTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  /// Text of two domains with a test split.
  void import_corpus() const {
    QByteArray lines;
    const auto add = [&](const char* domain, const QByteArray& text) {
      const Json line{{"text", text.repeated(6).toStdString()}, {"meta", {{"redpajama_set_name", domain}}}};
      lines += QByteArray::fromStdString(line.dump()) + "\n";
    };
    for (int i = 0; i < 300; ++i) {
      const QByteArray n = QByteArray::number(i);
      add("prose", "On day " + n + " rain fell on the hills, and the old road to the sea was washed away again. ");
      add("code", "for (int i = 0; i < " + n + "; ++i) sum += values[i]; return sum * " + n + "; ");
    }
    program_.write("text.jsonl", lines);
    const auto result =
        program_.run({"-q", "corpus", "import", "mine", program_.path("text.jsonl"), "--validation-share", "0.2", "--test-share", "0.2"});
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
  }

 private Q_SLOTS:
  void everyStudyExpands_data() {
    QTest::addColumn<QString>("name");
    for (const std::string& name : shipped_studies()) QTest::newRow(name.c_str()) << QString::fromStdString(name);
  }
  void everyStudyExpands() {
    QFETCH(QString, name);
    const Study study = load_study(find_study(name.toStdString()));
    QVERIFY(study.question.ends_with("?"));
    const bool of_paper = name.front().isDigit();
    QVERIFY2(!of_paper || study.source.starts_with("arXiv:" + name.left(10).toStdString() + ", "), study.source.c_str());
    const StudyView view = view_study(study, {});
    QVERIFY(view.wanted.size() >= 2);
    QVERIFY(!view.complete());
    std::set<std::string> identities, names;
    for (const WantedRun& wanted : view.wanted) {
      QVERIFY2(identities.insert(wanted.run.identity).second && names.insert(wanted.name).second, wanted.name.c_str());
      QVERIFY(wanted.name.size() < 200 && wanted.name.find('/') == std::string::npos);
    }
    if (!name.endsWith("-paper") && name != "demo") QVERIFY(study.tuning && study.tuning->extend);
  }

  void everyRowHasItsScales() {
    const std::vector<std::string> names = shipped_studies();
    const auto has = [&](const QString& name) { return std::find(names.begin(), names.end(), name.toStdString()) != names.end(); };
    for (const char* row :
         {"2505.18522-figure-1a", "2505.18522-figure-1b", "2505.18522-figure-2a", "2505.18522-figure-2b", "2505.18522-figure-3a",
          "2505.18522-figure-3b", "2505.18522-figure-3c", "2505.18522-figure-3d", "2505.18522-figure-3e", "2505.18522-figure-3f",
          "2505.18522-figure-6a", "2505.18522-figure-6b", "2505.18522-figure-7",  "2505.18522-figure-8",  "2505.18522-figure-9",
          "2506.11305-table-2",   "2506.11305-table-3",   "2506.11305-table-4",   "2506.11305-table-5",   "2506.11305-table-6",
          "2506.11305-table-7",   "2506.11305-table-8",   "2506.11305-table-9",   "2506.11305-table-10",  "2506.11305-table-11",
          "2506.11305-table-12"})
      for (const char* scale : {"-tiny", "-10m", "-paper"}) QVERIFY2(has(QString(row) + scale), row);
    for (const char* name : {"tuned-tiny", "tuned-10m", "hybrid-ratio-tiny", "hybrid-ratio-10m", "scaling-tiny", "scaling-10m",
                             "mup-transfer-tiny", "mup-transfer-10m", "avey-padding-tiny", "avey-padding-10m", "mqar-pairs-tiny",
                             "parity-eigenvalues-tiny", "demo", "2312.04927-figure-2-10m", "state-tracking-10m"})
      QVERIFY2(has(name), name);
  }

  /// Tuned, repeated, with branch ends and the test split, on text of this test.
  void theSmallestRunsToItsReport() {
    import_corpus();
    std::string smallest;
    double least = INFINITY;
    for (const std::string& name : shipped_studies()) {
      const Study study = load_study(find_study(name));
      if (!name.ends_with("-tiny") || study.evaluation.split != "test") continue;
      if (const double flops = flops_of(name); flops < least) least = flops, smallest = name;
    }
    const QString name = QString::fromStdString(smallest), study = program_.path("study");
    qInfo("%s: %.2g FLOPs", smallest.c_str(), least);
    const auto started = program_.run({"-q", "study", "start", name, "--out", study, "--set", "data.corpus=mine", "--set",
                                       "data.train=[\"prose\"]", "--set", "data.ood=[\"code\"]"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    Json now;
    const auto complete = [&] {
      now = program_.run({"--json", "study", "status", study}).json();
      return now["complete"] == true || !now["blocked"].get<std::string>().empty();
    };
    QVERIFY(QTest::qWaitFor(complete, 800000));
    QCOMPARE(now["blocked"], "");
    for (const Json& cell : now["cells"]) QVERIFY(cell["tuning"]["tried"].size() >= 3);
    const auto result = program_.run({"--json", "study", "report", study});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const Json report = result.json();
    for (const Json& table : report["tables"]) QVERIFY(!table["rows"].empty());
    for (const Json& row : report["tables"][0]["rows"]) {
      QCOMPARE(row[1]["text"], "2");  // seeds
      const std::string source = row[6]["sources"][0];
      QVERIFY2(source.ends_with(", step 200, test split") && row[6]["value"].is_number(), source.c_str());
      for (const int error : {5, 7}) QVERIFY(row[error]["value"] > 0 && row[error]["value"] < row[error - 1]["value"]);  // over sequences
    }
    for (const Json& row : report["tables"][1]["rows"]) {
      QCOMPARE(row[4]["text"], "branch ends");
      if (!row[2]["sources"].empty()) QVERIFY(row[2]["sources"][0].get<std::string>().ends_with(", test split"));
    }
    for (const Json& row : report["tables"][2]["rows"])
      if (row[1]["text"] != "OOD at equal loss") {  // the error over the same sequences: small, or there are no more
        const std::string text = row[6]["text"];
        QVERIFY2(row[6]["value"] <= 0.005 || text.ends_with("on the whole split)"), text.c_str());
      }
    qInfo("%s", qPrintable(program_.run({"-q", "study", "report", study}).out));
  }
};

QTEST_GUILESS_MAIN(ShippedStudiesTest)
#include "shipped_studies_test.moc"
