// The studies that come with the program: every one is read and expanded, and the smallest runs to its report.
#include <set>

#include "analysis/studies/same_data.h"
#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_plan.h"
#include "models/corpus/vocabulary.h"
#include "models/training/plan.h"
#include "tests/app/program.h"

using namespace saccade;
using namespace saccade::test;
using Json = nlohmann::json;

namespace {

StudyView view_of(const std::string& name) { return view_study(load_study(find_study(name)), {}); }
/// Without timing anything.
StudyPlan plan_of(const std::string& name) { return plan_study(view_of(name), {.measure = false}); }
double flops_of(const std::string& name) { return plan_of(name).flops; }

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

  /// A study's report, after all its runs, on the text above where it does not make its own; `unseen`: with a domain that is not trained on
  /// also where the study has none.
  void run_to_report(const std::string& name, Json& report, bool unseen = false) const {
    const QString folder = program_.path(name.c_str());
    QStringList start{"-q", "study", "start", name.c_str(), "--out", folder};
    const Study study = load_study(find_study(name));
    if (!study.base.at("data").contains("task")) {
      const bool mixed = !unseen && std::find(study.settings.begin(), study.settings.end(), "data.ood=[]") != study.settings.end();
      start << "--set"
            << "data.corpus=mine"
            << "--set" << (mixed ? R"(data.train=["prose","code"])" : R"(data.train=["prose"])");
      if (!mixed)
        start << "--set"
              << R"(data.ood=["code"])";
    }
    const auto started = program_.run(start);
    QVERIFY2(started.code == 0, qPrintable(started.err));
    Json now;
    const auto complete = [&] {
      now = program_.run({"--json", "study", "status", folder}).json();
      return now["complete"] == true || !now["blocked"].get<std::string>().empty();
    };
    QVERIFY2(QTest::qWaitFor(complete, 6 * 3600 * 1000) && now["blocked"] == "", now.dump().c_str());
    for (const Json& cell : now["cells"]) QVERIFY2(cell["tuning"]["tried"].size() >= 3, cell.dump().c_str());
    const auto result = program_.run({"--json", "study", "report", folder});
    QVERIFY2(result.code == 0, qPrintable(result.err.right(800)));  // QTest cuts long messages, and the reason stands last
    report = result.json();
    for (const Json& table : report["tables"]) QVERIFY2(!table["rows"].empty(), table["id"].dump().c_str());
    qInfo("%s", qPrintable(program_.run({"-q", "study", "report", folder}).out));
  }

