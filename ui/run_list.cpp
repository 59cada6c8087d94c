#include "ui/run_list.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileSystemWatcher>
#include <QSet>
#include <QTimer>
#include <algorithm>
#include <utility>

#include "analysis/figures/palette.h"
#include "ui/run_loader.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {
constexpr int tick_ms = 200;          // changed() and polls: 5 a second at most
constexpr int ticks_per_search = 10;  // finished runs and the folder itself: every 2 s
constexpr int poll_budget_ms = 15;    // of a tick; the rest waits for the next one

struct Entry {
  QString directory;
  QDateTime stamp;
  std::shared_ptr<Run> run;
  QString problem;  ///< not empty: damaged
  RunLook look;
};
}  // namespace

struct RunList::Impl {
  RunList* list;
  QString folder;
  std::vector<Entry> entries;  ///< newest first
  QSet<QString> hidden;
  RunLoader loader;
  QFileSystemWatcher watcher;
  QTimer ticker;
  QTimer search_soon;
  int tick = 0;
  size_t poll_next = 0;
  bool loading = true, dirty = false, looks_stale = false;
  std::vector<std::shared_ptr<Run>> retired;  ///< left the list; alive until changed() has told everyone

  explicit Impl(RunList* owner) : list(owner) {}

  void search();
  void opened(const LoadedDirectory& loaded);
  void searched(const QStringList& directories);
  bool poll(Entry& entry, int row);
  void poll_all(bool active_only);
  void on_tick();
  void assign_looks();
  void watch(const QString& path);
};

void RunList::Impl::search() {
  QHash<QString, QDateTime> known;
  for (const Entry& entry : entries) known.insert(entry.directory, entry.problem.isEmpty() ? QDateTime() : entry.stamp);
  loader.search(folder, known);
}

void RunList::Impl::opened(const LoadedDirectory& loaded) {
  int row = list->row(loaded.directory);
  if (row < 0) {
    row = static_cast<int>(entries.size());
    list->beginInsertRows({}, row, row);
    entries.push_back({loaded.directory, loaded.stamp, loaded.run, loaded.problem, {}});
    list->endInsertRows();
  } else {
    Entry& entry = entries[static_cast<size_t>(row)];
    if (entry.run) retired.push_back(entry.run);
    entry.stamp = loaded.stamp, entry.run = loaded.run, entry.problem = loaded.problem;
    Q_EMIT list->dataChanged(list->index(row), list->index(row));
  }
  looks_stale = dirty = true;
}

void RunList::Impl::searched(const QStringList& directories) {
  for (int row = static_cast<int>(entries.size()) - 1; row >= 0; --row) {
    const auto place = entries.begin() + row;
    if (directories.contains(place->directory)) continue;
    list->beginRemoveRows({}, row, row);
    if (place->run) retired.push_back(place->run);
    entries.erase(place);
    list->endRemoveRows();
    dirty = true;
  }
  const auto newer = [&](const Entry& a, const Entry& b) { return directories.indexOf(a.directory) < directories.indexOf(b.directory); };
  if (!std::is_sorted(entries.begin(), entries.end(), newer)) {
    Q_EMIT list->layoutAboutToBeChanged();
    const QModelIndexList before = list->persistentIndexList();
    QStringList at;
    for (const QModelIndex& index : before) at << entries[static_cast<size_t>(index.row())].directory;
    std::stable_sort(entries.begin(), entries.end(), newer);
    QModelIndexList after;
    for (const QString& directory : at) after << list->index(list->row(directory));
    list->changePersistentIndexList(before, after);
    Q_EMIT list->layoutChanged();
    dirty = true;
  }
  assign_looks();
  if (loading) {
    loading = false;
    dirty = false;
    Q_EMIT list->changed();
    Q_EMIT list->loaded();
  }
}

/// True when something in the run changed. A run that can no longer be read is shown with the reason.
bool RunList::Impl::poll(Entry& entry, int row) {
  if (!entry.run) return false;
  bool change = false;
  try {
    change = entry.run->poll();
  } catch (const std::exception& error) {
    retired.push_back(std::exchange(entry.run, nullptr));
    entry.problem = QString::fromUtf8(error.what());
    change = true;
  }
  if (change) Q_EMIT list->dataChanged(list->index(row), list->index(row));
  return change;
}

