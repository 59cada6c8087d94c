#include "ui/session.h"

#include <QDateTime>
#include <QDesktopServices>
#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QUrl>
#include <algorithm>

#include "analysis/remote/mirror.h"
#include "analysis/runs/run_origin.h"
#include "analysis/training/training_run.h"
#include "models/json.h"
#include "ui/files/write_file.h"
#include "ui/program_call.h"
#include "ui/run_list.h"
#include "ui/run_process.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {

/// "20261120-104912-top1-chunk-exact-s1", not taken yet.
QString new_directory(const QString& folder, const nlohmann::json& config) {
  QString slug = QString::fromStdString(config.value("name", std::string("run"))).toLower();
  slug.replace(QRegularExpression(QStringLiteral("[^a-z0-9]+")), QStringLiteral("-"));
  slug.remove(QRegularExpression(QStringLiteral("^-+|-+$")));
  const auto seed = config.value("training", nlohmann::json::object()).value("seed", int64_t{1});
  const QString stem = QStringLiteral("%1/%2-%3-s%4")
                           .arg(folder, QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss")),
                                slug.isEmpty() ? QStringLiteral("run") : slug.left(60))
                           .arg(seed);
  QString directory = stem;
  for (int n = 2; QFileInfo::exists(directory); ++n) directory = QStringLiteral("%1-%2").arg(stem).arg(n);
  return directory;
}

QString text_of(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

/// Where a run of a host is mirrored; nothing for one of this machine.
std::optional<MirrorState> mirror_in(const QString& directory) try {
  return mirror_of(directory.toStdString());
} catch (const std::exception&) {
  return {};
}

/// Where configs and first messages of started runs are kept: beside the runs, hidden from lists.
QString starting_folder(const QString& runs) { return runs + QStringLiteral("/.started"); }

/// The folder where what is started lies with what it said; what a window that was killed left there goes. False: it cannot be made.
bool make_starting_folder(const QString& folder) {
  if (!QDir().mkpath(folder)) return false;
  remove_abandoned_files(folder.toStdString());
  return true;
}

/// "KEY #rrggbb" of each group, in order.
QStringList words_of(const QHash<QString, Colour>& colours) {
  QStringList words;
  for (auto each = colours.cbegin(); each != colours.cend(); ++each)
    words << each.key() + QLatin1Char(' ') + QColor(each->r, each->g, each->b).name();
  words.sort();
  return words;
}

QHash<QString, Colour> colours_in(const QStringList& words) {
  QHash<QString, Colour> colours;
  for (const QString& each : words)
    if (const QColor colour(each.section(QLatin1Char(' '), 1)); colour.isValid())
      colours.insert(each.section(QLatin1Char(' '), 0, 0),
                     {static_cast<uint8_t>(colour.red()), static_cast<uint8_t>(colour.green()), static_cast<uint8_t>(colour.blue())});
  return colours;
}

}  // namespace

Session::Session(const QString& runsFolder, QObject* parent) : QObject(parent), runs_(new RunList(runsFolder, this)) {
  connect(runs_, &RunList::changed, this, &Session::chooseRun);
  connect(runs_, &RunList::loaded, this, &Session::chooseRun);
  connect(runs_, &RunList::selectionChanged, this, [this] {
    place_.set("filter", runs_->selection().filter());
    place_.set("hidden", runs_->hidden());
    place_.set("opened", QStringList(runs_->selection().opened().values()));
    place_.set("baseline", runs_->selection().baseline());
    place_.set("colours", words_of(runs_->selection().colours()));
  });
}

void Session::remember(QSettings* settings) {
  place_.setSettings(settings);
  if (!settings) return;
  const auto number = [&](const char* key, int otherwise) {
    const QVariant value = place_.value(key);
    return value.isValid() ? value.toInt() : otherwise;
  };
  started_ = place_.value("run").toString();
  captureStep_ = place_.value("step").isValid() ? place_.value("step").toLongLong() : -1;
  stepLinked_ = !place_.value("stepLinked").isValid() || place_.value("stepLinked").toBool();
  sample_ = number("sample", 0), layer_ = number("layer", 0), head_ = number("head", 0), query_ = number("query", -1);
  xAxis_ = static_cast<XAxis>(std::clamp(number("x", static_cast<int>(XAxis::tokens)), 0, 3));
  const QStringList opened = place_.value("opened").toStringList(), hidden = place_.value("hidden").toStringList();
  const QHash<QString, Colour> colours = colours_in(place_.value("colours").toStringList());
  const QString baseline = place_.value("baseline").toString(), filter = place_.value("filter").toString();
  for (const QString& key : opened) runs_->setOpened(key, true);  // all read before: each of these is remembered at once
  runs_->setColours(colours);
  runs_->setBaseline(baseline);
  runs_->setFilter(filter);
  runs_->setHidden(hidden);
}