 private Q_SLOTS:
  void initTestCase() { import_corpus(); }

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
    const std::vector<SameData> groups = same_data(view);  // the papers compare on the same text; tasks have axes of their own
    QStringList data;
    for (const SameData& group : groups) data << QString::fromStdString(group.name);
    QVERIFY2(groups.size() == 1 || study.base.at("data").contains("task"), qPrintable(data.join(", ")));
    if (groups.size() > 1) qInfo("%s", qPrintable(data.join(", ")));
    if (!name.endsWith("-paper") && name != "demo") QVERIFY(study.tuning && study.tuning->extend);
  }

  /// Sizes of the models as the paper's tables and appendices name them.
  void sizesAreThePapers_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QList<double>>("millions");  // of the cells in turn, again and again
    QTest::newRow("table 7: three shapes of each size")
        << "2506.11305-table-7-paper" << QList<double>{140, 140, 140, 500, 500, 500, 1500, 1500, 1500};
    QTest::newRow("table 9") << "2506.11305-table-9-paper" << QList<double>{153};
    QTest::newRow("table 10") << "2506.11305-table-10-paper" << QList<double>{153};
    QTest::newRow("table 11") << "2506.11305-table-11-paper"
                              << QList<double>{152, 144, 168, 153, 488, 0, 0, 496, 1500, 1500, 1500, 1520};  // table 13 has the small ones
    QTest::newRow("table 12, all features") << "2506.11305-table-12-paper" << QList<double>{153, 0, 0, 0, 0, 0, 0};  // others have fewer
  }
  void sizesAreThePapers() {
    QFETCH(QString, name);
    QFETCH(QList<double>, millions);
    const StudyPlan plan = plan_of(name.toStdString());
    QCOMPARE(static_cast<qsizetype>(plan.cells.size()) % millions.size(), 0);
    for (size_t i = 0; i < plan.cells.size(); ++i) {
      const double stated = 1e6 * millions[static_cast<qsizetype>(i) % millions.size()];
      const auto there = static_cast<double>(plan.cells[i].parameters);
      QVERIFY2(stated == 0 || std::abs(there / stated - 1) < 0.05,
               qPrintable(QString("%1: %2").arg(plan.cells[i].name.c_str()).arg(there)));
    }
  }

  /// Table 8 has 69 models: for each length and split all odd numbers of splits, up to 15 and to what a sequence has before its last one.
  void everySplitThatIsReadIsThere() {
    for (const auto& [name, least] : std::vector<std::pair<std::string, size_t>>{
             {"2506.11305-table-8-paper", 69}, {"2506.11305-table-8-10m", 17}, {"2506.11305-table-8-tiny", 8}}) {
      std::set<std::array<int64_t, 3>> models;
      for (const WantedRun& wanted : view_of(name).wanted) {
        const Json& a = wanted.run.config.architecture;
        const int64_t length = wanted.run.config.data.sequence_length, split = a.at("split"), splits = a.at("top_k");
        QVERIFY2(splits < length / split && splits % 2 == 1 && splits <= 15, wanted.name.c_str());
        models.insert({length, split, splits});
      }
      QCOMPARE(models.size(), least);
    }
  }

  /// Table 11: rates by model and size, 2, 7 and 20 G tokens, and one batch for all.
  void scalingHasThePapersRates() {
    const std::map<std::string, std::array<double, 3>> rates{{"transformer-pp", {3e-3, 1.5e-3, 1.25e-3}},
                                                             {"mamba1", {1e-3, 1e-3, 1e-3}},
                                                             {"rwkv7", {3e-3, 1.5e-3, 1.25e-3}},
                                                             {"avey", {1e-3, 1e-3, 1e-3}}};
    const std::map<std::string, std::pair<size_t, double>> sizes{{"small", {0, 2e9}}, {"medium", {1, 7e9}}, {"large", {2, 20e9}}};
    for (const WantedRun& wanted : view_of("2506.11305-table-11-paper").wanted) {
      const std::string cell = wanted.name.substr(0, wanted.name.find("_seed"));
      const size_t dash = cell.rfind('-');
      const std::string model = cell.substr(0, dash), size = cell.substr(dash + 1);
      QVERIFY2(rates.contains(model) && sizes.contains(size), wanted.name.c_str());
      const auto& [column, tokens] = sizes.at(size);
      const TrainingConfig& training = wanted.run.config.training;
      QCOMPARE(training.learning_rate, rates.at(model).at(column));
      QCOMPARE(training.batch_tokens, int64_t{524288});
      QVERIFY(std::abs(static_cast<double>(training.steps * training.batch_tokens) / tokens - 1) < 0.001);
    }
  }

  /// arXiv:2312.04927, figure 2: four widths; batches of 512 examples up to 128 tokens, 256 of 256 and 128 of 512, for 64 epochs at most.
  void recallHasThePapersBatches() {
    std::set<int64_t> widths;
    const std::map<int64_t, int64_t> examples{{64, 512}, {128, 512}, {256, 256}, {512, 128}};
    for (const WantedRun& wanted : view_of("2312.04927-figure-2-10m").wanted) {
      const RunConfig& config = wanted.run.config;
      const int64_t batch = config.training.batch_tokens / config.data.sequence_length;
      widths.insert(config.architecture.at("width").get<int64_t>());
      QCOMPARE(batch, examples.at(config.data.sequence_length));
      if (config.data.sequence_length != 128) QCOMPARE(config.training.steps * batch, int64_t{64 * 100'000});
    }
    QCOMPARE(widths, (std::set<int64_t>{64, 128, 256, 512}));
  }

  /// As the models of arXiv:2312.04927: layers are mixers without an MLP. Attention has its four matrices and a norm in each of two layers,
  /// beside the embedding and the last norm.
  void recallHasNoMlp() {
    int attention = 0;
    for (const WantedRun& wanted : view_of("2312.04927-figure-2-10m").wanted) {
      const RunConfig& config = wanted.run.config;
      const Json& architecture = config.architecture;
      QVERIFY2(architecture.at("block") == "mamba" && !architecture.contains("mlp_width"), architecture.dump().c_str());
      if (architecture.at("mixer") != "attention") continue;
      const auto width = architecture.at("width").get<int64_t>();
      const int64_t layer = width + 4 * width * width;
      QCOMPARE(make_plan(config, vocabulary_of(config.data.tokenizer)).parameters, 8192 * width + 2 * layer + width);
      ++attention;
    }
    QVERIFY(attention > 0);
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
    for (const char* name : {"tuned-tiny",
                             "tuned-10m",
                             "hybrid-ratio-tiny",
                             "hybrid-ratio-10m",
                             "scaling-tiny",
                             "scaling-10m",
                             "mup-transfer-tiny",
                             "mup-transfer-10m",
                             "avey-padding-tiny",
                             "avey-padding-10m",
                             "mqar-pairs-tiny",
                             "mqar-pairs-10m",
                             "mqar-layers-tiny",
                             "induction-10m",
                             "needles-10m",
                             "passkey-tiny",
                             "passkey-10m",
                             "parity-eigenvalues-tiny",
                             "demo",
                             "2312.04927-figure-2-10m",
                             "state-tracking-10m"})
      QVERIFY2(has(name), name);
  }

  /// Tuned, repeated, with branch ends and the test split, on text of this test.
  void theSmallestRunsToItsReport() {
    std::string smallest;
    double least = INFINITY;
    for (const std::string& name : shipped_studies()) {
      const Study study = load_study(find_study(name));
      if (!name.ends_with("-tiny") || study.evaluation.split != "test") continue;
      if (const double flops = flops_of(name); flops < least) least = flops, smallest = name;
    }
    qInfo("%s: %.2g FLOPs", smallest.c_str(), least);
    Json report;
    run_to_report(smallest, report, true);
    if (QTest::currentTestFailed()) return;
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
  }

  /// Every study of this scale; hours, so only where SACCADE_SLOW is set (make slow).
  void everyTinyStudyRunsToItsReport_data() {
    QTest::addColumn<QString>("name");
    for (const std::string& name : shipped_studies())
      if (name.ends_with("-tiny")) QTest::newRow(name.c_str()) << QString::fromStdString(name);
  }
  void everyTinyStudyRunsToItsReport() {
    if (!qEnvironmentVariableIsSet("SACCADE_SLOW")) QSKIP("SACCADE_SLOW is not set; make slow");
    QFETCH(QString, name);
    Json report;
    run_to_report(name.toStdString(), report);
    if (QTest::currentTestFailed()) return;
    const StudyView view = view_study(load_study(find_study(name.toStdString())), {});
    QCOMPARE(report["tables"][0]["rows"].size(), view.cells.size());
    for (const Json& row : report["tables"][0]["rows"])
      QCOMPARE(row[1]["text"].get<std::string>(), std::to_string(view.study.seeds.size()));
    for (const char* file : {"report.html", "end.csv", "end.tex", "tuning.svg"})
      QVERIFY2(std::filesystem::file_size((program_.path(name) + "/report/" + file).toStdString()) > 100, file);
  }
};

QTEST_GUILESS_MAIN(ShippedStudiesTest)
#include "shipped_studies_test.moc"
