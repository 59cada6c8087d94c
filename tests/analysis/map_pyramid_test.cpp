#include <QtTest>
#include <cmath>
#include <random>

#include "analysis/figures/margins.h"
#include "analysis/figures/reads.h"
#include "analysis/inspection/known_answers.h"
#include "analysis/inspection/large_map.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/capture_file.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

/// What maps show beside their cells, and maps that are too large for every cell.
class MapPyramidTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

  struct Made {
    int64_t rows, columns;
    std::vector<float> values;
    int64_t read = 0, most = 0;  ///< rows in all, at once

    Made(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {
      std::mt19937 random(7);
      std::uniform_real_distribution<float> uniform(-1, 1);
      for (float& v : values) v = random() % 5 == 0 ? std::numeric_limits<float>::quiet_NaN() : uniform(random);
    }
    MapRows source() {
      return {rows, columns, [this](int64_t first, int64_t count) {
                read += count, most = std::max(most, count);
                return std::vector<float>(values.begin() + first * columns, values.begin() + (first + count) * columns);
              }};
    }
    /// The value of greatest size in a block.
    float block(int64_t row, int64_t column, std::array<int64_t, 2> size) const {
      float kept = std::numeric_limits<float>::quiet_NaN();
      for (int64_t r = row; r < std::min(rows, row + size[0]); ++r)
        for (int64_t c = column; c < std::min(columns, column + size[1]); ++c) {
          const float v = values[static_cast<size_t>(r * columns + c)];
          if (!std::isnan(v) && (std::isnan(kept) || std::abs(v) > std::abs(kept))) kept = v;
        }
      return kept;
    }
  };
  static bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

 private Q_SLOTS:
  void blocksHoldTheGreatest_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    QTest::addColumn<int>("most");
    for (const auto& [r, c] : {std::pair(37, 37), std::pair(600, 600), std::pair(3001, 701), std::pair(4500, 33)})
      for (const int most : {8, 100, 5000}) QTest::addRow("%d x %d in %d", r, c, most) << r << c << most;
  }
  void blocksHoldTheGreatest() {
    QFETCH(int, rows);
    QFETCH(int, columns);
    QFETCH(int, most);
    Made made(rows, columns);
    MapPyramid pyramid(made.source());
    QVERIFY(pyramid.complete());
    QCOMPARE(made.read, int64_t{rows});
    QVERIFY(made.most <= MapPyramid::kBand);
    for (const MapPyramid::Part& part :
         {MapPyramid::Part{0, rows, 0, columns}, MapPyramid::Part{rows / 3, rows / 3 + 9, columns / 2, columns / 2 + 5},
          MapPyramid::Part{rows - 1, rows, 0, 1}}) {
      const HeatMap map = pyramid.part(part, most, most);
      QCOMPARE(map.cells, (std::array<int64_t, 2>{rows, columns}));
      const auto top = static_cast<double>(part.top), bottom = static_cast<double>(part.bottom), left = static_cast<double>(part.left),
                 right = static_cast<double>(part.right);
      QVERIFY(map.row_extent[0] <= top && map.row_extent[1] >= bottom && map.column_extent[0] <= left && map.column_extent[1] >= right);
      for (int64_t r = 0; r < map.rows; ++r)
        for (int64_t c = 0; c < map.columns; ++c) {
          const int64_t row = static_cast<int64_t>(map.row_extent[0]) + r * map.block[0],
                        column = static_cast<int64_t>(map.column_extent[0]) + c * map.block[1];
          const float shown = map.values[static_cast<size_t>(r * map.columns + c)], expected = made.block(row, column, map.block);
          QVERIFY2(same(shown, expected), qPrintable(QString("%1 %2: %3, not %4").arg(row).arg(column).arg(shown).arg(expected)));
        }
    }
  }

  /// Cells are what is asked for where there is room for them, however coarse the map is that is kept.
  void cellsAreSeenOneByOne() {
    Made made(5000, 5000);
    MapPyramid pyramid(made.source());
    const int64_t held = pyramid.bytes();
    for (int64_t at = 0; at + 300 < 5000; at += 400) {
      const HeatMap map = pyramid.part({at, at + 300, at, at + 300}, 400, 400);
      QCOMPARE(map.block, (std::array<int64_t, 2>{1, 1}));
    }
    QVERIFY(pyramid.bytes() > held);
    QVERIFY(pyramid.bytes() <= held + MapPyramid::kMostTiles * MapPyramid::kTile * MapPyramid::kTile * int64_t{4});
    const int64_t read = made.read;
    const HeatMap again = pyramid.part({4420, 4600, 4420, 4600}, 400, 400);
    QCOMPARE(made.read, read);  // tiles that were looked at last are there
    QCOMPARE(again.values.at(0), made.values[static_cast<size_t>((static_cast<int64_t>(again.row_extent[0])) * 5000 +
                                                                 static_cast<int64_t>(again.column_extent[0]))]);
  }

  void largeMapsStayInTheFile_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_element", "top1_chunk", "avey"}) QTest::newRow(mixer) << mixer;
  }
  void largeMapsStayInTheFile() {
    QFETCH(QString, mixer);
    const std::filesystem::path path = folder_.filePath(mixer + ".h5").toStdString();
    const Capture capture = fixture_capture({.mixer = mixer.toStdString(), .layers = 2}, 200, 0, "prose");
    write_captures(path, {capture});
    const Capture opened = open_captures(path, 100).at(0);
    QVERIFY(opened.stored);
    QCOMPARE(opened.selections, capture.selections);
    for (const CapturedMap& map : opened.maps) QCOMPARE(map.values.empty(), map.shape.size() == 3);
    for (const int64_t query : {5, 70}) {
      const Reads expected = reads_of(capture, 1, 0, query), read = reads_of(opened, 1, 0, query);
      QCOMPARE(read.weights, expected.weights);
      QCOMPARE(read.chosen_positions, expected.chosen_positions);
      QVERIFY(read.margin == expected.margin || (std::isnan(read.margin) && std::isnan(expected.margin)));
    }
    const Figure expected = capture_figure(capture, MapKind::weights, 1, 0), read = capture_figure(opened, MapKind::weights, 1, 0);
    QCOMPARE(to_csv(read), to_csv(expected));
    QVERIFY_THROWS_EXCEPTION(DataError, opened.stored->rows(opened.maps[0], 0, 1, 1 << 20));
  }

  void marginsAreTheDistanceOfTheChoice() {
    QCOMPARE(selection_margin({3, 1, 2.5}, {0}), 0.5);
    QCOMPARE(selection_margin({3, 1, 2.5}, {0, 2}), 1.5);
    QVERIFY(std::isnan(selection_margin({3}, {0})) && std::isnan(selection_margin({3, 1}, {})));
    // Scores 2, 1 and −1: their softmax tells them up to a constant, which the difference does not have.
    const double sum = std::exp(2) + std::exp(1) + std::exp(-1);
    QVERIFY(std::abs(element_margin({std::exp(2) / sum, std::exp(1) / sum, std::exp(-1) / sum}, {0}) - 1) < 1e-12);
    QVERIFY(std::isnan(element_margin({1, 0}, {0})));

    const Capture chunks = fixture_capture({.mixer = "top1_chunk"}, 200, 0, "prose");
    const CapturedMap& captured = require_map(chunks, MapKind::margin, 1, 2);
    Figure figure = with_margins(capture_figure(chunks, MapKind::score, 1, 1), chunks, 1, 1);
    QCOMPARE(figure.map->strip.size(), size_t(figure.map->rows));
    for (int64_t t = 0; t < figure.map->rows; ++t)
      QVERIFY(same(figure.map->strip[static_cast<size_t>(t)], captured.values[static_cast<size_t>(captured.shape[1] + t)]));
    const std::string csv = to_csv(figure);
    QVERIFY(csv.starts_with("row,column,value,marked,margin\n"));
    figure.map->strip_row = 3;
    const Figure back = figure_from_json(to_json(figure));
    QCOMPARE(to_csv(back), csv);
    QCOMPARE(back.map->strip_row, int64_t{3});

    const Capture splits = fixture_capture({.mixer = "avey"}, 200, 0, "prose");
    const Figure avey = with_margins(capture_figure(splits, MapKind::maxsim, 0, 0), splits, 0, 0);
    const std::vector<float> of_queries = choice_margins(splits, 0, 0);
    QCOMPARE(avey.map->strip.size(), size_t(avey.map->rows));
    QCOMPARE(of_queries.size(), splits.tokens.size());
    for (size_t t = 0; t < of_queries.size(); ++t) {
      QVERIFY(same(of_queries[t], avey.map->strip[t / 16]));
      QVERIFY(same(of_queries[t], static_cast<float>(reads_of(splits, 0, 0, static_cast<int64_t>(t)).margin)));
    }
    const Capture attention = fixture_capture({}, 200, 0, "prose");
    QVERIFY(with_margins(capture_figure(attention, MapKind::weights, 0, 0), attention, 0, 0).map->strip.empty());
  }

  void whatIsReadOfAKnownAnswerIsTold() {
    const std::vector<KnownAnswer> answers{{4, 1, 2}};
    const std::vector<double> weights{0.1, 0.05, -0.3, 0.2, 0.25, 0.05};
    const auto first = answer_read(answers, 4, weights), second = answer_read(answers, 5, weights);
    QVERIFY(first && first->source == 1 && first->weight == 0.05 && first->rank == 5);  // as much as the last one
    QVERIFY(second && second->source == 2 && second->weight == -0.3 && second->rank == 1);
    QVERIFY(!answer_read(answers, 3, weights) && !answer_read(answers, 6, weights) && !answer_read({{4, 6, 1}}, 4, weights));
  }

  /// The query before the token that is to be predicted, and what holds the same token: position, chunk of 16 or pair of splits.
  void knownAnswersStandInEveryMap() {
    const std::vector<KnownAnswer> answers{{70, 20, 2}, {40, 33, 1}};
    using Cells = std::vector<std::array<int64_t, 2>>;
    const Capture chunks = fixture_capture({.mixer = "top1_chunk"}, 200, 0, "prose");
    const auto known = [&](const Capture& capture, MapKind kind) {
      return with_answers(capture_figure(capture, kind, 0, 0), capture, {kind, 0, 0}, answers).map->known;
    };
    QCOMPARE(known(chunks, MapKind::weights), (Cells{{70, 20}, {71, 21}, {40, 33}}));
    QCOMPARE(known(chunks, MapKind::score), (Cells{{70, 1}, {71, 1}, {40, 2}}));
    const Capture splits = fixture_capture({.mixer = "avey"}, 200, 0, "prose");
    QCOMPARE(known(splits, MapKind::maxsim), (Cells{{4, 1}, {2, 2}}));
    const Figure figure = with_answers(capture_figure(chunks, MapKind::score, 0, 0), chunks, {MapKind::score, 0, 0}, answers);
    QVERIFY(to_csv(figure).find("known") != std::string::npos);
    QCOMPARE(figure_from_json(to_json(figure)).map->known, figure.map->known);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::MapPyramidTest)
#include "map_pyramid_test.moc"
