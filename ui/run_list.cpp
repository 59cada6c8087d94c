#include "ui/run_list.h"

#include <QDir>
#include <QFileSystemWatcher>
#include <QSet>
#include <QTimer>
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/studies/study_folder.h"
#include "ui/run_loader.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {
constexpr int tick_ms = 200;                                                      // changed() and polls: 5 a second at most
constexpr int ticks_per_search = 10;                                              // finished runs and the folder itself: every 2 s
constexpr size_t kPointsOfAll = 1 << 19, kLeastPoints = 512, kMostPoints = 4096;  // of one series, over all runs and of one

struct Entry {
  QString directory;
  QDateTime stamp;
  SharedRun run;
  QString problem;  ///< not empty: damaged
  RunLook look;
};
}  // namespace

QString trunk_in(const QString& directory) { return QString::fromStdString(trunk_of(directory.toStdString()).string()); }

struct RunList::Impl {
  RunList* list;
  QString folder;
  std::vector<Entry> entries;  ///< newest first
  QHash<QString, int> rows;    ///< of `entries`
  RunSelection selection;
  RunLoader loader;
  QFileSystemWatcher watcher;
  QTimer ticker;
  QTimer search_soon;
  int tick = 0;
  bool loading = true, dirty = false;
  int found = 0;                                      ///< directories of runs in the folder
  bool studies = false;                               ///< stand in the folder
  bool search_halted = false, curves_halted = false;  ///< while more than was read is not wanted
  bool stale = false;                                 ///< other runs, settings or names; dirty alone: the same runs have more to show
  bool chosen_anew = false;                           ///< other ones of them may be shown
  std::vector<SharedRun> retired;                     ///< left the list; alive until changed() has told everyone
  std::vector<SharedRun> read_on;                     ///< since the selection was told

  explicit Impl(RunList* owner) : list(owner) {}

  void search();
  void take(const QList<LoadedDirectory>& loaded);
  void replace(Entry& entry, const LoadedDirectory& loaded);
  void searched(const QStringList& directories);
  void end_loading();
  void on_tick();
  void tell_silent();
  void arrange();
  void update();
  void select(bool renamed = false);  ///< the selection was changed
  void read_shown();
  void count_rows();
  std::vector<SharedRun> all_runs(bool active_only) const;
  void watch(const QString& path);
};

std::vector<SharedRun> RunList::Impl::all_runs(bool active_only) const {
  std::vector<SharedRun> runs;
  for (const Entry& entry : entries)
    if (entry.run && (!active_only || isActive(entry.run->info().state))) runs.push_back(entry.run);
  return runs;
}

void RunList::Impl::search() {
  if (search_halted) return;
  QHash<QString, QDateTime> known;
  for (const Entry& entry : entries) known.insert(entry.directory, entry.problem.isEmpty() ? QDateTime() : entry.stamp);
  loader.search(folder, known, all_runs(false));
}

void RunList::Impl::count_rows() {
  rows.clear();
  for (size_t i = 0; i < entries.size(); ++i) rows.insert(entries[i].directory, static_cast<int>(i));
}

void RunList::Impl::replace(Entry& entry, const LoadedDirectory& loaded) {
  if (entry.run && loaded.run && loaded.run->detail().outline && !entry.run->detail().outline) return;  // overtaken by its curves
  if (entry.run) retired.push_back(entry.run);
  const bool as_before = entry.run && loaded.run && entry.run->setting() == loaded.run->setting() && selection.filter().isEmpty();
  chosen_anew = chosen_anew || !as_before || entry.run->detail().outline != loaded.run->detail().outline;
  entry.stamp = loaded.stamp, entry.run = loaded.run, entry.problem = loaded.problem;
  stale = stale || !as_before;
  if (as_before) read_on.push_back(entry.run);
}

