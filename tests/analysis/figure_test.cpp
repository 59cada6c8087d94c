#include "analysis/figures/figure.h"

#include <QTemporaryDir>
#include <QtTest>
#include <clocale>
#include <cmath>
#include <set>
#include <tuple>

#include "analysis/figures/palette.h"
#include "kernels/engine/error.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

class FigureTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    for (const FixtureOptions& o :
         {FixtureOptions{.seed = 1}, FixtureOptions{.seed = 2}, FixtureOptions{.mixer = "top1_chunk"}, FixtureOptions{.mixer = "avey"}}) {
      const fs::path directory = fs::path(folder_.path().toStdString()) / (o.mixer + std::to_string(o.seed));
      write_fixture(directory, o);
      runs_.emplace_back(directory);
    }
    for (const Run& run : runs_) pointers_.push_back(&run);
  }

  void coloursAreOkabeAndItos() {
    const auto looks = architecture_looks({"Transformer++", "Top-1 Chunk exact", "Avey", "b", "c", "d", "e"});
    std::set<std::tuple<int, int, int>> found;
    for (const auto& [label, look] : looks) {
      found.insert({look.colour.r, look.colour.g, look.colour.b});
      QCOMPARE(look.marker, Marker::circle);
    }
    const std::set<std::tuple<int, int, int>> okabe_ito = {{0x00, 0x00, 0x00}, {0xE6, 0x9F, 0x00}, {0x56, 0xB4, 0xE9}, {0x00, 0x9E, 0x73},
                                                           {0x00, 0x72, 0xB2}, {0xD5, 0x5E, 0x00}, {0xCC, 0x79, 0xA7}};
    QVERIFY(found == okabe_ito);
    QCOMPARE(looks.at("Transformer++").colour, (Colour{0x00, 0x00, 0x00}));
    QCOMPARE(looks.at("Top-1 Chunk exact").colour, (Colour{0x00, 0x72, 0xB2}));
  }

  void manyArchitecturesDiffer() {
    std::vector<std::string> labels;
    for (int i = 0; i < 35; ++i) {
      labels.push_back(i % 2 ? "Avey " + std::to_string(i) : "RWKV-" + std::to_string(i));
      std::set<std::tuple<int, int, int, Marker>> found;
      for (const auto& [label, look] : architecture_looks(labels)) found.insert({look.colour.r, look.colour.g, look.colour.b, look.marker});
      QCOMPARE(found.size(), labels.size());
    }
  }

  void knownArchitecturesKeepTheirLook() {
    const std::vector<std::string> known = {
        "GPT",     "Transformer++", "Top-1 Element", "Top-1 Chunk exact", "Top-1 Chunk approx", "Avey",  "Mamba",
        "Mamba-2", "RWKV-5",        "RWKV-6",        "DeltaNet",          "Gated DeltaNet",     "Based", "RWKV-7"};
    std::vector<std::string> more = known;
    for (const char* variant : {"Transformer++ window 64", "A", "Avey ranker off"}) more.push_back(variant);
    const auto all = architecture_looks(more);
    std::set<std::tuple<int, int, int, Marker>> found;
    for (const std::string& label : known) {
      const ArchitectureLook alone = architecture_looks({label}).at(label), beside = all.at(label);
      QCOMPARE(alone.colour, beside.colour);
      QCOMPARE(alone.marker, beside.marker);
      found.insert({alone.colour.r, alone.colour.g, alone.colour.b, alone.marker});
    }
    QCOMPARE(found.size(), known.size());
  }

  void theFirstSettingKeepsItsArchitecturesLook() {
    const auto looks = architecture_looks({"Avey (a)", "Avey (b)", "Avey ranker off"});
    QCOMPARE(looks.at("Avey (a)").colour, architecture_looks({"Avey"}).at("Avey").colour);
    QVERIFY(!(looks.at("Avey (b)").colour == looks.at("Avey (a)").colour));
    QVERIFY(!(looks.at("Avey ranker off").colour == looks.at("Avey (a)").colour));
  }

  void aLaterVariantChangesNothingForOthers() {
    std::vector<std::string> labels = {"Transformer++", "Transformer++ window 64", "x", "y"};
    const auto before = architecture_looks(labels);
    labels.push_back("a");
    const auto after = architecture_looks(labels);
    for (const auto& [label, look] : before) QVERIFY(after.at(label).colour == look.colour && after.at(label).marker == look.marker);
  }

  void looksDoNotDependOnTheOrderOfRuns() {
    std::vector<const Run*> reversed(pointers_.rbegin(), pointers_.rend());
    auto looks = run_looks(reversed);
    std::reverse(looks.begin(), looks.end());
    QVERIFY(looks == run_looks(pointers_));
  }

  void runsLookAlikeAmongOthers() {
    const auto all = run_looks(pointers_), one = run_looks({pointers_[1]}, pointers_);
    QVERIFY(all[1] == one[0]);
    QCOMPARE(all[1].label, std::string("Transformer++, seed 2"));
    QCOMPARE(all[1].dash, Dash::dash);
    QCOMPARE(run_looks({pointers_[1]})[0].label, std::string("Transformer++"));
  }

  /// The eighth colour is the first again: a line without points of its own gets a few hollow markers.
  void aColourUsedTwiceIsToldByMarkers() {
    const RunInfo info = fixture_info({});
    const fs::path directory = fs::path(folder_.path().toStdString()) / "gpt";
    RunInfo gpt = info;
    gpt.title = "GPT";
    RunWriter writer = RunWriter::create(directory, gpt);
    for (int64_t step = 1; step <= 20; ++step) writer.add(fixture_step({}, step));
    const Run run(directory);
    const Curve curve = series_figure({&run}, "gradient_norm", XAxis::step, false, false).curves.at(0);
    QVERIFY(curve.sparse && curve.marker == Marker::square);
    QCOMPARE(series_figure({pointers_[0]}, "gradient_norm", XAxis::step, false, false).curves.at(0).marker, Marker::none);
  }

  void lossFigure() {
    const Figure f = loss_figure(pointers_, XAxis::tokens, true, false);
    QCOMPARE(f.curves.size(), size_t{15});  // and three that say in the legend what a line, a thin line and markers are
    QVERIFY(f.x.logarithmic && !f.y.logarithmic);
    QCOMPARE(f.y.title, std::string("loss (nats)"));
    QCOMPARE(f.curves[1].label, std::string("Transformer++, seed 1"));
    QCOMPARE(f.curves[2].label, std::string("Transformer++, seed 1, OOD"));
    QCOMPARE(f.curves[7].label, std::string("Top-1 Chunk exact"));
    QCOMPARE(f.curves[1].x, runs_[0].find("validation/loss")->tokens);
    QCOMPARE(f.curves[1].dash, Dash::solid);
    QCOMPARE(f.curves[4].dash, Dash::dash);
    QCOMPARE(f.curves[1].colour, f.curves[4].colour);
    QVERIFY(f.curves[2].marker == Marker::circle && !f.curves[0].in_legend);
    QCOMPARE(std::count_if(f.curves.begin(), f.curves.end(), [](const Curve& c) { return c.in_legend; }), std::ptrdiff_t{7});
    QVERIFY(f.curves[13].x.empty() && f.curves[13].label == "OOD");
    QCOMPARE(to_csv(f).substr(0, to_csv(f).find('\n')).find("validation"), std::string::npos);
    QCOMPARE(f.provenance.size(), size_t{4});
    QVERIFY(f.provenance[0].find("corpus_hash c0ffee") != std::string::npos);
  }

  void everyAxis_data() {
    QTest::addColumn<int>("axis");
    QTest::addColumn<double>("last");
    QTest::newRow("step") << static_cast<int>(XAxis::step) << 200.0;
    QTest::newRow("tokens") << static_cast<int>(XAxis::tokens) << 204800.0;
    QTest::newRow("flops") << static_cast<int>(XAxis::flops) << 1.2e12;
    QTest::newRow("seconds") << static_cast<int>(XAxis::seconds) << 10.0;
  }
  void everyAxis() {
    QFETCH(int, axis);
    QFETCH(double, last);
    QCOMPARE(series_figure(pointers_, "gradient_norm", static_cast<XAxis>(axis), false, false).curves[0].x.back(), last);
  }

  void otherRecipes() {
    const Figure t = trajectory_figure(pointers_, "c", 3.0);
    QVERIFY(t.identity_line && t.x.reversed);
    QCOMPARE(t.vertical_line.value(), 3.0);
    QCOMPARE(t.vertical_label, std::string("at loss 3.000"));
    QCOMPARE(t.curves[0].y, runs_[0].find("ood/loss/c")->value);
    QCOMPARE(entropy_figure({&runs_[0]}, XAxis::step, false).curves.size(), size_t{3});
    QCOMPARE(entropy_figure({&runs_[0]}, XAxis::step, true).y.range->at(1), 1.0);
    QVERIFY(series_figure(pointers_, "none", XAxis::step, false, false).curves.empty());
    const Figure s = series_figure(pointers_, "captured_mass/layer1", XAxis::step, false, false);
    QCOMPARE(s.curves.size(), size_t{1});
    QCOMPARE(s.id, std::string("captured_mass-layer1"));
  }

  void headFigure() {
    const Figure f = head_figure(*runs_[0].last_statistics(), "entropy");
    QCOMPARE(f.map->rows, int64_t{3});
    QCOMPARE(f.map->columns, int64_t{4});
    QCOMPARE(f.map->values[5], static_cast<float>(runs_[0].last_statistics()->statistics[1].heads[1]));
    QVERIFY(f.map->range[0] < f.map->range[1]);
    QVERIFY_THROWS_EXCEPTION(UsageError, head_figure(*runs_[0].last_statistics(), "none"));
  }

  void weightsFigure() {
    const Capture c = runs_[0].captures(200).front();
    const Figure f = capture_figure(c, MapKind::weights, 1, 2);
    QCOMPARE(f.map->rows, int64_t{96});
    const CapturedMap& map = c.maps[1];
    QCOMPARE(f.map->values[40 * 96 + 7], map.values[static_cast<size_t>((2 * 96 + 40) * 96 + 7)]);
    QVERIFY(std::isnan(f.map->values[40 * 96 + 41]));  // the future
    QVERIFY(f.map->marked.empty() && !f.map->diverging);
    QVERIFY_THROWS_EXCEPTION(UsageError, capture_figure(c, MapKind::score, 0, 0));
    QVERIFY_THROWS_EXCEPTION(UsageError, capture_figure(c, MapKind::weights, 0, 9));
  }

  void scoreFigureMarksWhatWasChosen() {
    const Capture c = runs_[2].captures(200).front();
    const Figure f = capture_figure(c, MapKind::score, 0, 1);
    QCOMPARE(f.map->rows, int64_t{96});
    QCOMPARE(f.map->columns, int64_t{6});
    QCOMPARE(f.map->marked.size(), size_t{80});  // every query but those of the first chunk
    for (const auto& [query, chunk] : f.map->marked) {
      QVERIFY(chunk < query / 16);
      for (int64_t other = 0; other < query / 16; ++other)
        QVERIFY(f.map->values[static_cast<size_t>(query * 6 + other)] <= f.map->values[static_cast<size_t>(query * 6 + chunk)]);
    }
    QVERIFY(std::isnan(f.map->values[20 * 6 + 1]));
    QVERIFY(std::isfinite(f.map->range[0]) && f.map->range[0] < f.map->range[1]);
    QCOMPARE(capture_figure(c, MapKind::captured_mass, 0, 0).map->rows, int64_t{4});
  }

  void maxsimFigureMarksWhatWasChosen() {
    const Figure f = capture_figure(runs_[3].captures(200).front(), MapKind::maxsim, 0, 0);
    QCOMPARE(f.map->rows, int64_t{6});
    QCOMPARE(f.map->marked.size(), size_t{9});  // 0 + 1 + 2 · 4
    QVERIFY(std::isnan(f.map->values[0]) && f.map->values[6] > 5);
  }

  void signedMapsAreCentred() {
    Capture c;
    c.maps.push_back({MapKind::weights, 0, {1, 2, 2}, {0.5F, 0, -2, 1}});
    const Figure f = capture_figure(c, MapKind::weights, 0, 0);
    QVERIFY(f.map->diverging);
    QCOMPARE(f.map->range, (std::array<double, 2>{-2, 2}));
  }

  void csvHasEveryDigitInAnyLocale() {
    Figure f;
    f.x.title = "step";
    f.y.title = "loss (nats)";
    f.curves.push_back({"a, \"b\"", {1, 2, 1e-300}, {0.1, std::nan(""), 1.0 / 3}, {}});
    f.curves.push_back({"c", {1}, {1e22}, {}});
    const char* before = std::setlocale(LC_ALL, nullptr);
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    const std::string csv = to_csv(f);
    std::setlocale(LC_ALL, before);
    QCOMPARE(csv, std::string("\"a, \"\"b\"\": step\",\"a, \"\"b\"\": loss (nats)\",c: step,c: loss (nats)\n"
                              "1,0.1,1,1e+22\n2,nan,,\n1e-300,0.3333333333333333,,\n"));
  }

  void csvOfMaps() {
    Figure f;
    f.map = HeatMap{.rows = 1, .columns = 2, .values = {0.1F, NAN}};
    QCOMPARE(to_csv(f), std::string("row,column,value\n0,0,0.1\n0,1,nan\n"));
    f.map->marked = {{0, 1}};
    QCOMPARE(to_csv(f), std::string("row,column,value,marked\n0,0,0.1,0\n0,1,nan,1\n"));
  }

  void jsonBothWays() {
    std::vector<Figure> figures = {loss_figure(pointers_, XAxis::flops, true, true), trajectory_figure(pointers_, "", 2.5),
                                   capture_figure(runs_[2].captures(200).front(), MapKind::score, 0, 1), Figure{}};
    figures[0].curves[0].y[3] = INFINITY;
    figures[0].curves[0].y[4] = std::nan("");
    for (const Figure& figure : figures) {
      const std::string text = to_json(figure).dump();
      const Figure back = figure_from_json(nlohmann::json::parse(text));
      QCOMPARE(to_json(back).dump(), text);
      QCOMPARE(to_csv(back), to_csv(figure));
      QCOMPARE(back.curves.size(), figure.curves.size());
      if (!figure.curves.empty()) QCOMPARE(back.curves.back().colour, figure.curves.back().colour);
    }
    QVERIFY_THROWS_EXCEPTION(DataError, figure_from_json(nlohmann::json::object()));
    nlohmann::json bad = to_json(figures[2]);
    bad["map"]["rows"] = 3;
    QVERIFY_THROWS_EXCEPTION(DataError, figure_from_json(bad));
  }

 private:
  QTemporaryDir folder_;
  std::vector<Run> runs_;
  std::vector<const Run*> pointers_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::FigureTest)
#include "figure_test.moc"
