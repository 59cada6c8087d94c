#include "ui/runs/runs_page.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProxyStyle>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/charts/figure_view.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/runs/differences_view.h"
#include "ui/runs/runs_table.h"
#include "ui/session.h"
#include "ui/swatch.h"

namespace saccade::ui {
namespace {

/// Keeps numbers at the right of their column apart from words at the left of the next.
class RoomyCells : public QProxyStyle {
 public:
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
    if (metric == PM_FocusFrameHMargin || metric == PM_HeaderMargin) return 7;
    return QProxyStyle::pixelMetric(metric, option, widget);
  }
};

const RegisterPage entry{{QStringLiteral("runs"), RunsPage::tr("Runs"), QStringLiteral("runs"), 10,
                          [](Session& session, QWidget* parent) -> QWidget* { return new RunsPage(session, parent); }}};

/// "Fork of first at step 500 (/runs/first)"; empty for a run that began by itself.
QString parent_text(const RunInfo& info) {
  if (!info.provenance.contains("parent") || !info.provenance.at("parent").is_object()) return {};
  const nlohmann::json& parent = info.provenance.at("parent");
  const auto text = [&](const char* key) {
    const bool given = parent.contains(key) && parent.at(key).is_string();
    return QString::fromStdString(given ? parent.at(key).get<std::string>() : std::string("?"));
  };
  const QString step = parent.contains("step") ? QString::fromStdString(parent.at("step").dump()) : QStringLiteral("?");
  return RunsPage::tr("Fork of %1 at step %2 (%3)").arg(text("name"), step, text("path"));
}

/// The table holds what passes the window's filter.
class FilteredRuns : public QSortFilterProxyModel {
 public:
  FilteredRuns(const RunList& runs, QObject* parent) : QSortFilterProxyModel(parent), runs_(runs) {}

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override {
    const Run* run = runs_.run(sourceModel()->index(row, 0, parent).data(RunList::DirectoryRole).toString());
    return run ? runs_.selection().passes(*run) : runs_.selection().filter().isEmpty();
  }

 private:
  const RunList& runs_;
};

}  // namespace

RunsPage::RunsPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      sorted_(new FilteredRuns(*session.runs(), this)),
      table_(new QTreeView(this)),
      details_(new QLabel(this)),
      differs_(new DifferencesView(this)) {
  auto* all = new RunsTable(session.runs(), this);
  sorted_->setSourceModel(all);
  connect(all, &RunsTable::failed, &session, &Session::failed);
  connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (index.column() == RunsTable::star) sorted_->setData(index, index.data(RunsTable::SortRole).toDouble() > 0, Qt::EditRole);
  });
  connect(session.runs(), &RunList::selectionChanged, sorted_, [this] { sorted_->invalidate(); });
  sorted_->setSortRole(RunsTable::SortRole);
  auto* halves = new QSplitter(Qt::Vertical, this);
  auto* runs_card = new Card(tr("Runs"), tr("loss in nats per token, last value"), makeTable(), halves);
  auto* actions = new RunActions(session, this);
  for (QAction* action : {actions->resume, actions->stop, actions->openFolder}) {
    auto* button = new QToolButton(runs_card);
    button->setDefaultAction(action);
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setAccessibleName(action->iconText());
    runs_card->addControl(button);
  }
  halves->addWidget(runs_card);
  selected_ = new Card(tr("Selected"), {}, makeDetails(), halves);
  halves->addWidget(selected_);
  halves->setStretchFactor(0, 3);
  halves->setStretchFactor(1, 2);
  halves->setChildrenCollapsible(false);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->addWidget(halves);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  table_->addActions(actions->all());

  connect(&session, &Session::currentRunChanged, this, &RunsPage::selectCurrent);
  connect(session.runs(), &RunList::changed, this, &RunsPage::updateDetails);
  connect(sorted_, &QAbstractItemModel::modelReset, this, &RunsPage::selectCurrent);
  connect(table_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (!(index.flags() & Qt::ItemIsEditable)) session_.showPage(QStringLiteral("live"));
  });
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RunsPage::updateDetails);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (!selecting_ && index.isValid()) session_.setCurrentRun(index.data(RunList::DirectoryRole).toString());
  });
  selectCurrent();
  updateDetails();
}