void RunList::Impl::take(const QList<LoadedDirectory>& loaded) {
  QList<LoadedDirectory> fresh;
  for (const LoadedDirectory& each : loaded) {
    const int row = list->row(each.directory);
    if (row < 0) {
      fresh << each;
      continue;
    }
    replace(entries[static_cast<size_t>(row)], each);
    Q_EMIT list->dataChanged(list->index(row), list->index(row));
  }
  if (!fresh.isEmpty()) {
    const int first = static_cast<int>(entries.size());
    list->beginInsertRows({}, first, first + static_cast<int>(fresh.size()) - 1);
    for (const LoadedDirectory& each : fresh) {
      rows.insert(each.directory, static_cast<int>(entries.size()));
      entries.push_back({each.directory, each.stamp, each.run, each.problem, {}});
    }
    list->endInsertRows();
  }
  stale = stale || !fresh.isEmpty();
  dirty = true;
}

void RunList::Impl::searched(const QStringList& directories) {
  QHash<QString, int> rank;
  for (qsizetype i = 0; i < directories.size(); ++i) rank.insert(directories[i], static_cast<int>(i));
  for (int row = static_cast<int>(entries.size()) - 1; row >= 0; --row) {
    const auto place = entries.begin() + row;
    if (rank.contains(place->directory)) continue;
    list->beginRemoveRows({}, row, row);
    if (place->run) retired.push_back(place->run);
    entries.erase(place);
    count_rows();
    list->endRemoveRows();
    dirty = stale = true;
  }
  const auto newer = [&](const Entry& a, const Entry& b) { return rank.value(a.directory) < rank.value(b.directory); };
  if (!std::is_sorted(entries.begin(), entries.end(), newer)) {
    Q_EMIT list->layoutAboutToBeChanged();
    const QModelIndexList before = list->persistentIndexList();
    QStringList at;
    for (const QModelIndex& index : before) at << entries[static_cast<size_t>(index.row())].directory;
    std::stable_sort(entries.begin(), entries.end(), newer);
    count_rows();
    QModelIndexList after;
    for (const QString& directory : at) after << list->index(list->row(directory));
    list->changePersistentIndexList(before, after);
    Q_EMIT list->layoutChanged();
    dirty = stale = true;
  }
  if (loading) return end_loading();
  if (stale) arrange();
}

void RunList::Impl::end_loading() {
  selection.nameAnew();
  arrange();
  loading = dirty = false;
  Q_EMIT list->changed();
  Q_EMIT list->loaded();
}

void RunList::Impl::on_tick() {
  if (++tick % ticks_per_search == 0) {
    search();
    tell_silent();
  } else {
    loader.follow(all_runs(true));
  }
  if (!dirty || loading) return;
  dirty = false;
  update();
  const auto gone = std::exchange(retired, {});
  Q_EMIT list->changed();
}

/// What says nothing changes nothing: how long it has been silent is told all the same.
void RunList::Impl::tell_silent() {
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].run && !std::isnan(seconds_silent(*entries[i].run)))
      Q_EMIT list->dataChanged(list->index(static_cast<int>(i)), list->index(static_cast<int>(i)), {SummaryRole});
}

void RunList::Impl::update() {
  if (stale) return arrange();
  selection.update(std::exchange(read_on, {}));
  if (std::exchange(chosen_anew, false)) read_shown();
}

/// Names, looks, and what is shown.
void RunList::Impl::arrange() {
  stale = chosen_anew = false;
  read_on.clear();
  selection.arrange(all_runs(false));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].run) continue;
    const RunLook wanted = selection.look(*entries[i].run);
    if (std::exchange(entries[i].look, wanted) != wanted)
      Q_EMIT list->dataChanged(list->index(static_cast<int>(i)), list->index(static_cast<int>(i)));
  }
  read_shown();
}

void RunList::Impl::read_shown() {
  if (curves_halted) return;
  QStringList wanted;
  for (const Entry& entry : entries)
    if (entry.run && entry.run->detail().outline && selection.shows(*entry.run)) wanted << entry.directory;
  loader.read(wanted, std::clamp(kPointsOfAll / std::max<size_t>(1, entries.size()), kLeastPoints, kMostPoints));
}