void RunList::Impl::poll_all(bool active_only) {
  QElapsedTimer clock;
  clock.start();
  const size_t count = entries.size();
  for (size_t i = 0; i < count && clock.elapsed() < poll_budget_ms; ++i) {
    poll_next = (poll_next + 1) % count;
    Entry& entry = entries[poll_next];
    if (!entry.run || (active_only && !isActive(entry.run->info().state))) continue;
    if (poll(entry, static_cast<int>(poll_next))) dirty = true;
  }
}

void RunList::Impl::on_tick() {
  const bool whole = ++tick % ticks_per_search == 0;
  if (whole) search();
  poll_all(!whole);
  if (!dirty) return;
  dirty = false;
  if (looks_stale) assign_looks();
  const auto gone = std::exchange(retired, {});
  Q_EMIT list->changed();
}

/// As the figures do it.
void RunList::Impl::assign_looks() {
  looks_stale = false;
  const std::vector<const Run*> runs = list->runs();
  const std::vector<RunLook> looks = run_looks(runs);
  auto next = looks.begin();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].run) continue;
    const RunLook& wanted = *next++;
    if (std::exchange(entries[i].look, wanted) != wanted)
      Q_EMIT list->dataChanged(list->index(static_cast<int>(i)), list->index(static_cast<int>(i)));
  }
}

void RunList::Impl::watch(const QString& path) {
  if (!watcher.directories().isEmpty()) watcher.removePaths(watcher.directories());
  if (QDir(path).exists()) watcher.addPath(path);
}

RunList::RunList(const QString& folder, QObject* parent) : QAbstractListModel(parent), impl_(std::make_unique<Impl>(this)) {
  connect(&impl_->loader, &RunLoader::opened, this, [this](const LoadedDirectory& loaded) { impl_->opened(loaded); });
  connect(&impl_->loader, &RunLoader::searched, this, [this](const QStringList& all) { impl_->searched(all); });
  connect(&impl_->ticker, &QTimer::timeout, this, [this] { impl_->on_tick(); });
  impl_->search_soon.setSingleShot(true);
  impl_->search_soon.setInterval(tick_ms);
  connect(&impl_->search_soon, &QTimer::timeout, this, [this] { impl_->search(); });
  connect(&impl_->watcher, &QFileSystemWatcher::directoryChanged, &impl_->search_soon, qOverload<>(&QTimer::start));
  setFolder(folder);
  impl_->ticker.start(tick_ms);
}

RunList::~RunList() = default;

QString RunList::folder() const { return impl_->folder; }

void RunList::setFolder(const QString& folder) {
  const QString path = QDir(folder).absolutePath();
  if (path == impl_->folder) return;
  impl_->loader.cancel();
  beginResetModel();
  impl_->folder = path;
  impl_->loading = true;
  for (Entry& entry : impl_->entries)
    if (entry.run) impl_->retired.push_back(entry.run);
  impl_->entries.clear();
  impl_->dirty = true;
  endResetModel();
  impl_->watch(path);
  impl_->search();
}

bool RunList::loading() const { return impl_->loading; }

QStringList RunList::hidden() const {
  QStringList list(impl_->hidden.begin(), impl_->hidden.end());
  list.sort();
  return list;
}

void RunList::setHidden(const QStringList& directories) {
  impl_->hidden = QSet<QString>(directories.begin(), directories.end());
  if (rowCount() > 0) Q_EMIT dataChanged(index(0), index(rowCount() - 1), {VisibleRole, Qt::CheckStateRole});
  impl_->dirty = true;
}

int RunList::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(impl_->entries.size()); }