void Session::setChosen(const QStringList& directories) {
  if (directories == chosen_) return;
  chosen_ = directories;
  Q_EMIT chosenChanged();
}

/// There is a current run as long as there are runs: the chosen one, else one at work, else the newest; in place of a cooldown branch the
/// run that it belongs to, which may be read later than its branch.
void Session::chooseRun() {
  if (runs_->row(started_) >= 0) setCurrentRun(std::exchange(started_, {}));
  if (runs_->run(currentRun_)) return;
  QString choice;
  for (int row = runs_->rowCount() - 1; row >= 0; --row) {
    const QModelIndex index = runs_->index(row);
    const Run* run = runs_->run(index.data(RunList::DirectoryRole).toString());
    if (!run || (runs_->loading() && !trunk_in(index.data(RunList::DirectoryRole).toString()).isEmpty())) continue;
    const Run* chosen = runs_->run(choice);
    if (!chosen || isActive(run->info().state) || !isActive(chosen->info().state)) choice = index.data(RunList::DirectoryRole).toString();
  }
  const QString trunk = trunk_in(choice);
  setCurrentRun(runs_->run(trunk) ? trunk : choice);
}

void Session::setCurrentRun(const QString& directory) {
  if (directory == currentRun_) return;
  currentRun_ = directory;
  if (!directory.isEmpty()) place_.set("run", directory);
  Q_EMIT currentRunChanged(currentRun_);
}

void Session::setCaptureStep(qint64 step) {
  if (step == captureStep_) return;
  captureStep_ = step;
  place_.set("step", step);
  Q_EMIT captureStepChanged(step);
}

void Session::setStepLinked(bool linked) {
  if (linked == stepLinked_) return;
  stepLinked_ = linked;
  place_.set("stepLinked", linked);
  Q_EMIT stepLinkChanged(linked);
}

void Session::setSample(int sample) {
  if (sample == sample_) return;
  sample_ = sample;
  place_.set("sample", sample);
  Q_EMIT sampleChanged(sample);
}

void Session::setHead(int layer, int head) {
  if (layer == layer_ && head == head_) return;
  layer_ = layer, head_ = head;
  place_.set("layer", layer);
  place_.set("head", head);
  Q_EMIT headChanged(layer, head);
}

void Session::setQuery(int query) {
  if (query == query_) return;
  query_ = query;
  place_.set("query", query);
  Q_EMIT queryChanged(query);
}

void Session::setXAxis(XAxis axis) {
  if (axis == xAxis_) return;
  xAxis_ = axis;
  place_.set("x", static_cast<int>(axis));
  Q_EMIT xAxisChanged(axis);
}

void Session::startRun(const QByteArray& configJson, const QString& place) try {
  const auto config = nlohmann::json::parse(configJson.begin(), configJson.end(), nullptr, false);
  if (!config.is_object()) return Q_EMIT failed(tr("The configuration is not a JSON object."));
  const QString started = starting_folder(runs_->folder());
  if (!make_starting_folder(started)) return Q_EMIT failed(tr("The runs folder %1 cannot be written to.").arg(runs_->folder()));
  const bool host = where_named(place.toStdString()) == Where::host;
  const QString folder = host ? text_of(mirror_folder(place.toStdString())) : runs_->folder();
  const QString directory = new_directory(folder, config);
  const QString stem = started + QLatin1Char('/') + QFileInfo(directory).fileName();
  const QString file = stem + QStringLiteral(".json");
  if (QString reason; !writeFile(file, configJson, &reason)) return Q_EMIT failed(reason);
  const QStringList arguments{QStringLiteral("train"), file, QStringLiteral("--out"), directory};
  if (place.isEmpty()) return launch(directory, arguments, stem + QStringLiteral(".log"));
  startThere(directory, arguments + QStringList{QStringLiteral("--on"), place}, place);
} catch (const std::exception& error) {
  Q_EMIT failed(QString::fromUtf8(error.what()));
}

