// Other runs beside the page's: the same text and query, difference maps, where their losses differ most.
#include <QGridLayout>
#include <QHeaderView>
#include <QMenu>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolButton>
#include <algorithm>

#include "analysis/inspection/run_differences.h"
#include "ui/charts/aligned_views.h"
#include "ui/inspect/beside_run.h"
#include "ui/inspect/inspect_page.h"
#include "ui/inspect/query_panel.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

constexpr int kMostBeside = 3, kLosses = 12;

}  // namespace

void InspectPage::makeBeside() {
  beside_button_ = new QToolButton;
  beside_button_->setText(tr("&Beside"));
  beside_button_->setAccessibleName(tr("Runs to show beside this one"));
  beside_button_->setToolTip(wrapped_tip(tr("Up to three other runs with the same text, layer, head and query")));
  beside_button_->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(beside_button_);
  beside_button_->setMenu(menu);
  difference_ = new QToolButton;
  difference_->setText(tr("di&fference"));
  difference_->setToolTip(wrapped_tip(tr("The maps beside show their weights minus those of this run.")));
  difference_->setCheckable(true);
  difference_->setChecked(session_.place().value("inspectDifference").toBool());
  map_card_->addControl(beside_button_);
  map_card_->addControl(difference_);
  difference_->hide();  // until there is something to differ from
  losses_ = new QTableWidget(this);
  losses_->hide();
  losses_->setAccessibleName(tr("Tokens whose losses differ most"));
  losses_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  losses_->setSelectionBehavior(QAbstractItemView::SelectRows);
  losses_->setSelectionMode(QAbstractItemView::SingleSelection);
  losses_->setTabKeyNavigation(false);
  losses_->verticalHeader()->hide();
  losses_->setShowGrid(false);
  losses_->verticalHeader()->setDefaultSectionSize(losses_->fontMetrics().height() + 6);
  losses_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  linkMap(map_);
  aligned_ = new AlignedViews(this);
  connect(menu, &QMenu::aboutToShow, this, &InspectPage::fillBesideMenu);
  connect(difference_, &QToolButton::toggled, this, [this](bool on) {
    session_.place().set("inspectDifference", on);
    showBeside();
  });
  connect(losses_, &QTableWidget::currentCellChanged, this, [this](int row) {
    if (const QTableWidgetItem* item = losses_->item(row, 0)) session_.setQuery(item->data(Qt::UserRole).toInt());
  });
}

void InspectPage::fillBesideMenu() {
  QMenu* menu = beside_button_->menu();
  menu->clear();
  const QStringList chosen = session_.place().value("inspectBeside").toStringList();
  for (int row = 0; row < session_.runs()->rowCount(); ++row) {
    const QModelIndex index = session_.runs()->index(row, 0);
    const QString directory = index.data(RunList::DirectoryRole).toString();
    if (directory == directory_ || !session_.runs()->run(directory)) continue;
    auto* action =
        menu->addAction(tr("%1, seed %2").arg(index.data(RunList::TitleRole).toString()).arg(index.data(RunList::SeedRole).toLongLong()));
    action->setCheckable(true);
    action->setChecked(chosen.contains(directory));
    action->setData(directory);
    action->setEnabled(action->isChecked() || chosen.size() < kMostBeside);
    connect(action, &QAction::toggled, this, [this, directory](bool on) { setBeside(directory, on); });
  }
  if (menu->isEmpty()) menu->addAction(tr("There is no other run"))->setEnabled(false);
}

void InspectPage::setBeside(const QString& directory, bool on) {
  QStringList chosen = session_.place().value("inspectBeside").toStringList();
  chosen.removeAll(directory);
  if (on && chosen.size() < kMostBeside) chosen << directory;
  session_.place().set("inspectBeside", chosen);
  followBeside();
}

/// Overview and map in a row; with others beside, maps of equal size in as many rows as it takes for each to be read, and the overview
/// where there is room for it too.
void InspectPage::arrangeMaps() {
  int least = 270;  // pixels across, for a map with its axes and colours; columns are equally wide
  std::vector<QWidget*> parts{map_card_};
  parts.insert(parts.end(), beside_.begin(), beside_.end());
  const auto maps = static_cast<int>(parts.size());
  const int room = width();
  if (maps > 1)
    for (const QWidget* part : parts) least = std::max(least, part->minimumSizeHint().width());
  const bool narrow = room < 680;  // what is told of the query stands under the maps then, see makeMaps()
  const int across = std::max(1, (narrow ? room : room * 10 / 14) / least);
  const bool overview = maps == 1 || (maps == 2 && across >= 3);
  heads_card_->setVisible(overview);
  const int columns = overview ? maps : maps <= across ? maps : std::min(across, (maps + 1) / 2);
  for (int column = 1; column <= 4; ++column) maps_->setColumnMinimumWidth(column, column <= columns && maps > 1 ? least : 0);
  if (shown_columns_ == std::pair(columns, maps) && maps_->count() > 0) return;
  shown_columns_ = {columns, maps};
  while (maps_->count() > 0) delete maps_->takeAt(0);
  maps_->addWidget(heads_card_, 0, 0);
  for (int i = 0; i < maps; ++i) maps_->addWidget(parts[static_cast<size_t>(i)], i / columns, 1 + i % columns);
  maps_->setColumnStretch(0, overview ? 3 : 0);
  for (int column = 1; column <= 4; ++column) maps_->setColumnStretch(column, column <= columns ? 7 : 0);
  for (int row = 0; row < 4; ++row) maps_->setRowStretch(row, row * columns < maps ? 1 : 0);
}