void RunList::Impl::select(bool renamed) {
  if (!entries.empty()) Q_EMIT list->dataChanged(list->index(0), list->index(list->rowCount() - 1), {VisibleRole, Qt::CheckStateRole});
  stale = stale || renamed;
  chosen_anew = dirty = true;
  curves_halted = false;
  Q_EMIT list->selectionChanged();
  QTimer::singleShot(0, list, [this] {  // several changes of one click are one
    if (!dirty || loading) return;
    dirty = false;
    update();
    const auto gone = std::exchange(retired, {});
    Q_EMIT list->changed();
  });
}

void RunList::Impl::watch(const QString& path) {
  if (!watcher.directories().isEmpty()) watcher.removePaths(watcher.directories());
  if (QDir(path).exists()) watcher.addPath(path);
}

RunList::RunList(const QString& folder, QObject* parent) : QAbstractListModel(parent), impl_(std::make_unique<Impl>(this)) {
  connect(&impl_->loader, &RunLoader::loaded, this, [this](const QList<LoadedDirectory>& loaded) { impl_->take(loaded); });
  connect(&impl_->loader, &RunLoader::found, this, [this](int directories, bool studies) {
    impl_->found = directories;
    impl_->dirty = impl_->dirty || impl_->studies != studies;
    impl_->studies = studies;
  });
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
  const QString path = QString::fromStdString(runs_below(QDir(folder).absolutePath().toStdString()).string());
  if (path == impl_->folder) return;
  impl_->loader.cancel();
  beginResetModel();
  impl_->folder = path;
  impl_->loading = true;
  impl_->search_halted = impl_->curves_halted = false;
  impl_->found = 0;
  impl_->studies = false;
  for (Entry& entry : impl_->entries)
    if (entry.run) impl_->retired.push_back(entry.run);
  impl_->entries.clear();
  impl_->rows.clear();
  impl_->selection.arrange({});
  impl_->dirty = true;
  endResetModel();
  impl_->watch(path);
  impl_->search();
}

bool RunList::loading() const { return impl_->loading; }

bool RunList::besideStudies() const { return impl_->studies; }

int RunList::unread() const {
  return static_cast<int>(std::count_if(impl_->entries.begin(), impl_->entries.end(), [&](const Entry& entry) {
    return entry.run && entry.run->detail().outline && impl_->selection.shows(*entry.run);
  }));
}

ReadingProgress RunList::progress() const {
  const Impl& impl = *impl_;
  const int entries = static_cast<int>(impl.entries.size());
  if (impl.loading || impl.search_halted) return {entries, std::max(entries, impl.found), impl.search_halted};
  const auto shown = static_cast<int>(std::count_if(impl.entries.begin(), impl.entries.end(),
                                                    [&](const Entry& entry) { return entry.run && impl.selection.shows(*entry.run); }));
  const int left = unread();
  return {shown - left, shown, impl.curves_halted && left > 0};
}

void RunList::halt() {
  impl_->loader.cancel();
  impl_->curves_halted = true;
  if (!impl_->loading) return;
  impl_->search_halted = true;
  impl_->end_loading();
}

void RunList::readOn() {
  impl_->search_halted = impl_->curves_halted = false;
  impl_->search();
  impl_->read_shown();
}

const RunSelection& RunList::selection() const { return impl_->selection; }
std::shared_ptr<const ShownRuns> RunList::shown() const { return impl_->selection.shown(); }

void RunList::setFilter(const QString& text) {
  if (text == impl_->selection.filter()) return;
  impl_->selection.setFilter(text);
  impl_->select(true);
}

QStringList RunList::hidden() const {
  QStringList list(impl_->selection.hidden().begin(), impl_->selection.hidden().end());
  list.sort();
  return list;
}

void RunList::setHidden(const QStringList& directories) {
  impl_->selection.setHidden(QSet<QString>(directories.begin(), directories.end()));
  impl_->select();
}

void RunList::setOpened(const QString& key, bool opened) {
  impl_->selection.setOpened(key, opened);
  impl_->select();
}

void RunList::setBaseline(const QString& directory) {
  impl_->selection.setBaseline(directory);
  impl_->select();
}

void RunList::setColours(const QHash<QString, Colour>& colours) {
  impl_->selection.setColours(colours);
  impl_->select(true);
}

