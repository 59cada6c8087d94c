#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QSettings>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "app/workbench/render.h"
#include "app/workbench/screenshot.h"
#include "models/corpus/corpus.h"
#include "ui/page.h"
#include "ui/session.h"
#include "ui/shell/main_window.h"
#include "ui/watchdog.h"

namespace {

using namespace saccade;

/// In debug builds it says on stderr what kept the event loop busy for longer than a frame of 60 a second.
class Application : public QApplication {
 public:
  using QApplication::QApplication;
#ifndef NDEBUG
  bool notify(QObject* receiver, QEvent* event) override {
    return watchdog_.watch(receiver, event, [&] { return QApplication::notify(receiver, event); });
  }

 private:
  ui::Watchdog watchdog_{16};
#endif
};

struct Options {
  QString runs, page, screenshot, size, render, out;
  std::optional<ui::Theme> theme;
};

/// One line on stderr; the exit code for wrong usage.
int usage_error(const QString& text) {
  std::fprintf(stderr, "saccade-workbench: %s\n", qPrintable(text));
  return 2;
}

QString page_names() {
  QStringList names;
  for (const ui::Page& page : ui::pages()) names << page.id;
  return names.join(QStringLiteral(", "));
}

void declare(QCommandLineParser& parser) {
  parser.setApplicationDescription(
      QStringLiteral("The window of Saccade: configure, follow, inspect and compare training runs.\n\n"
                     "Examples:\n  saccade-workbench --runs ~/runs --page live\n  saccade-workbench --render loss.json --out loss.pdf"));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addOptions(
      {{QStringLiteral("runs"), QStringLiteral("Folder of runs (the last one used, else the user's runs folder)."),
        QStringLiteral("FOLDER")},
       {QStringLiteral("theme"), QStringLiteral("light, dark or system."), QStringLiteral("THEME")},
       {QStringLiteral("page"), QStringLiteral("Page to show: %1.").arg(page_names()), QStringLiteral("PAGE")},
       {QStringLiteral("render"), QStringLiteral("Write a figure without a window; needs --out."), QStringLiteral("FIGURE.json")},
       {QStringLiteral("out"), QStringLiteral("File to render to: .pdf, .svg, .png or .csv."), QStringLiteral("FILE")},
       {QStringLiteral("screenshot"), QStringLiteral("Save a picture of the window once its pages have data, and quit."),
        QStringLiteral("FILE.png")},
       {QStringLiteral("size"), QStringLiteral("Size of the window."), QStringLiteral("WIDTHxHEIGHT")}});
}

/// The place of what the window remembers between two starts ($XDG_STATE_HOME).
QString settings_file() {
  const QString given = qEnvironmentVariable("XDG_STATE_HOME");
  const QString state = QDir::isAbsolutePath(given) ? given : QDir::homePath() + QStringLiteral("/.local/state");
  return state + QStringLiteral("/saccade/workbench.ini");
}

int show_window(QApplication& application, const Options& options) {
  ui::useStyle();
  const bool picture = !options.screenshot.isEmpty();
  QSettings settings(settings_file(), QSettings::IniFormat);
  const auto remembered = [&](const char* key) { return picture ? QString() : settings.value(QLatin1String(key)).toString(); };
  const QStringList folders = picture ? QStringList() : settings.value(QStringLiteral("folders")).toStringList();
  const QString last =
      folders.isEmpty() || !QDir(folders.first()).exists() ? QString::fromStdString(runs_folder().string()) : folders.first();

  ui::Session session(options.runs.isEmpty() ? last : options.runs);
  ui::MainWindow window(session, picture ? nullptr : &settings);
  window.setTheme(options.theme.value_or(ui::themeFromName(remembered("theme")).value_or(ui::Theme::system)));
  const QStringList size = options.size.split(QLatin1Char('x'));
  if (size.size() == 2) window.resize(size[0].toInt(), size[1].toInt());
  window.showPage(!options.page.isEmpty() ? options.page : remembered("page").isEmpty() ? QStringLiteral("live") : remembered("page"));
  if (window.page().isEmpty() && !ui::pages().empty()) window.showPage(ui::pages().front().id);
  window.show();
  if (picture) return workbench::take_screenshot(application, window, session, options.screenshot);
  return application.exec();
}

/// What is only written or printed needs no display.
bool needs_window(int argc, char** argv) {
  const char* const without[] = {"--help", "--help-all", "-h", "--version", "-v"};
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--render", 8) == 0) return false;
    for (const char* option : without)
      if (std::strcmp(argv[i], option) == 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of the write, with its message
  if (!needs_window(argc, argv)) qputenv("QT_QPA_PLATFORM", "offscreen");
  Application application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("saccade"));
  QApplication::setApplicationName(QStringLiteral("saccade-workbench"));
  QApplication::setApplicationDisplayName(QStringLiteral("Saccade"));
  QApplication::setApplicationVersion(QStringLiteral(SACCADE_VERSION));
  QApplication::setDesktopFileName(QStringLiteral("io.github.saccade.Workbench"));

  QCommandLineParser parser;
  declare(parser);
  if (!parser.parse(QApplication::arguments())) return usage_error(parser.errorText());
  if (parser.isSet(QStringLiteral("help"))) parser.showHelp(0);
  if (parser.isSet(QStringLiteral("version"))) parser.showVersion();
  if (!parser.positionalArguments().isEmpty())
    return usage_error(QStringLiteral("unexpected argument “%1”").arg(parser.positionalArguments().first()));

  Options options{parser.value(QStringLiteral("runs")),
                  parser.value(QStringLiteral("page")),
                  parser.value(QStringLiteral("screenshot")),
                  parser.value(QStringLiteral("size")),
                  parser.value(QStringLiteral("render")),
                  parser.value(QStringLiteral("out")),
                  {}};
  if (parser.isSet(QStringLiteral("theme"))) {
    options.theme = ui::themeFromName(parser.value(QStringLiteral("theme")));
    if (!options.theme)
      return usage_error(QStringLiteral("--theme is “%1”, expected light, dark or system").arg(parser.value(QStringLiteral("theme"))));
  }
  if (!options.render.isEmpty() || !options.out.isEmpty()) {
    if (options.render.isEmpty() || options.out.isEmpty()) return usage_error(QStringLiteral("--render and --out belong together"));
    return workbench::render_figure(options.render, options.out, options.theme == ui::Theme::dark);
  }
  if (!options.page.isEmpty() && !page_names().split(QStringLiteral(", ")).contains(options.page))
    return usage_error(QStringLiteral("--page is “%1”, expected one of %2").arg(options.page, page_names()));
  if (!options.runs.isEmpty() && !QDir(options.runs).exists())
    return usage_error(QStringLiteral("--runs %1: there is no such folder").arg(options.runs));
  return show_window(application, options);
}