/// The other maps whose rows are queries and whose columns are positions, where this one's are.
std::vector<FigureView*> InspectPage::besideMaps(const FigureView* of) const {
  std::vector<FigureView*> maps;
  const bool by_positions = chosenMap() == MapKind::weights || chosenMap() == MapKind::soft_weights;
  if (of == map_ && !by_positions) return maps;
  if (of != map_ && by_positions) maps.push_back(map_);
  for (const BesideRun* run : beside_)
    if (run->map() != of) maps.push_back(run->map());
  return maps;
}

void InspectPage::linkMap(FigureView* view) {
  connect(view, &FigureView::cellPointed, this, [this, view](int row, int column) {
    for (FigureView* other : besideMaps(view)) other->setLinkedCell(row, column);
  });
  connect(view, &FigureView::zoomChanged, this, [this, view] {
    for (FigureView* other : besideMaps(view)) other->look(view->part(), view->rowPart());
  });
}

/// The runs that are wanted and there, this one apart.
void InspectPage::followBeside() {
  QStringList wanted;
  const QStringList chosen = session_.place().value("inspectBeside").toStringList();
  for (const QString& directory : chosen)
    if (directory != directory_ && session_.runs()->run(directory)) wanted << directory;
  std::erase_if(beside_, [&](BesideRun* run) {
    if (wanted.contains(run->directory())) return false;
    run->deleteLater();
    run->hide();
    return true;
  });
  for (const QString& directory : wanted) {
    if (std::any_of(beside_.begin(), beside_.end(), [&](const BesideRun* run) { return run->directory() == directory; })) continue;
    auto* run = new BesideRun(directory, session_.runs()->label(*session_.runs()->run(directory)), maps_->parentWidget());
    run->map()->installEventFilter(this);
    linkMap(run->map());
    connect(run, &BesideRun::ready, this, [this] {
      losses_shown_.clear();
      showBeside();
    });
    connect(run->map(), &FigureView::failed, &session_, &Session::failed);
    connect(run->map(), &FigureView::exported, &session_, &Session::tellSaved);
    connect(run, &BesideRun::queryClicked, &session_, &Session::setQuery);
    beside_.push_back(run);
  }
  arrangeMaps();
  QList<FigureView*> views{map_};
  for (BesideRun* run : beside_) views << run->map();
  aligned_->setViews(views);
  difference_->setVisible(!beside_.empty());
  if (captures_)
    for (BesideRun* run : beside_) run->follow(captures_->source, captures_->step, session_.sample());
  showBeside();
}

void InspectPage::showBeside() {
  const auto at = place();
  if (!at) return;
  int number = 0;
  for (BesideRun* run : beside_)
    run->show({captures_, static_cast<size_t>(capture() - captures_->samples.data())},
              {++number, at->layer, at->head, at->query, log_colours_->isChecked(), difference_->isChecked()});
  showLosses();
}

/// The tab is there as long as another run has read the same tokens.
void InspectPage::showLosses() {
  std::vector<const Capture*> captures{capture()};
  QStringList titles{tr("token"), tr("this")};
  for (size_t i = 0; i < beside_.size(); ++i)
    if (const Capture* other = beside_[i]->capture(); other && same_tokens(*capture(), *other)) {
      captures.push_back(other);
      titles << QString::number(i + 1);
    }
  const int tab = tabs_->indexOf(losses_);
  if (captures.size() < 2) {
    if (tab >= 0) tabs_->removeTab(tab);
    losses_shown_.clear();
    return;
  }
  if (tab < 0) tabs_->addTab(losses_, tr("&Losses"));
  if (losses_shown_ == captures) return;
  losses_shown_ = captures;
  const std::vector<LossDifference> rows = greatest_loss_differences(captures, kLosses);
  const QSignalBlocker blocker(losses_);
  losses_->clear();
  losses_->setColumnCount(static_cast<int>(titles.size()));
  losses_->setHorizontalHeaderLabels(titles);
  losses_->setRowCount(static_cast<int>(rows.size()));
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    const LossDifference& row = rows[static_cast<size_t>(r)];
    const auto next = static_cast<size_t>(row.query) + 1;
    const QString piece = next < capture()->pieces.size() ? quoted(capture()->pieces[next]) : QString();
    auto* token = new QTableWidgetItem(tr("%1 after %2").arg(piece).arg(row.query));
    token->setData(Qt::UserRole, static_cast<int>(row.query));
    losses_->setItem(r, 0, token);
    for (size_t c = 0; c < row.losses.size(); ++c) {
      auto* item = new QTableWidgetItem(QString::number(row.losses[c], 'f', 3));
      item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      losses_->setItem(r, static_cast<int>(c) + 1, item);
    }
  }
}

}  // namespace saccade::ui
