#include <sys/resource.h>
#include <time.h>

#include <QApplication>
#include <QLabel>
#include <QMenu>
#include <QTest>
#include <QToolButton>
#include <QToolTip>
#include <QWheelEvent>
#include <fstream>

#include "analysis/runs/hdf5.h"
#include "analysis/runs/run_info.h"
#include "tests/support/instrumented.h"
#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/prepared_figure.h"
#include "ui/inspect/beside_run.h"
#include "ui/inspect/large_map_view.h"

namespace saccade::test {

using namespace saccade::ui;

constexpr int64_t kTokens = 16384;

/// Made-up weights: near positions, one far one, nothing else. Positive.
float weight(int64_t t, int64_t j) {
  if (j > t) return 0;
  if (t - j < 12) return 1.0F / static_cast<float>(2 + t - j);
  return j == (t * 7919) % (t + 1) ? 0.25F + static_cast<float>(t % 97) / 1000 : 0.0F;
}

/// Takes the processor time of this thread in every event of its loop: other work on the machine does not count.
class MeasuredApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_++ > 0) {
      const bool handled = QApplication::notify(receiver, event);
      --depth_;
      return handled;
    }
    const double start = now();
    const QString name = QString("%1 %2").arg(receiver->metaObject()->className()).arg(static_cast<int>(event->type()));
    const bool handled = QApplication::notify(receiver, event);
    --depth_;
    took_.emplace_back(now() - start, name);
    return handled;
  }
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  }
  void forget() { took_.clear(); }
  std::pair<double, QString> longest() const {
    return took_.empty() ? std::pair<double, QString>() : *std::max_element(took_.begin(), took_.end());
  }

 private:
  int depth_ = 0;
  std::vector<std::pair<double, QString>> took_;  ///< ms
};

int64_t resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) / 1024;
  return -1;
}

/// A dense map of 16 384 tokens, 1 GiB, in the page: read by chunks, without a stop of the window.
class LargeMapTest : public QObject {
  Q_OBJECT

  /// Weights of `count` tokens, `times` as great as weight().
  static void write_capture(const std::filesystem::path& path, int64_t count = kTokens, float times = 1) {
    std::filesystem::remove(path);
    h5::Writer file(path);
    file.root().set_attribute("format_version", int64_t{1});
    file.root().set_attribute("sample_count", int64_t{1});
    const h5::Group sample = file.root().create("sample0");
    sample.set_attribute("domain", "made up");
    for (const char* number : {"sample", "step", "tokens"}) sample.set_attribute(number, int64_t{200});
    for (const char* number : {"flops", "seconds"}) sample.set_attribute(number, 1.0);
    sample.set_attribute("map_count", int64_t{1});
    std::vector<int32_t> tokens;
    std::vector<uint8_t> bytes;
    std::vector<int64_t> ends;
    for (int64_t t = 0; t < count; ++t) {
      tokens.push_back(static_cast<int32_t>('a' + t % 26));
      bytes.push_back(t % 7 == 6 ? ' ' : static_cast<uint8_t>('a' + t % 26));
      ends.push_back(t + 1);
    }
    sample.write("text_tokens", tokens);
    sample.write("piece_bytes", bytes);
    sample.write("piece_ends", ends);
    sample.write("token_losses", std::vector<float>(static_cast<size_t>(count), 1.5F));
    const h5::Group map = sample.create("maps/0");
    map.set_attribute("name", "weights");
    map.set_attribute("layer", int64_t{0});
    std::vector<float> values(static_cast<size_t>(count * count));
    for (int64_t t = 0; t < count; ++t) {
      float* row = values.data() + t * count;
      for (int64_t j = std::max<int64_t>(0, t - 11); j <= t; ++j) row[j] = times * weight(t, j);
      row[(t * 7919) % (t + 1)] = times * weight(t, (t * 7919) % (t + 1));
    }
    map.write<float>("values", values, {1, count, count}, 1);
    file.close();
  }