QWidget* RunsPage::makeTable() {
  auto* style = new RoomyCells;
  style->setParent(table_);
  table_->setStyle(style);
  table_->header()->setStyle(style);
  table_->setModel(sorted_);
  table_->setItemDelegateForColumn(RunsTable::name, new SwatchDelegate(table_));
  table_->setRootIsDecorated(false);
  table_->setUniformRowHeights(true);
  table_->setSortingEnabled(true);
  const QVariant by = session_.place().value("runs/sorted_by");
  table_->sortByColumn(by.isValid() ? by.toInt() : -1,
                       session_.place().value("runs/descending").toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
  connect(table_->header(), &QHeaderView::sortIndicatorChanged, this, [this](int column, Qt::SortOrder order) {
    session_.place().set("runs/sorted_by", column);
    session_.place().set("runs/descending", order == Qt::DescendingOrder);
  });
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setAccessibleName(tr("All runs"));
  table_->setAllColumnsShowFocus(true);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setMaximumSectionSize(260);
  for (const int often_empty : {RunsTable::tags, RunsTable::note})  // the numbers are seen first
    table_->header()->moveSection(table_->header()->visualIndex(often_empty), RunsTable::duration);
  table_->setTextElideMode(Qt::ElideMiddle);
  return table_;
}

QWidget* RunsPage::makeDetails() {
  auto* content = new QWidget(this);
  details_->setWordWrap(true);
  details_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  details_->setTextFormat(Qt::PlainText);
  details_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(details_);
  column->addWidget(differs_, 1);
  return content;
}

void RunsPage::selectCurrent() {
  for (int row = 0; row < sorted_->rowCount(); ++row) {
    const QModelIndex index = sorted_->index(row, 0);
    if (index.data(RunList::DirectoryRole).toString() != session_.currentRun()) continue;
    QItemSelectionModel* selection = table_->selectionModel();
    if (selection->currentIndex().row() == row && selection->isRowSelected(row)) return;
    selecting_ = true;
    selection->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    selecting_ = false;
  }
}

void RunsPage::updateDetails() {
  QModelIndexList rows = table_->selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end());
  std::vector<const Run*> runs;
  QStringList heads, chosen;
  for (const QModelIndex& row : rows) chosen << row.data(RunList::DirectoryRole).toString();
  if (isVisible()) session_.setChosen(chosen);
  for (const QModelIndex& row : rows) {
    const Run* run = session_.runs()->run(row.data(RunList::DirectoryRole).toString());
    if (!run) continue;
    runs.push_back(run);
    heads << session_.runs()->label(*run);
  }
  const bool one = runs.size() == 1;
  const std::vector<Difference> found = one ? all_settings(*runs.front()) : differences(runs);
  selected_->setTitle(tr("Selected"), runs.empty() ? QString() : one ? tr("one run: its settings") : tr("several runs: what differs"));
  differs_->setVisible(!found.empty());
  differs_->setAccessibleName(one ? tr("Settings of the selected run") : tr("What differs between the selected runs"));
  differs_->setDifferences(found, one ? QStringList() : heads);
  details_->setVisible(one || found.empty());
  if (rows.isEmpty()) return details_->setText(tr("Choose a run; with Ctrl or Shift several, to see in what they differ."));
  if (runs.size() > 1) return details_->setText(tr("The %1 selected runs have equal settings.").arg(runs.size()));
  if (runs.empty()) return details_->setText(rows.first().data(RunList::ProblemRole).toString());
  const RunInfo& info = runs.front()->info();
  QStringList lines{summary_of(*runs.front()), QString::fromStdString(info.directory.string())};
  if (const QString parent = parent_text(info); !parent.isEmpty()) lines << parent;
  const RunNotes& notes = runs.front()->notes();
  for (const std::string& own : {tags_text(notes.tags), notes.note})
    if (!own.empty()) lines << QString::fromStdString(own);
  if (!info.message.empty()) lines.prepend(QString::fromStdString(info.message));
  for (const std::string& problem : {runs.front()->damage(), runs.front()->lost()})
    if (!problem.empty()) lines.prepend(QStringLiteral("⚠ ") + QString::fromStdString(problem));
  details_->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace saccade::ui
