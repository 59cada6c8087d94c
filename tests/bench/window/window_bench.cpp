#include <sys/resource.h>
#include <time.h>

#include <QApplication>
#include <QDir>
#include <QMouseEvent>
#include <QPainter>
#include <QProcess>
#include <QTimer>
#include <QWheelEvent>
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "tests/bench/window/made_runs.h"
#include "ui/charts/figure_view.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/main_window.h"
#include "ui/watchdog.h"

/// Times the window as a user meets it, offscreen, on made-up folders of runs (make bench-window).
namespace saccade::test {
namespace {

using ui::FigureView;

struct Scenario {
  const char* name;
  MadeRuns runs;
  bool live;
};
constexpr Scenario kScenarios[] = {{"100x100000", {.runs = 100, .points = 100'000}, false},
                                   {"1000x10000", {.runs = 1000, .points = 10'000}, false},
                                   {"200-and-live", {.runs = 200, .points = 10'000}, true}};
constexpr int64_t kLivePoints = 2000;

class WatchedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    return watchdog.watch(receiver, event, [&] { return QApplication::notify(receiver, event); });
  }
  ui::Watchdog watchdog;
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Of the thread that asks.
double thread_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// "VmRSS", "VmHWM" of this process, MiB.
double memory(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
  return 0;
}

/// Nearest-rank percentile; 0 of nothing.
double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

void print(const QString& what, const QString& value) { std::printf("  %-46s %s\n", qPrintable(what), qPrintable(value)); }
QString ms(double value) { return QStringLiteral("%1 ms").arg(value, 0, 'f', 1); }
QString seconds(double value) { return QStringLiteral("%1 s").arg(value, 0, 'f', 2); }

/// Lets the event loop run until `done` or the time is over; true when done.
template <class F>
bool wait(double limit_s, F done) {
  QElapsedTimer clock;
  clock.start();
  while (!done()) {
    if (static_cast<double>(clock.elapsed()) > 1000 * limit_s) return false;
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);  // with a time limit it would not sleep
  }
  return true;
}

class Bench : public QObject {
 public:
  Bench(const Scenario& scenario, WatchedApplication& application, const QElapsedTimer& start)
      : scenario_(scenario), application_(application), start_(start) {}

  void run(const QString& folder) {
    session_ = std::make_unique<ui::Session>(folder);
    window_ = std::make_unique<ui::MainWindow>(*session_, nullptr);
    window_->resize(1600, 1000);
    window_->installEventFilter(this);
    window_->showPage(QStringLiteral("live"));
    connect(session_->runs(), &ui::RunList::loaded, this, [this] { listed_ = since_start(); });
    heartbeat_.start(10);
    window_->show();
    wait(600, [&] { return listed_ > 0 && first_paint_ > 0; });
    print(QStringLiteral("first paint"), seconds(first_paint_));
    print(QStringLiteral("all listed"), seconds(listed_));
    drawn();
    print_stall(QStringLiteral("longest stall until drawn"));
    print(QStringLiteral("memory (greatest)"),
          QStringLiteral("%1 MiB (%2 MiB)").arg(memory("VmRSS"), 0, 'f', 0).arg(memory("VmHWM"), 0, 'f', 0));
    if (scenario_.live) return follow();
    all_charts();
    toggles();
    open_groups();
    all_charts();
    print(QStringLiteral("memory at the end (greatest)"),
          QStringLiteral("%1 MiB (%2 MiB)").arg(memory("VmRSS"), 0, 'f', 0).arg(memory("VmHWM"), 0, 'f', 0));
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint && first_paint_ == 0) first_paint_ = since_start();
    return QObject::eventFilter(watched, event);
  }

 private:
  double since_start() const { return 1e-9 * static_cast<double>(start_.nsecsElapsed()); }

  /// All curves are read, and every figure holds still; beside a live run, which keeps some in motion, they have had time to be.
  void drawn() {
    size_t points = 0;
    double last = since_start();
    wait(600, [&] {
      size_t now = 0;
      for (const FigureView* view : window_->findChildren<FigureView*>())
        for (const Curve& curve : view->figure().curves) now += curve.x.size() + 1;
      const bool moves = !scenario_.live && (now != points || drawing());
      if (points == 0 || moves || session_->runs()->unread() > 0) points = now, last = since_start();
      return points > 0 && since_start() - last > (scenario_.live ? 2.5 : 1.5);
    });
    print(QStringLiteral("all drawn"), seconds(last));
  }

  bool drawing() const {
    const auto views = window_->findChildren<FigureView*>();
    return std::any_of(views.begin(), views.end(), [](const FigureView* view) { return view->isVisible() && view->drawing(); });
  }

  void print_stall(const QString& what) {
    const ui::Watchdog::Stall stall = application_.watchdog.longest();
    print(what, QStringLiteral("%1, %2 of them at work (%3 of %4)").arg(ms(stall.ms), ms(stall.busy_ms), stall.event, stall.receiver));
    application_.watchdog.forget();
  }

  /// What input events took until the chart was painted again, ms: by the clock, and at work, which other programs do not lengthen.
  struct Frames {
    std::vector<double> times, busy;
    QString words() const {
      return QStringLiteral("p95 %1 (%2 at work), median %3 (%4)")
          .arg(ms(percentile(times, 0.95)), ms(percentile(busy, 0.95)), ms(percentile(times, 0.5)), ms(percentile(busy, 0.5)));
    }
  };
  void frame(Frames& frames, FigureView& view, QEvent& event) {
    QElapsedTimer clock;
    clock.start();
    const double before = thread_milliseconds();
    QCoreApplication::sendEvent(&view, &event);
    view.repaint();
    frames.busy.push_back(thread_milliseconds() - before);
    frames.times.push_back(1e-6 * static_cast<double>(clock.nsecsElapsed()));
  }
  static QMouseEvent mouse(QEvent::Type type, const QPointF& at, const FigureView& view, bool held) {
    return {type, at, view.mapToGlobal(at), Qt::MiddleButton, held ? Qt::MiddleButton : Qt::NoButton, Qt::NoModifier};
  }

  Frames pan(FigureView& view) {
    Frames frames;
    const QPointF centre(0.6 * view.width(), 0.5 * view.height());
    QMouseEvent press = mouse(QEvent::MouseButtonPress, centre, view, true);
    QCoreApplication::sendEvent(&view, &press);
    for (int i = 1; i <= 60; ++i) {
      QMouseEvent move = mouse(QEvent::MouseMove, centre + QPointF(0.002 * i * view.width(), 0), view, true);
      frame(frames, view, move);
      QCoreApplication::processEvents();
    }
    QMouseEvent release = mouse(QEvent::MouseButtonRelease, centre, view, false);
    QCoreApplication::sendEvent(&view, &release);
    return frames;
  }
  Frames zoom(FigureView& view) {
    Frames frames;
    const QPointF centre(0.6 * view.width(), 0.5 * view.height());
    for (int i = 0; i < 40; ++i) {
      QWheelEvent wheel(centre, view.mapToGlobal(centre), {}, {0, i < 20 ? 120 : -120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase,
                        false);
      frame(frames, view, wheel);
      QCoreApplication::processEvents();
    }
    return frames;
  }

  /// Of every page that draws curves of runs.
  void all_charts() {
    for (const char* page : {"compare", "live"}) {
      window_->showPage(QLatin1String(page));
      drawn();
      charts();
    }
  }
  void charts() {
    for (FigureView* view : window_->findChildren<FigureView*>()) {
      if (!view->isVisible() || !ui::has_data(view->figure()) || view->figure().map) continue;
      const size_t curves = view->figure().curves.size();
      const Frames panned = pan(*view), zoomed = zoom(*view);
      QElapsedTimer clock;
      clock.start();
      view->showAll();
      view->repaint();
      wait(30, [&] { return !view->drawing(); });
      const double settled = 1e-6 * static_cast<double>(clock.nsecsElapsed());
      print(QStringLiteral("%1 (%2 curves)").arg(view->accessibleName()).arg(curves),
            QStringLiteral("pan %1; zoom %2; sharp after %3").arg(panned.words(), zoomed.words(), ms(settled)));
    }
  }

  /// Every seed by itself, where means were drawn.
  void open_groups() {
    const std::vector<ui::ShownGroup> groups = session_->runs()->selection().groups();
    for (const ui::ShownGroup& group : groups) session_->runs()->setOpened(group.key, true);
    print(QStringLiteral("seeds one by one"), QStringLiteral("%1 groups opened").arg(groups.size()));
    drawn();
    print_stall(QStringLiteral("longest stall until drawn"));
  }

  FigureView* loss() const {
    for (FigureView* view : window_->findChildren<FigureView*>())
      if (view->isVisible() && view->figure().id == "loss") return view;
    return nullptr;
  }

  /// From the click until the losses are others and painted.
  void toggles() {
    application_.watchdog.forget();
    std::vector<double> times;
    for (int i = 0; i < 6; ++i) {
      const auto before = loss()->prepared();
      QElapsedTimer clock;
      clock.start();
      ui::RunList& runs = *session_->runs();
      const QModelIndex run = runs.index(3 + i / 2);
      runs.setData(run, i % 2 == 1, ui::RunList::VisibleRole);
      if (!wait(30, [&] { return loss()->prepared() != before; })) break;
      loss()->repaint();
      times.push_back(1e-6 * static_cast<double>(clock.nsecsElapsed()));
    }
    print(QStringLiteral("toggle a run"),
          times.empty() ? QStringLiteral("the chart never followed")
                        : QStringLiteral("median %1, worst %2").arg(ms(percentile(times, 0.5)), ms(percentile(times, 1))));
    print_stall(QStringLiteral("longest stall while toggling"));
  }

  /// One run goes on; what that costs.
  void follow() {
    heartbeat_.start(500);  // a hundred wake-ups a second would be counted as the window's
    wait(3, [] { return false; });
    application_.watchdog.forget();
    const double wall = since_start(), used = processor_seconds();
    wait(20, [] { return false; });
    print(QStringLiteral("processor"),
          QStringLiteral("%1 % of a core").arg(100 * (processor_seconds() - used) / (since_start() - wall), 0, 'f', 1));
    print_stall(QStringLiteral("longest stall"));
  }

  const Scenario& scenario_;
  WatchedApplication& application_;
  const QElapsedTimer& start_;
  QTimer heartbeat_;  ///< wait() returns at least this often
  std::unique_ptr<ui::Session> session_;
  std::unique_ptr<ui::MainWindow> window_;
  double first_paint_ = 0, listed_ = 0;
};

int measure(int argc, char** argv, const QElapsedTimer& start, const Scenario& scenario, const QString& folder) {
  WatchedApplication application(argc, argv);
  std::printf("%s\n", scenario.name);
  QProcess live;
  if (scenario.live) {
    live.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    live.start(QCoreApplication::applicationFilePath(), {QStringLiteral("--write-live"), folder + QStringLiteral("/live")});
    live.waitForStarted();
  }
  Bench(scenario, application, start).run(folder);
  if (!scenario.live) return 0;
  live.waitForFinished(0);
  const bool lived = live.state() == QProcess::Running;
  if (!lived) std::printf("the live run had ended before it was measured\n");
  live.kill();
  live.waitForFinished();
  return lived ? 0 : 1;
}

/// Each scenario in a process of its own, so that its memory is its own.
int measure_all(const QString& program, const QStringList& wanted) {
  for (const Scenario& scenario : kScenarios) {
    if (!wanted.isEmpty() && !wanted.contains(QLatin1String(scenario.name))) continue;
    const QString folder = QDir::tempPath() + QStringLiteral("/saccade-bench-window/") + QLatin1String(scenario.name);
    make_runs(folder.toStdString(), scenario.runs);
    QProcess process;
    process.setProcessChannelMode(QProcess::ForwardedChannels);
    process.start(program, {QStringLiteral("--measure"), QLatin1String(scenario.name), folder});
    process.waitForFinished(-1);
    if (process.exitStatus() != QProcess::NormalExit || process.exitCode() != 0) return 1;
  }
  return 0;
}

int run(int argc, char** argv) {
  QElapsedTimer start;
  start.start();
  QStringList words;
  for (int i = 1; i < argc; ++i) words << QString::fromLocal8Bit(argv[i]);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (words.value(0) == QStringLiteral("--write-live")) {
    write_live_run(words.value(1).toStdString(), kLivePoints, 20);
    return 0;
  }
  if (words.value(0) == QStringLiteral("--make")) {
    make_runs(words.value(1).toStdString(), {.runs = words.value(2).toLongLong(), .points = words.value(3).toLongLong()});
    return 0;
  }
  if (words.value(0) == QStringLiteral("--measure"))
    for (const Scenario& scenario : kScenarios)
      if (words.value(1) == QLatin1String(scenario.name)) return measure(argc, argv, start, scenario, words.value(2));
  const QCoreApplication application(argc, argv);
  return measure_all(QCoreApplication::applicationFilePath(), words);
}

}  // namespace
}  // namespace saccade::test

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  try {
    return saccade::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "window_bench: %s\n", error.what());
    return 3;
  }
}
