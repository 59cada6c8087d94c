#include "analysis/figures/figure.h"

#include <QTemporaryDir>
#include <QtTest>
#include <clocale>
#include <cmath>
#include <set>
#include <tuple>

#include "analysis/comparison/group_names.h"
#include "analysis/figures/palette.h"
#include "analysis/runs/run_writer.h"
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

  void coloursBelongToArchitectures() {
    QCOMPARE(architecture_colour("Transformer++"), (Colour{0x00, 0x00, 0x00}));
    QCOMPARE(architecture_colour("Top-1 Chunk exact"), (Colour{0x00, 0x72, 0xB2}));
    std::set<std::tuple<int, int, int>> found;
    const std::vector<std::string> known = {
        "GPT",     "Transformer++", "Top-1 Element", "Top-1 Chunk exact", "Top-1 Chunk approx", "Avey",  "Mamba",
        "Mamba-2", "RWKV-5",        "RWKV-6",        "DeltaNet",          "Gated DeltaNet",     "Based", "RWKV-7"};
    for (const std::string& title : known) {
      const Colour colour = architecture_colour(title);
      found.insert({colour.r, colour.g, colour.b});
      const auto [least, most] = std::minmax({colour.r, colour.g, colour.b});
      QVERIFY2(title == "Transformer++" || most - least > 60, title.c_str());  // whose shades are greys
    }
    QCOMPARE(found.size(), known.size());
    for (size_t unknown = 0; unknown < 5; ++unknown) {
      const Colour colour = architecture_colour("something new", unknown);
      found.insert({colour.r, colour.g, colour.b});
    }
    QCOMPARE(found.size(), known.size() + 5);
    QCOMPARE(architecture_colour("Transformer++ window 64"), architecture_colour("Transformer++"));  // its kin
    QCOMPARE(architecture_colour("Mamba-2", 3), architecture_colour("Mamba-2"));
  }

  void variantsDifferInShadeThenMarker() {
    for (const char* title : {"Transformer++", "Avey", "something new"}) {
      std::set<std::tuple<int, int, int, Marker>> found;
      for (size_t i = 0; i < 25; ++i) {
        const VariantLook look = variant_look(title, i);
        found.insert({look.colour.r, look.colour.g, look.colour.b, look.marker});
      }
      QCOMPARE(found.size(), size_t{25});
      QCOMPARE(variant_look(title, 0).colour, architecture_colour(title));
    }
  }

  /// The look of a setting is decided when its first run starts.
  void aLaterRunChangesNothingForOthers() {
    const auto run_of = [&](const char* name, int64_t layers) {
      RunInfo info = fixture_info({.layers = layers});
      info.name = name;
      const fs::path directory = fs::path(folder_.path().toStdString()) / "later" / name;
      fs::create_directories(directory.parent_path());
      RunWriter::create(directory, info).add(fixture_step({}, 1));
      return Run(directory);
    };
    const Run a = run_of("a", 5), b = run_of("b", 6), c = run_of("c", 7);
    const auto before = run_looks({&a, &b}), after = run_looks({&c, &a, &b});
    for (size_t i = 0; i < 2; ++i) QVERIFY(before[i].colour == after[i + 1].colour && before[i].marker == after[i + 1].marker);
    QVERIFY(!(after[0].colour == after[1].colour));
    QCOMPARE(before[0].label, std::string("Transformer++, layers 5"));
  }

  void namesGivenStay() {
    const auto groups = group_runs(pointers_);
    const auto kept = group_names(groups, {{pointers_[0]->setting(), "My baseline"}});
    QCOMPARE(kept[0], std::string("My baseline"));
    QCOMPARE(kept[1], std::string("Top-1 Chunk exact"));
  }

  /// What a run learns from is a corpus or a task, and the one that it has not stands in no name.
  void aTaskStandsForACorpus() {
    const auto run_of = [&](const char* name, const char* corpus, const char* task) {
      RunInfo info = fixture_info({});
      info.name = name;
      info.config["data"]["corpus"] = corpus, info.config["data"]["task"] = task;
      const fs::path directory = fs::path(folder_.path().toStdString()) / "sources" / name;
      fs::create_directories(directory.parent_path());
      RunWriter::create(directory, info).add(fixture_step({}, 1));
      return Run(directory);
    };
    const Run text = run_of("text", "books", ""), recall = run_of("recall", "", "mqar"), parity = run_of("parity", "", "parity");
    QCOMPARE(group_names(group_runs({&text, &recall})),
             (std::vector<std::string>{"Transformer++, corpus books", "Transformer++, task mqar"}));
    QCOMPARE(group_names(group_runs({&text, &recall, &parity})).back(), std::string("Transformer++, task parity"));
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

  /// The sixth setting of an architecture has its first shade again: a line without points of its own gets a few hollow markers.
  void aShadeUsedTwiceIsToldByMarkers() {
    DrawnRuns drawn = each_run({pointers_[0]}).front();
    drawn.marker = variant_look("Transformer++", 5).marker;
    QCOMPARE(drawn.marker, Marker::square);
    const Curve curve = series_figure(DrawnSet{drawn}, "gradient_norm", {}).curves.at(0);
    QVERIFY(curve.sparse && curve.marker == Marker::square);
    QCOMPARE(series_figure({pointers_[0]}, "gradient_norm", XAxis::step, false, false).curves.at(0).marker, Marker::none);
  }

  void seedsAreAMeanWithABand() {
    DrawnRuns both{"Transformer++", {}, Marker::circle, Dash::solid, {pointers_[0], pointers_[1]}};
    const Figure f = series_figure(DrawnSet{both}, "ood/loss", {.x = XAxis::step});
    QCOMPARE(f.curves.size(), size_t{1});
    const Curve& curve = f.curves[0];
    QCOMPARE(curve.label, std::string("Transformer++, mean of 2"));
    const Series &a = *runs_[0].find("ood/loss"), &b = *runs_[1].find("ood/loss");
    QCOMPARE(curve.x, a.step);
    QCOMPARE(curve.y[3], (a.value[3] + b.value[3]) / 2);
    QVERIFY(std::abs(curve.high[3] - curve.low[3] - std::sqrt(2.0) * std::abs(a.value[3] - b.value[3])) < 1e-12);
  }

  /// How curves were smoothed stands with the figure, once, and in no name.
  void smoothingStandsInTheCaption() {
    const auto names = [](const Figure& figure) {
      std::set<std::string> shown;
      for (const Curve& curve : figure.curves)
        if (curve.in_legend) shown.insert(curve.label);
      return shown;
    };
    CurveRecipe recipe{.x = XAxis::step};
    const Figure raw = loss_figure(each_run(pointers_), recipe);
    recipe.smoothing = {Smoothing::Kind::window, 51};
    const Figure smooth = loss_figure(each_run(pointers_), recipe);
    QVERIFY(names(smooth) == names(raw));
    const auto told = [](const std::string& line) { return line == "smoothing: mean within a centred window of 51 on the x axis"; };
    QCOMPARE(std::count_if(smooth.provenance.begin(), smooth.provenance.end(), told), std::ptrdiff_t{1});
  }

  /// The band of seeds that lie far apart ends at zero where the quantity does; a difference may be negative.
  void bandsEndAtZero() {
    std::vector<Run> apart;
    for (const double loss : {1.0, 9.0}) {
      const fs::path directory = fs::path(folder_.path().toStdString()) / ("apart" + std::to_string(loss));
      RunWriter writer = RunWriter::create(directory, fixture_info({.steps = 20}));
      for (int64_t step = 1; step <= 20; ++step) writer.add(StepRecord{step, 64 * step, 1e6, 0.1, loss, 1e-3, loss, 100 * loss});
      writer.add(EvaluationRecord{{20, 1280, 1e6, 0.1}, {{"prose", false, loss}, {"code", true, loss * loss}}});
      writer.set_state(RunState::finished, 20);
      apart.emplace_back(directory);
    }
    DrawnRuns all{"all", {}, Marker::circle, Dash::solid, {&apart[0], &apart[1]}};
    const CurveRecipe recipe{.x = XAxis::step, .spread = Spread::interval};
    const auto least = [](const Figure& figure) {
      double low = INFINITY;
      for (const Curve& curve : figure.curves)
        for (const double v : curve.low) low = std::min(low, v);
      return low;
    };
    QCOMPARE(least(series_figure(DrawnSet{all}, "tokens_per_second", recipe)), 0.0);
    QCOMPARE(least(loss_figure(DrawnSet{all}, recipe)), 0.0);
    QVERIFY(least(gap_figure(DrawnSet{all}, recipe)) < 0);
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
    QCOMPARE(to_csv(f).find("\nvalidation,"), std::string::npos);
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
    QVERIFY(f.map->range[0] == 0 && f.map->range[1] > 0);
    QCOMPARE(head_figure(*runs_[0].last_statistics(), "entropy_normalized").map->range, (std::array<double, 2>{0, 1}));
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
    const std::string a = "\"a, \"\"b\"\"\",";
    QCOMPARE(csv, "curve,step,loss (nats)\n" + a + "1,0.1\n" + a + "2,nan\n" + a + "1e-300,0.3333333333333333\nc,1,1e+22\n");
    f.curves[1].low = {1e21}, f.curves[1].high = {2e22};
    QVERIFY(to_csv(f).starts_with("curve,step,loss (nats),low,high\n" + a + "1,0.1,,\n"));
    QVERIFY(to_csv(f).ends_with("c,1,1e+22,1e+21,2e+22\n"));
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
    figures[0].curves[0].y.edit()[3] = INFINITY;
    figures[0].curves[0].y.edit()[4] = std::nan("");
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
