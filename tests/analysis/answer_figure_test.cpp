#include <QtTest>

#include "analysis/figures/recipe.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_writer.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {
namespace fs = std::filesystem;

/// Right answers over what the names of domains say, from journals with made-up evaluations.
class AnswerFigureTest : public QObject {
  Q_OBJECT

  struct Share {
    std::string domain;
    bool ood;
    double accuracy;
  };
  QTemporaryDir folder_;

  Run answered(const std::string& mixer, int64_t seed, const std::vector<Share>& shares) const {
    const fs::path directory = fs::path(folder_.path().toStdString()) / (mixer + std::to_string(seed));
    RunWriter writer = RunWriter::create(directory, fixture_info({.mixer = mixer, .seed = seed, .steps = 10}));
    for (const int64_t step : {5, 10}) {
      EvaluationRecord record{fixture_position(step), {}};
      for (const Share& share : shares) {
        DomainLoss loss{share.domain, share.ood, 1.0};
        loss.accuracy = step == 10 ? share.accuracy : 0;  // the last evaluation counts
        record.losses.push_back(loss);
      }
      writer.add(record);
    }
    writer.set_state(RunState::finished, 10);
    return Run(directory);
  }
  static FigurePage page_of(const std::string& against, const RunSet& runs) {
    const nlohmann::json recipe{{"title", "t"}, {"panels", {{{"chart", "answers"}, {"against", against}}}}};
    return make_page(parse_recipe(recipe.dump(), "recipe", "r"), runs);
  }
  static Figure figure_of(const std::string& against, const RunSet& runs) { return page_of(against, runs).panels.at(0); }

 private Q_SLOTS:
  void shares_stand_at_the_numbers_in_the_names_of_domains() {
    const Run one = answered("attention", 1,
                             {{"length-64-pairs-4", false, 1.0}, {"length-64-pairs-16", false, 0.8}, {"length-256-pairs-64", true, 0.5}});
    const Run two = answered("attention", 2,
                             {{"length-64-pairs-4", false, 0.9}, {"length-64-pairs-16", false, 0.8}, {"length-256-pairs-64", true, 0.3}});
    const Run other = answered("top1_chunk", 1, {{"length-64-pairs-4", false, 0.2}});
    const Figure pairs = figure_of("pairs", {&one, &two, &other});
    QCOMPARE(pairs.curves.size(), size_t{2});
    QCOMPARE(pairs.curves[0].x, (std::vector<double>{4, 16, 64}));
    QVERIFY(std::abs(pairs.curves[0].y[0] - 0.95) < 1e-12 && std::abs(pairs.curves[0].y[2] - 0.4) < 1e-12);
    // two seeds, 1 and 0.9: Student's t of one degree is 12.706, over √2 of a deviation of 0.0707 it is 0.635; shares end at 0 and 1
    QVERIFY(std::abs(pairs.curves[0].low[0] - (0.95 - 0.6353)) < 1e-4 && pairs.curves[0].high[0] == 1);
    QVERIFY(std::isnan(pairs.curves[1].low[0]));
    QVERIFY(pairs.curves[0].bars && pairs.curves[1].bars && *pairs.curves[0].bars < *pairs.curves[1].bars);  // beside each other
    QCOMPARE(*pairs.curves[0].bars + *pairs.curves[1].bars, 0.0);
    const Figure lengths = figure_of("length", {&one});
    QCOMPARE(lengths.curves[0].x, (std::vector<double>{64, 256}));
    QVERIFY(std::abs(lengths.curves[0].y[0] - 0.9) < 1e-12);  // two domains of that length
    QCOMPARE(lengths.vertical_line, std::optional(64.0));
    QCOMPARE(lengths.x.title, std::string("length (tokens), trained up to 64"));
    QVERIFY(!pairs.vertical_line);  // 16 and 4
  }

  /// Avey's ranker reads the whole split that the answer stands in.
  void what_looks_ahead_is_named() {
    const Run ahead = answered("avey", 4, {{"length-64", false, 1.0}}), causal = answered("attention", 4, {{"length-64", false, 1.0}});
    const auto says = [](const RunSet& runs) {
      const QString caption = QString::fromStdString(page_of("length", runs).caption);
      return caption.contains(" Avey looks ahead, so what is read for an answer may depend on the answer itself.") &&
             caption.count("looks ahead") == 1;
    };
    QVERIFY(says({&ahead, &causal}));
    QVERIFY(!says({&causal}));
  }

  void runs_on_text_have_none() {
    const Run text = answered("attention", 3, {{"prose", false, std::numeric_limits<double>::quiet_NaN()}});
    QVERIFY(figure_of("length", {&text}).curves.empty());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AnswerFigureTest)
#include "answer_figure_test.moc"
