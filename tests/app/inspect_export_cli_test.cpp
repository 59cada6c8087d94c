#include <fcntl.h>
#include <unistd.h>

#include "program.h"

namespace saccade::test {

/// What the command line shows of runs, checked against what the runs hold, and every figure as a file.
class InspectExportCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.train("plain");
    program_.train("seed2", {"training.seed=2"});
    program_.train("chunks", {"architecture.mixer=top1_chunk", "architecture.chunk=8"});
    program_.train("avey", {"architecture={\"block\": \"avey\", \"width\": 16, \"layers\": 2, \"split\": 8, \"top_k\": 2}"});
  }

  void help_of_every_command_data() {
    QTest::addColumn<QStringList>("command");
    for (const char* name : {"doctor", "architectures", "corpus", "plan", "train", "resume", "stop", "evaluate", "inspect", "compare",
                             "export", "bench", "generate", "demo", "coordinates", "tasks"})
      QTest::newRow(name) << QStringList{name};
    for (const char* name : {"import", "list", "show", "samples"}) QTest::addRow("corpus %s", name) << QStringList{"corpus", name};
  }
  void help_of_every_command() {
    QFETCH(QStringList, command);
    const auto result = program_.run(command + QStringList{"--help"});
    QCOMPARE(result.code, 0);
    QVERIFY2(result.out.contains("Example: saccade " + command.join(' ')), qPrintable(result.out));
    QVERIFY(result.err.isEmpty());
    const QStringList lines = result.out.split('\n');
    for (int i = 0; i + 1 < lines.size(); ++i)  // no option without a word on what it does, beside it or below
      QVERIFY2(!lines[i].startsWith("  -") || lines[i].size() > 34 || lines[i + 1].startsWith(QString(20, ' ')), qPrintable(lines[i]));
  }

  /// The same seed writes the same text; temperature 0 needs none; what cannot go on says so.
  void generates() {
    const auto text = [&](const QStringList& more) {
      const auto result =
          program_.run(QStringList{"--json", "-q", "generate", "chunks", "--prompt", "Rain fell on", "--tokens", "90"} + more);
      if (result.code != 0) qWarning("%s", qPrintable(result.err));
      return result.json();
    };
    const nlohmann::json one = text({"--seed", "1"}), again = text({"--seed", "1"}), two = text({"--seed", "2"});
    QVERIFY(one.at("ended").get<bool>() ? one.at("tokens").size() < 90 : one.at("tokens").size() == 90);
    QCOMPARE(one.at("text"), again.at("text"));
    QVERIFY(one.at("tokens") != two.at("tokens"));
    QCOMPARE(text({"--temperature", "0", "--seed", "1"}).at("tokens"), text({"--temperature", "0", "--seed", "2"}).at("tokens"));
    const auto plain = program_.run({"generate", "plain", "--prompt", "The road", "--tokens", "7", "--step", "8"});
    QCOMPARE(plain.code, 0);
    QVERIFY(plain.out.startsWith("The road"));
    // Several at once: each as alone.
    const nlohmann::json many = text({"--prompt", "A", "--samples", "3", "--batch", "4", "--top-k", "9"});
    QCOMPARE(many.at("samples").size(), size_t{6});
    for (int i = 0; i < 3; ++i)
      QCOMPARE(many.at("samples").at(static_cast<size_t>(i)).at("tokens"),
               text({"--seed", QString::number(1 + i), "--top-k", "9"}).at("tokens"));
    QCOMPARE(many.at("samples").at(4).at("prompt"), "A");
    QCOMPARE(many.at("samples").at(4).at("seed"), 2);
    const auto avey = program_.run({"generate", "avey", "--prompt", "The road", "--tokens", "7", "--device", "cpu"});
    QCOMPARE(avey.code, 0);
    QVERIFY(avey.out.startsWith("The road"));
  }

  void json_of_every_command_data() {
    QTest::addColumn<QStringList>("arguments");
    const auto row = [](const QStringList& arguments) { QTest::newRow(qPrintable(arguments.join(' '))) << arguments; };
    row({"doctor"});
    row({"architectures"});
    row({"architectures", "--presets"});
    row({"architectures", "top1_chunk"});
    row({"corpus", "list"});
    row({"corpus", "show", "mine"});
    row({"corpus", "samples", "mine"});
    row({"plan", "config.json"});
    row({"evaluate", "plain"});
    row({"inspect", "chunks"});
    row({"generate", "plain", "--tokens", "3"});
    row({"compare", "."});
    row({"stop", "plain"});
    row({"resume", "plain"});
    row({"export", "loss", "plain", "--out", "loss.csv"});
  }
  void json_of_every_command() {
    QFETCH(QStringList, arguments);
    for (const QStringList& line : {QStringList{"--json", "-q"} + arguments, arguments + QStringList{"--json", "-q"}}) {
      const auto result = program_.run(line);
      QVERIFY2(result.code == 0 && result.err.isEmpty(), qPrintable(result.err));
      QVERIFY2(!result.json().is_discarded(), qPrintable(result.out));
    }
    const auto text = program_.run(arguments + QStringList{"-q"});
    QVERIFY(text.code == 0 && !text.out.isEmpty() && text.err.isEmpty());
  }

  /// The weights of a query are a distribution over the positions before it, the same on screen, in JSON and in CSV.
  void inspect() {
    const auto result = program_.run({"--json", "inspect", program_.path("plain"), "--sample", "1", "--layer", "1", "--head", "1",
                                      "--query", "20", "--csv", program_.path("reads.csv")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json();
    QCOMPARE(json["weights"].size(), size_t(21));
    double sum = 0;
    for (const double w : json["weights"]) sum += w;
    QVERIFY(std::abs(sum - 1) < 1e-5);
    QFile file(program_.path("reads.csv"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QList<QByteArray> lines = file.readAll().trimmed().split('\n');
    QCOMPARE(lines.size(), 22);
    QCOMPARE(lines[0], QByteArray("position,piece,weight"));
    for (int j = 0; j <= 20; ++j) QCOMPARE(lines[j + 1].split(',').last().toFloat(), json["weights"][static_cast<size_t>(j)].get<float>());

    const auto text =
        program_.run({"inspect", program_.path("plain"), "--sample", "1", "--layer", "1", "--head", "1", "--query", "20", "--top", "3"});
    QCOMPARE(text.out.split('\n').filter(QRegularExpression("^ *\\d+ +\\d+ +0\\.\\d{4}  \"")).size(), 3);
  }

  void inspect_selections() {
    const auto chunk = program_.run({"--json", "inspect", program_.path("chunks"), "--query", "30"}).json();
    QCOMPARE(chunk["candidate_size"].get<int>(), 8);
    QCOMPARE(chunk["chosen"].size(), size_t(1));
    QVERIFY(chunk["chosen"][0].get<int>() < 3);  // a complete chunk before the query's own
    const auto split = program_.run({"--json", "inspect", program_.path("avey"), "--query", "30"}).json();
    QCOMPARE(split["candidate_size"].get<int>(), 8);
    QCOMPARE(split["chosen"].size(), size_t(2));
    QVERIFY(program_.run({"inspect", program_.path("chunks"), "--query", "30"}).out.contains("chosen: "));
  }

  void wrong_selection_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("says");
    const auto row = [](const QStringList& arguments, const char* says) {
      QTest::newRow(qPrintable(arguments.join(' '))) << arguments << says;
    };
    row({"inspect", "plain", "--step", "5"}, "has captures of step 4, 8 or 12");
    row({"inspect", "plain", "--sample", "99"}, "--sample is 99; expected 0 to");
    row({"inspect", "plain", "--layer", "7"}, "layer 7");
    row({"inspect", "plain", "--head", "2"}, "heads 0 to 1");
    row({"inspect", "plain", "--query", "32"}, "positions 0 to 31");
    row({"inspect", "plain", "--query", "-3"}, "--query");
    row({"compare", "plain", "--domain", "poems"}, "--domain poems: expected code");
    row({"compare", "plain", "--at-loss", "low"}, "--at-loss");
    row({"compare", "plain", "--split", "test"},
        "--split test: no study has evaluated the ends of these runs on it; saccade study evaluate");
    row({"compare", "plain", "--split", "train"}, "--split");
    row({"export", "histogram", "plain", "--out", "x.csv"}, "histogram");
    row({"export", "loss", "plain", "--out", "x.txt"}, "expected a name that ends in .pdf, .svg, .png, .csv or .json");
    row({"export", "series", "plain", "--out", "x.csv"}, "needs --series; there are ");
    row({"export", "series", "plain", "--series", "gradient_nrm", "--out", "x.csv"}, "did you mean \"gradient_norm\"?");
    row({"export", "selection", "plain", "seed2", "--out", "x.csv"}, "shows one run, 2 were given");
    row({"export", "loss", "plain", "--x-range", "5", "5", "--out", "x.csv"}, "--x-range: the first end is to be below the second");
    row({"export", "loss", "plain", "--log-y", "--y-range", "0", "5", "--out", "x.csv"}, "--y-range: a logarithmic axis begins above 0");
    row({"export", "selection", "plain", "--map", "score", "--out", "x.csv"}, "no map \"score\"");
    row({"export", "heads", "plain", "--statistic", "hunger", "--out", "x.csv"}, "no statistic \"hunger\"");
  }
  void wrong_selection() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, says);
    const auto result = program_.run(QStringList{"-q"} + arguments);
    QVERIFY2(result.code == 2 && is_one_error(result) && result.err.contains(says), qPrintable(QString::number(result.code) + result.err));
    QVERIFY(!QFile::exists(program_.path("x.csv")) && !QFile::exists(program_.path("x.txt")));
  }

  void unwritable_output() {
    for (const char* out : {"/proc/none/x.csv", "config.json/x.csv", "none/x.json"}) {
      const auto result = program_.run({"-q", "export", "loss", "plain", "--out", out});
      QVERIFY2(result.code == 3 && is_one_error(result), qPrintable(result.err));
    }
    const auto reads = program_.run({"-q", "inspect", "plain", "--csv", "."});
    QVERIFY2(reads.code == 3 && is_one_error(reads), qPrintable(reads.err));
    const auto full = program_.run({"-q", "compare", "plain"}, [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); });
    QVERIFY2(full.code == 1 && is_one_error(full), qPrintable(full.err));
  }

  void compare_groups_seeds() {
    const auto result = program_.run({"--json", "compare", "plain", "seed2", "chunks", "--domain", "code"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json();
    QCOMPARE(json["rows"].size(), size_t(2));
    QCOMPARE(json["rows"][0]["runs"].size(), size_t(2));
    const QString text = program_.run({"compare", "plain", "seed2", "chunks"}).out;
    const QStringList lines = text.split('\n');
    QVERIFY2(lines[0].contains("parameters") && lines[0].contains("tokens/s") && lines[0].contains("OOD loss"), qPrintable(text));
    QCOMPARE(lines[1].size(), lines[0].size());
    QCOMPARE(lines[2].size(), lines[0].size());
  }

  void figures_data() {
    QTest::addColumn<QStringList>("figure");
    const auto row = [](const QStringList& figure) { QTest::newRow(qPrintable(figure.join(' '))) << figure; };
    for (const char* x : {"step", "tokens", "flops", "seconds"}) row({"loss", "plain", "chunks", "--x", x});
    row({"loss", "plain", "--log-x", "--log-y"});
    row({"trajectory", "plain", "seed2", "chunks", "avey"});
    row({"trajectory", "plain", "--domain", "code", "--at-loss", "5.5"});
    row({"entropy", "plain", "chunks"});
    row({"entropy", "plain", "--normalized"});
    row({"heads", "plain"});
    row({"heads", "chunks", "--statistic", "captured_mass"});
    row({"series", "plain", "chunks", "--series", "gradient_norm"});
    row({"selection", "plain", "--layer", "1", "--head", "1"});
    row({"selection", "chunks", "--sample", "1"});
    row({"selection", "chunks", "--map", "captured_mass"});
    row({"selection", "chunks", "--map", "margin"});
    row({"selection", "avey"});
    row({"selection", "avey", "--map", "weights"});
  }
  void figures() {
    QFETCH(QStringList, figure);
    for (const char* suffix : {".csv", ".json"}) {
      const QString out = program_.path(QString("figure") + suffix);
      QFile::remove(out);
      const auto result = program_.run(QStringList{"-q", "export"} + figure + QStringList{"--out", out});
      QVERIFY2(result.code == 0 && result.out == "wrote " + out + "\n", qPrintable(result.err));
      QFile file(out);
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QByteArray content = file.readAll();
      if (QByteArray(suffix) == ".json") {
        const auto json = nlohmann::json::parse(content.toStdString(), nullptr, false);
        QVERIFY(json.is_object() && !json["title"].get<std::string>().empty());
      } else {
        QVERIFY2(content.split('\n').size() > 2 && content.contains(','), content.constData());
      }
    }
  }

  /// No run was scored on a task: a file without a single curve would look like a result.
  void a_recipe_without_a_curve_is_refused() {
    const auto result = program_.run({"-q", "export", "--recipe", "task-scores", "plain", "--out", "none.csv"});
    QVERIFY2(result.code == 3 && is_one_error(result) && result.err.contains("panel 1 (score-dots)"), qPrintable(result.err));
    QVERIFY(!QFile::exists(program_.path("none.csv")));
    const auto held_back = program_.run({"-q", "export", "--recipe", "2505.18522-figure-1a", "plain", "--out", "held-back.csv"});
    QVERIFY2(held_back.code == 0 && QFile::exists(program_.path("held-back.csv")), qPrintable(held_back.err));
  }

  /// A folder gets all formats of a recipe, also one that is not there yet.
  void a_recipe_goes_into_a_new_folder() {
    program_.write("recipe.json", R"({"title": "t", "formats": ["csv", "json"], "panels": [{"chart": "trajectory"}]})");
    const auto result = program_.run({"-q", "export", "--recipe", "recipe.json", "plain", "--out", "paper/figures"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QVERIFY(QFile::exists(program_.path("paper/figures/recipe.csv")) && QFile::exists(program_.path("paper/figures/recipe.json")));
  }

  /// LaTeX includes the picture that stands beside it, by the name that the user gave both.
  void latex_includes_the_picture_of_its_own_name() {
    program_.write("recipe.json", R"({"title": "t", "panels": [{"chart": "loss"}]})");
    const auto result = program_.run({"-q", "export", "--recipe", "recipe.json", "plain", "--out", "losses.tex"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QFile file(program_.path("losses.tex"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray latex = file.readAll();
    QVERIFY2(latex.contains("]{losses}") && latex.contains("\\label{fig:losses}") && !latex.contains("{recipe}"), latex.constData());
  }

  /// What an option is without being given, and an example of the subcommand itself.
  void help_has_defaults_and_examples() {
    const auto help = [&](const QStringList& command) { return program_.run(command + QStringList{"--help"}).out; };
    for (const char* option : {"--tokens INT:INT in [1 - 16777216]=", "--temperature FLOAT:FLOAT in [0 - 10000]=", "--seed UINT="})
      QVERIFY2(help({"generate"}).contains(option), qPrintable(help({"generate"})));
    QVERIFY2(help({"inspect"}).contains("--top INT:NONNEGATIVE=12"), qPrintable(help({"inspect"})));
    QVERIFY2(help({"bench"}).contains("--repeats INT:INT in [1 - 1000]=5"), qPrintable(help({"bench"})));
    for (const char* command : {"list", "add", "seeds", "pause", "go-on", "move", "remove", "put-back"})
      QVERIFY2(help({"queue", command}).contains(QString("Example: saccade queue ") + command), command);
    QVERIFY(help({"study", "status"}).contains("NAME-OR-FOLDER") && help({"study", "plan"}).contains("NAME-OR-FILE"));
  }

  void presets_are_listed() {
    const auto names = program_.run({"architectures", "--presets"});
    QVERIFY2(names.out.contains("transformer-pp-tiny") && names.out.contains("llama with 3 gated_deltanet, 1 attention"),
             qPrintable(names.out));
    const auto none = program_.run({"-q", "train", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "--out", "never"});
    QVERIFY2(none.code == 2 && is_one_error(none) && none.err.contains("saccade architectures --presets"), qPrintable(none.err));
  }

  void ends_of_the_axes() {
    const QString out = program_.path("ends.json");
    const auto result = program_.run({"-q", "export", "loss", "plain", "--x-range", "100", "200.5", "--y-range", "-1", "4", "--out", out});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QFile file(out);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const auto figure = nlohmann::json::parse(file.readAll().toStdString());
    QCOMPARE(figure["x"]["range"].get<std::vector<double>>(), (std::vector<double>{100, 200.5}));
    QCOMPARE(figure["y"]["range"].get<std::vector<double>>(), (std::vector<double>{-1, 4}));
  }

  void pictures_without_the_workbench() {
    if (workbench()) QSKIP("saccade-workbench stands beside the program; pictures() tests it");
    const auto result = program_.run({"-q", "export", "loss", "plain", "--out", "loss.pdf"});
    QVERIFY2(result.code == 1 && is_one_error(result) && result.err.contains("saccade-workbench, which is not installed"),
             qPrintable(result.err));
    QVERIFY(!QFile::exists(program_.path("loss.pdf")));
  }

  void pictures() {
    if (!workbench()) QSKIP("saccade-workbench is not built: PDF, SVG and PNG not tested");
    for (const auto& [suffix, magic] : {std::pair("pdf", "%PDF"), std::pair("svg", "<?xml"), std::pair("png", "\x89PNG")})
      for (const QStringList& figure : {QStringList{"loss", "plain"}, QStringList{"trajectory", "plain", "chunks"},
                                        QStringList{"entropy", "plain"}, QStringList{"selection", "chunks"}}) {
        const QString out = program_.path(QString("picture.") + suffix);
        QFile::remove(out);
        const auto result = program_.run(QStringList{"-q", "export"} + figure + QStringList{"--out", out});
        QVERIFY2(result.code == 0, qPrintable(result.err));
        QFile file(out);
        QVERIFY(file.open(QIODevice::ReadOnly) && file.read(8).startsWith(magic) && file.size() > 1000);
      }
  }

 private:
  static bool workbench() { return QFile::exists(QFileInfo(qEnvironmentVariable("SACCADE_BINARY")).path() + "/saccade-workbench"); }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::InspectExportCliTest)
#include "inspect_export_cli_test.moc"