QVariant RunList::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Entry& entry = impl_->entries[static_cast<size_t>(index.row())];
  const bool visible = !impl_->hidden.contains(entry.directory);
  const QString folder_name = QFileInfo(entry.directory).fileName();
  switch (role) {
    case DirectoryRole: return entry.directory;
    case VisibleRole: return visible;
    case Qt::CheckStateRole: return visible ? Qt::Checked : Qt::Unchecked;
    case ProblemRole: return entry.problem;
    case ColourRole: return entry.run ? QColor(entry.look.colour.r, entry.look.colour.g, entry.look.colour.b) : QColor();
    case DashRole: return static_cast<int>(entry.look.dash);
    case MarkerRole: return static_cast<int>(entry.look.marker);
    default: break;
  }
  if (!entry.run) {
    switch (role) {
      case Qt::DisplayRole:
      case TitleRole: return folder_name;
      case StateRole: return static_cast<int>(RunState::failed);
      case ProgressRole: return 0.0;
      case SummaryRole: return tr("cannot be read");
      case Qt::ToolTipRole: return entry.problem;
      case Qt::AccessibleTextRole: return tr("%1, cannot be read: %2").arg(folder_name, entry.problem);
      default: return {};
    }
  }
  const RunInfo& info = entry.run->info();
  const std::string& told = entry.look.architecture.empty() ? info.title : entry.look.architecture;
  const QString title = QString::fromStdString(told.empty() ? info.name : told);
  switch (role) {
    case Qt::DisplayRole: return tr("%1 seed %2").arg(title).arg(info.seed);
    case TitleRole: return title;
    case SeedRole: return static_cast<qint64>(info.seed);
    case StateRole: return static_cast<int>(info.state);
    case ProgressRole: return info.steps > 0 ? std::clamp(static_cast<double>(info.step) / static_cast<double>(info.steps), 0.0, 1.0) : 0.0;
    case SummaryRole: return summary_of(*entry.run);
    case Qt::ToolTipRole: {
      QStringList lines{QString::fromStdString(info.name), entry.directory};
      for (const std::string& line : {info.message, entry.run->damage(), entry.run->lost()})
        if (!line.empty()) lines << QString::fromStdString(line);
      return lines.join(QLatin1Char('\n'));
    }
    case Qt::AccessibleTextRole:
      return tr("%1 seed %2, %3, %4").arg(title).arg(info.seed).arg(stateText(info.state), summary_of(*entry.run));
    default: return {};
  }
}

bool RunList::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid) || (role != VisibleRole && role != Qt::CheckStateRole)) return false;
  const QString& directory = impl_->entries[static_cast<size_t>(index.row())].directory;
  const bool visible = role == VisibleRole ? value.toBool() : value.toInt() == Qt::Checked;
  if (visible == !impl_->hidden.contains(directory)) return true;
  visible ? static_cast<void>(impl_->hidden.remove(directory)) : static_cast<void>(impl_->hidden.insert(directory));
  Q_EMIT dataChanged(index, index, {VisibleRole, Qt::CheckStateRole});
  impl_->dirty = true;
  return true;
}

Qt::ItemFlags RunList::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable | Qt::ItemNeverHasChildren : Qt::NoItemFlags;
}

std::vector<const Run*> RunList::visibleRuns() const {
  std::vector<const Run*> runs;
  for (const Entry& entry : impl_->entries)
    if (entry.run && !impl_->hidden.contains(entry.directory)) runs.push_back(entry.run.get());
  return runs;
}

std::vector<const Run*> RunList::runs() const {
  std::vector<const Run*> runs;
  for (const Entry& entry : impl_->entries)
    if (entry.run) runs.push_back(entry.run.get());
  return runs;
}

QString RunList::label(const Run& run) const {
  const auto& entries = impl_->entries;
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.run.get() == &run; });
  const std::string& title = found == entries.end() ? run.info().title : found->look.architecture;
  return tr("%1, seed %2").arg(QString::fromStdString(title)).arg(run.info().seed);
}

const Run* RunList::run(const QString& directory) const {
  const int at = row(directory);
  return at < 0 ? nullptr : impl_->entries[static_cast<size_t>(at)].run.get();
}

int RunList::row(const QString& directory) const {
  const auto& entries = impl_->entries;
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.directory == directory; });
  return found == entries.end() ? -1 : static_cast<int>(found - entries.begin());
}

void RunList::refresh() {
  if (impl_->watcher.directories().isEmpty()) impl_->watch(impl_->folder);
  impl_->search();
  impl_->poll_all(false);
}

}  // namespace saccade::ui