 private Q_SLOTS:
  void sixteen_thousand_tokens() {
    auto& app = *static_cast<MeasuredApplication*>(qApp);
    const FixtureOptions options{.layers = 1};
    PageOnRuns page("inspect", {options}, {1500, 900}, [&](const QString& folder) {
      const std::filesystem::path run = (folder + "/attention-1").toStdString();
      std::filesystem::create_directories(run / "captures");
      write_capture(step_file(run, kCaptures, 200));
    });
    FigureView* view = nullptr;
    LargeMapView* large = page.widget().findChild<LargeMapView*>();
    const int64_t before = resident_mib();
    int64_t most = before;
    app.forget();
    page.session().setCurrentRun(page.directory(options));
    const auto there = [&] {
      most = std::max(most, resident_mib());
      for (FigureView* each : page.widget().findChildren<FigureView*>())
        if (each->figure().map && each->figure().map->cells[0] == kTokens) view = each;
      return view != nullptr;
    };
    QVERIFY(QTest::qWaitFor(there, 240000));
    QCOMPARE(view->figure().map->range[1], 0.5);
    report(app, "opening");

    app.forget();
    std::vector<double> frames;
    const QPointF centre = view->rect().center();
    const auto frame = [&](const auto& move) {
      const double start = MeasuredApplication::now();
      move();
      view->repaint();
      frames.push_back(MeasuredApplication::now() - start);
      QTest::qWait(1);
      most = std::max(most, resident_mib());
    };
    for (int i = 0; i < 40; ++i)
      frame([&] {
        QWheelEvent wheel(centre, view->mapToGlobal(centre), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(view, &wheel);
      });
    QTest::mousePress(view, Qt::LeftButton, Qt::ShiftModifier, centre.toPoint());
    for (int i = 0; i < 60; ++i) frame([&] { QTest::mouseMove(view, centre.toPoint() + QPoint(2 * i, i)); });
    QTest::mouseRelease(view, Qt::LeftButton, Qt::ShiftModifier, centre.toPoint() + QPoint(120, 60));
    std::sort(frames.begin(), frames.end());
    const double p95 = frames[frames.size() * 95 / 100];
    qInfo("frames of zoom and pan: median %.1f ms, 95 %% %.1f ms, longest %.1f ms", frames[frames.size() / 2], p95, frames.back());
    QVERIFY2(p95 < 16 * kSlower, qPrintable(QString::number(p95)));
    QVERIFY(QTest::qWaitFor([&] { return !large->busy(); }, 60000));
    report(app, "zoom and pan");

    // Every cell is one now, and the finer picture and the value under the pointer are those of the capture.
    const auto shown = view->shownFigure();
    QCOMPARE(shown.map->block, (std::array<int64_t, 2>{1, 1}));
    const auto row = static_cast<int64_t>(shown.map->row_extent[0]), column = static_cast<int64_t>(shown.map->column_extent[0]);
    QVERIFY(column <= row);
    for (int64_t r = 0; r < shown.map->rows; r += 3)
      for (int64_t c = 0; c < shown.map->columns && column + c <= row + r; ++c)
        QCOMPARE(shown.map->values[static_cast<size_t>(r * shown.map->columns + c)], weight(row + r, column + c));
    for (const std::array<int64_t, 2>& cell : {std::array<int64_t, 2>{9000, 8995}, std::array<int64_t, 2>{16383, 5}}) {
      QVERIFY(QTest::qWaitFor([&] { return large->value(cell[0], cell[1]).has_value(); }, 60000));
      QCOMPARE(*large->value(cell[0], cell[1]), weight(cell[0], cell[1]));
    }
    most = std::max(most, resident_mib());
    qInfo("resident before %lld MiB, at most %lld MiB with the map of 1024 MiB", static_cast<long long>(before),
          static_cast<long long>(most));
    QVERIFY2(most - before < 300, qPrintable(QString("%1 MiB more").arg(most - before)));

    app.forget();
    for (const int query : {100, 9000, 16000}) {
      page.session().setQuery(query);
      QVERIFY(QTest::qWaitFor([&] { return titled(page, QString("Query %1 ").arg(query)); }, 60000));
    }
    report(app, "choosing queries");
    page.shoot("inspect-16384");
  }

  /// What another run's weights are more than those of this one, of more tokens than are drawn cell by cell: in blocks, the very value
  /// where one points, and no stop of the window meanwhile.
  void a_large_difference() {
    constexpr int64_t tokens = 4096;
    auto& app = *static_cast<MeasuredApplication*>(qApp);
    FixtureOptions one{.layers = 1}, other = one;
    other.seed = 2;
    PageOnRuns page("inspect", {one, other}, {1500, 900}, [&](const QString& folder) {
      for (const auto& [name, times] : {std::pair("/attention-1", 1.0F), std::pair("/attention-2", 0.5F)}) {
        const std::filesystem::path run = (folder + name).toStdString();
        std::filesystem::create_directories(run / "captures");
        write_capture(step_file(run, kCaptures, 200), tokens, times);
      }
    });
    app.forget();
    page.session().setCurrentRun(page.directory(one));
    auto* button = page.child<QToolButton>("Runs to show beside this one");
    Q_EMIT button->menu()->aboutToShow();
    QCOMPARE(button->menu()->actions().size(), 1);
    button->menu()->actions().front()->setChecked(true);
    for (auto* each : page.widget().findChildren<QToolButton*>())
      if (each->text() == "di&fference") each->setChecked(true);
    auto* beside = page.widget().findChild<BesideRun*>();
    QVERIFY(beside);
    FigureView* view = beside->map();
    QVERIFY(QTest::qWaitFor([&] { return view->figure().map && view->figure().map->cells[0] == tokens; }, 120000));
    report(app, "opening a difference");
    const HeatMap& map = *view->figure().map;
    QVERIFY(map.diverging && map.block[0] > 1);
    QCOMPARE(map.range, (std::array<double, 2>{-0.25, 0.25}));  // half of weight(t, t) = 0.5
    page.shoot("inspect-difference-4096");

    const QPointF centre = view->rect().center();
    app.forget();
    for (int i = 0; i < 30; ++i) {
      QWheelEvent wheel(centre, view->mapToGlobal(centre), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
      QApplication::sendEvent(view, &wheel);
      QTest::qWait(5);
    }
    QTRY_COMPARE_WITH_TIMEOUT(view->shownFigure().map->block, (std::array<int64_t, 2>{1, 1}), 60000);
    report(app, "looking closer");
    const HeatMap cells = *view->shownFigure().map;
    const auto row = static_cast<int64_t>(cells.row_extent[0]), column = static_cast<int64_t>(cells.column_extent[0]);
    for (int64_t r = 0; r < cells.rows; r += 3)
      for (int64_t c = 0; c < cells.columns && column + c <= row + r; ++c)
        QCOMPARE(cells.values[static_cast<size_t>(r * cells.columns + c)], -0.5F * weight(row + r, column + c));

    const auto told = [] { return QToolTip::text().contains("difference of weights ") && !QToolTip::text().contains(tr("…")); };
    for (int i = 0; i < 20 && !told(); ++i) {  // where values take long to come, the tip has gone by then
      QTest::mouseMove(view, centre.toPoint() + QPoint(0, 3));
      QTest::mouseMove(view, centre.toPoint());
      static_cast<void>(QTest::qWaitFor(told, 3000));
    }
    QVERIFY2(told(), qPrintable(QToolTip::text()));
    const QStringList words = QToolTip::text().split(' ');
    const auto number = [&](const char* after) { return words.at(words.indexOf(after) + 1).toLongLong(); };
    const int64_t query = number("query"), source = number("position");
    QVERIFY2(query < tokens && source < tokens, qPrintable(QToolTip::text()));
    if (source > query)
      QCOMPARE(words.back(), tr("none"));
    else
      QVERIFY2(std::abs(words.back().toFloat() + 0.5F * weight(query, source)) < 1e-6F, qPrintable(QToolTip::text()));
  }

 private:
  static bool titled(PageOnRuns& page, const QString& start) {
    for (const QLabel* label : page.widget().findChildren<QLabel*>())
      if (label->text().startsWith(start)) return true;
    return false;
  }
  static void report(const MeasuredApplication& app, const char* what) {
    const auto [ms, name] = app.longest();
    qInfo("%s: longest event %.1f ms (%s)", what, ms, qPrintable(name));
    QVERIFY2(ms <= 16 * kSlower, qPrintable(QString("%1: %2 ms in %3").arg(QLatin1String(what)).arg(ms).arg(name)));
  }
};

}  // namespace saccade::test

int main(int argc, char** argv) {
  saccade::test::MeasuredApplication app(argc, argv);
  saccade::test::LargeMapTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "large_map_test.moc"