void RunList::setColour(const QStringList& directories, const QColor& colour) {
  QHash<QString, Colour> colours = impl_->selection.colours();
  for (const QString& directory : directories) {
    const Run* its = run(directory);
    if (!its) continue;
    const QString key = impl_->selection.key(*its);
    if (colour.isValid())
      colours[key] = {static_cast<uint8_t>(colour.red()), static_cast<uint8_t>(colour.green()), static_cast<uint8_t>(colour.blue())};
    else
      colours.remove(key);
  }
  setColours(colours);
}

void RunList::showOnly(const QStringList& directories) {
  const QSet<QString> wanted(directories.begin(), directories.end());
  for (const Entry& entry : impl_->entries)
    if (entry.run && impl_->selection.passes(*entry.run))
      impl_->selection.setShown(entry.directory, wanted.contains(entry.directory) || wanted.contains(trunk_in(entry.directory)));
  impl_->select();
}

void RunList::setShown(const QStringList& directories, bool shown) {
  const QSet<QString> these(directories.begin(), directories.end());
  for (const QString& directory : directories) impl_->selection.setShown(directory, shown);
  for (const Entry& entry : impl_->entries)
    if (these.contains(trunk_in(entry.directory))) impl_->selection.setShown(entry.directory, shown);
  impl_->select();
}

void RunList::setNotes(const QString& directory, const RunNotes& notes) {
  const int at = row(directory);
  if (at < 0 || !run(directory)) return;
  write_notes(directory.toStdString(), notes);
  Entry& entry = impl_->entries[static_cast<size_t>(at)];
  auto next = std::make_shared<Run>(*entry.run);
  next->poll_notes();
  impl_->replace(entry, {directory, entry.stamp, std::move(next), {}});
  Q_EMIT dataChanged(index(at), index(at));
  impl_->select(true);  // a filter may ask for them
}

int RunList::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(impl_->entries.size()); }

QVariant RunList::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Entry& entry = impl_->entries[static_cast<size_t>(index.row())];
  const bool visible = !impl_->selection.hidden().contains(entry.directory);
  const QString folder_name = QFileInfo(entry.directory).fileName();
  switch (role) {
    case DirectoryRole: return entry.directory;
    case VisibleRole: return visible;
    case Qt::CheckStateRole: return !entry.run ? QVariant() : QVariant(visible ? Qt::Checked : Qt::Unchecked);
    case DamageRole: return entry.run && is_damaged(*entry.run);
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
      const RunNotes& notes = entry.run->notes();
      for (const std::string& line : {tags_text(notes.tags), notes.note, info.message, entry.run->damage(), entry.run->lost()})
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
  if (visible != !impl_->selection.hidden().contains(directory)) setShown({directory}, visible);
  return true;
}

Qt::ItemFlags RunList::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable | Qt::ItemNeverHasChildren : Qt::NoItemFlags;
}

std::vector<const Run*> RunList::visibleRuns() const {
  std::vector<const Run*> runs;
  for (const Entry& entry : impl_->entries)
    if (entry.run && !entry.run->detail().outline && impl_->selection.shows(*entry.run)) runs.push_back(entry.run.get());
  return runs;
}

std::vector<const Run*> RunList::runs() const {
  std::vector<const Run*> runs;
  for (const Entry& entry : impl_->entries)
    if (entry.run) runs.push_back(entry.run.get());
  return runs;
}

QString RunList::label(const Run& run) const { return QString::fromStdString(impl_->selection.look(run).label); }

const Run* RunList::run(const QString& directory) const {
  const int at = row(directory);
  return at < 0 ? nullptr : impl_->entries[static_cast<size_t>(at)].run.get();
}

SharedRun RunList::shared(const QString& directory) const {
  const int at = row(directory);
  return at < 0 ? nullptr : impl_->entries[static_cast<size_t>(at)].run;
}

int RunList::row(const QString& directory) const { return impl_->rows.value(directory, -1); }

void RunList::refresh() {
  if (impl_->watcher.directories().isEmpty()) impl_->watch(impl_->folder);
  impl_->search();
}

}  // namespace saccade::ui