/// The program asks the host or the cluster, and answers once the run stands there or waits.
void Session::startThere(const QString& directory, const QStringList& arguments, const QString& place) {
  new ProgramCall(
      arguments, false,
      [this, directory, place](const ProgramCall::Answer& answer) {
        Q_EMIT runEnded(directory);
        if (!answer.ok) {
          Q_EMIT failed(answer.reason);
          return Q_EMIT startFailed(directory, answer.reason);
        }
        Q_EMIT noted(tr("%1 is on %2.").arg(QFileInfo(directory).fileName(), place));
        Q_EMIT runBegan(directory);
        runs_->refresh();
      },
      this);
  started_ = directory;
  Q_EMIT runStarted(directory);
}

void Session::startFork(const QString& parent, qint64 step, const QStringList& assignments, const QByteArray& configJson) {
  const auto config = nlohmann::json::parse(configJson.begin(), configJson.end(), nullptr, false);
  const QString started = starting_folder(runs_->folder());
  if (!make_starting_folder(started)) return Q_EMIT failed(tr("The runs folder %1 cannot be written to.").arg(runs_->folder()));
  const std::optional<MirrorState> mirror = mirror_in(parent);
  const QString directory = new_directory(mirror ? text_of(mirror->root) : runs_->folder(), config);
  QStringList arguments{QStringLiteral("fork"),  parent,   QStringLiteral("--step"), QString::number(step),
                        QStringLiteral("--out"), directory};
  for (const QString& each : assignments) arguments << QStringLiteral("--set") << each;
  if (mirror) return startThere(directory, arguments, QString::fromStdString(mirror->host));
  launch(directory, arguments, started + QLatin1Char('/') + QFileInfo(directory).fileName() + QStringLiteral(".log"));
}

void Session::resumeRun(const QString& directory) {
  const QString started = starting_folder(runs_->folder());
  if (!make_starting_folder(started)) return Q_EMIT failed(tr("The runs folder %1 cannot be written to.").arg(runs_->folder()));
  const QString log = started + QLatin1Char('/') + QFileInfo(directory).fileName() + QStringLiteral(".log");
  launch(directory, {QStringLiteral("resume"), directory}, log);
}

void Session::launch(const QString& directory, const QStringList& arguments, const QString& log) {
  auto* process = new RunProcess(directory, arguments, log, this);
  connect(process, &RunProcess::failed, this, [this, directory](const QString& reason) {
    Q_EMIT failed(reason);
    Q_EMIT startFailed(directory, reason);
  });
  connect(process, &RunProcess::began, this, [this, directory] { Q_EMIT runBegan(directory); });
  connect(process, &RunProcess::ended, this, [this, directory] { Q_EMIT runEnded(directory); });
  QString reason;
  if (!process->start(&reason)) {
    process->deleteLater();
    return Q_EMIT failed(reason);
  }
  started_ = directory;
  Q_EMIT runStarted(directory);
}

void Session::stopRun(const QString& directory) {
  if (mirror_in(directory)) {
    new ProgramCall(
        {QStringLiteral("stop"), directory}, false,
        [this](const ProgramCall::Answer& answer) {
          if (!answer.ok) Q_EMIT failed(answer.reason);
        },
        this);
    return;
  }
  try {
    if (!stop_run(directory.toStdString())) Q_EMIT failed(tr("%1 is not running.").arg(QFileInfo(directory).fileName()));
  } catch (const std::exception& error) {
    Q_EMIT failed(QString::fromUtf8(error.what()));
  }
}

void Session::showPage(const QString& id) { Q_EMIT pageRequested(id); }

void Session::tellSaved(const QString& file) {
  const QString folder = QFileInfo(file).absolutePath();
  Q_EMIT offered(tr("Saved %1").arg(file), {tr("Open the folder"), [folder] { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); }});
}

void Session::openFolder(const QString& folder) { Q_EMIT folderRequested(folder); }

void Session::duplicateRun(const QString& directory) {
  setCurrentRun(directory);
  showPage(QStringLiteral("configure"));
  Q_EMIT duplicateRequested(directory);
}

void Session::forkRun(const QString& directory) {
  setCurrentRun(directory);
  showPage(QStringLiteral("configure"));
  Q_EMIT forkRequested(directory);
}

void Session::inspectItems(const QString& directory, qint64 step, const QByteArray& items) {
  setCurrentRun(directory);
  setCaptureStep(step);
  showPage(QStringLiteral("inspect"));
  Q_EMIT itemsRequested(items);
}

void Session::showSetting(const QString& pointer) {
  showPage(QStringLiteral("configure"));
  Q_EMIT settingRequested(pointer);
}

void Session::startFromPreset(const QString& path) {
  showPage(QStringLiteral("configure"));
  Q_EMIT presetRequested(path);
}

}  // namespace saccade::ui
