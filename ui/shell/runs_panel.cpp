#include "ui/shell/runs_panel.h"

#include <QAction>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QScrollBar>
#include <QVBoxLayout>

#include "analysis/comparison/filter_names.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/runs/differences_view.h"
#include "ui/session.h"
#include "ui/shell/grouped_runs.h"
#include "ui/shell/run_delegate.h"
#include "ui/theme.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

/// Of a thousand runs the one at work changes five times a second. A QListView would lay out and paint all of them anew; here rows are
/// laid out when one has another height.
class SteadyList : public QListView {
 public:
  using QListView::QListView;

 protected:
  void dataChanged(const QModelIndex& first, const QModelIndex& last, const QList<int>& roles) override {
    bool same = roles.isEmpty() || !roles.contains(Qt::SizeHintRole);
    for (int row = first.row(); row <= last.row() && same && roles.isEmpty(); ++row)
      same = height_of(row) == sizeHintForIndex(model()->index(row, 0)).height();
    same ? QAbstractItemView::dataChanged(first, last, roles) : QListView::dataChanged(first, last, roles);
  }

 private:
  /// As it was laid out.
  int height_of(int row) const {
    const int top = visualRect(model()->index(row, 0)).top();
    const bool is_last = row + 1 == model()->rowCount();
    return (is_last ? contentsSize().height() - verticalOffset() : visualRect(model()->index(row + 1, 0)).top()) - top;
  }
};

}  // namespace

RunsPanel::RunsPanel(Session& session, const RunActions& actions, QWidget* parent)
    : QWidget(parent),
      session_(session),
      model_(new GroupedRuns(session.runs(), this)),
      filter_(new QLineEdit(this)),
      list_(new SteadyList(this)),
      counts_(new QLabel(this)),
      empty_(new QLabel(this)),
      differs_title_(new QLabel(this)),
      differs_(new DifferencesView(this)) {
  filter_->setPlaceholderText(tr("Show only: mixer:top1 width>64 …"));
  filter_->setAccessibleName(tr("Filter runs"));
  filter_->setToolTip(
      wrapped_tip(tr("What every page shows: words to find in name and state, setting:value, setting>5, setting:2..8; also loss, ood, "
                     "seed, steps, parameters. Ctrl+F")));
  filter_->setClearButtonEnabled(true);
  list_->setModel(model_);
  list_->setItemDelegate(new RunDelegate(list_));
  list_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setFrameShape(QFrame::NoFrame);
  list_->viewport()->setAutoFillBackground(false);
  list_->setMouseTracking(true);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setAccessibleName(tr("Runs"));
  list_->setContextMenuPolicy(Qt::ActionsContextMenu);
  list_->addActions(actions.all());
  empty_->setWordWrap(true);
  empty_->setAlignment(Qt::AlignHCenter | Qt::AlignTop);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  differs_title_->setForegroundRole(QPalette::PlaceholderText);
  differs_title_->setWordWrap(true);

  counts_->setForegroundRole(QPalette::PlaceholderText);
  counts_->setWordWrap(true);
  list_->installEventFilter(this);
  setFocusProxy(list_);
  setMinimumWidth(200);  // a title, a swatch and how long is left must stay readable
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->addWidget(filter_);
  column->addWidget(counts_);
  column->addWidget(empty_);
  column->addWidget(list_, 3);
  column->addWidget(differs_title_);
  column->addWidget(differs_, 1);

  filter_->setText(session.runs()->selection().filter());
  connect(filter_, &QLineEdit::textChanged, session.runs(), &RunList::setFilter);
  connect(session.runs(), &RunList::selectionChanged, this, [this] {
    if (filter_->text() != session_.runs()->selection().filter()) filter_->setText(session_.runs()->selection().filter());
    updateCounts();
  });
  connect(session.runs(), &RunList::changed, this, &RunsPanel::updateCounts);
  connect(model_, &QAbstractItemModel::modelReset, this, &RunsPanel::selectCurrent);
  connect(model_, &QAbstractItemModel::modelReset, this, &RunsPanel::updateEmptyText);
  connect(session.runs(), &RunList::loaded, this, &RunsPanel::updateEmptyText);
  connect(filter_, &QLineEdit::textChanged, this, &RunsPanel::updateEmptyText);  // with another one there may be none, too
  connect(session.runs(), &RunList::changed, this, &RunsPanel::updateDifferences);
  connect(&session, &Session::currentRunChanged, this, &RunsPanel::selectCurrent);
  connect(list_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RunsPanel::updateDifferences);
  connect(list_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    QStringList chosen;
    for (const QModelIndex& index : list_->selectionModel()->selectedIndexes())
      chosen << index.data(GroupedRuns::MembersRole).toStringList();
    chosen.removeDuplicates();
    session_.setChosen(chosen);
  });
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (!selecting_ && index.isValid()) session_.setCurrentRun(index.data(RunList::DirectoryRole).toString());
  });
  connect(list_, &QListView::activated, this, [this] { session_.showPage(QStringLiteral("live")); });
  updateEmptyText();
  updateDifferences();
}

void RunsPanel::focusFilter() {
  filter_->setFocus(Qt::ShortcutFocusReason);
  filter_->selectAll();
}

/// Space shows or hides all that is marked; Right and Left open and close a group of seeds, or a run's branches.
bool RunsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched != list_ || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  const QModelIndex current = list_->currentIndex();
  if (key == Qt::Key_Space && !session_.chosen().isEmpty()) {
    const bool shown = current.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    session_.runs()->setShown(session_.chosen(), !shown);
    return true;
  }
  if ((key == Qt::Key_Right || key == Qt::Key_Left) && current.data(GroupedRuns::FoldsRole).toBool()) {
    model_->setOpened(current, key == Qt::Key_Right);
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

/// How many of how many are shown, and how to see all again. Branches are counted beside runs, as the headings of the list count runs, and
/// what cannot be read is in no page and under a heading of its own.
void RunsPanel::updateCounts() {
  struct Count {
    qsizetype shown = 0, all = 0;
  };
  const RunList& list = *session_.runs();
  Count runs, branches;
  for (const Run* run : list.runs()) ++(trunk_in(directory_of(*run)).isEmpty() ? runs : branches).all;
  for (const ShownGroup& group : list.selection().groups())
    for (const SharedRun& run : group.seeds)
      if (const QString directory = directory_of(*run); !list.selection().hidden().contains(directory))
        ++(trunk_in(directory).isEmpty() ? runs : branches).shown;
  const bool part = runs.shown + branches.shown < runs.all + branches.all;
  counts_->setVisible(part);
  const auto share = [](const Count& count) { return tr("%1 of %2").arg(count.shown).arg(count.all); };
  if (branches.all == 0) return counts_->setText(tr("%1 runs are shown, here and on every page.").arg(share(runs)));
  const QString kind = branches.all == 1 ? tr("%1 branch") : tr("%1 branches");
  counts_->setText(tr("%1 runs and %2 are shown, here and on every page.").arg(share(runs), kind.arg(share(branches))));
}

/// The list shows the session's run as selected; a selection of several that holds it stays.
void RunsPanel::selectCurrent() {
  const int row = model_->row(session_.currentRun());
  const QModelIndex index = row < 0 ? QModelIndex() : model_->index(row);
  QItemSelectionModel* selection = list_->selectionModel();
  if (index == selection->currentIndex() && (!index.isValid() || selection->isSelected(index))) return;
  selecting_ = true;
  const bool several = selection->selectedIndexes().size() > 1 && selection->isSelected(index);
  selection->setCurrentIndex(index, several ? QItemSelectionModel::NoUpdate : QItemSelectionModel::ClearAndSelect);
  selecting_ = false;
}

void RunsPanel::updateDifferences() {
  constexpr size_t kMost = 12;  // columns that can be read
  QModelIndexList chosen = list_->selectionModel()->selectedIndexes();
  std::sort(chosen.begin(), chosen.end());
  QStringList directories;
  for (const QModelIndex& index : std::as_const(chosen)) directories << index.data(RunList::DirectoryRole).toString();
  const bool several = directories.size() > 1;
  const ComparedRuns compared = compared_runs(*session_.runs(), several ? directories : QStringList(), kMost);
  const std::vector<Difference> found = differences(compared.runs);
  differs_title_->setVisible(several);
  differs_->setVisible(several && !found.empty());
  if (!several) return;
  differs_title_->setText(found.empty()            ? tr("The %1 selected runs have equal settings.").arg(directories.size())
                          : compared.with_baseline ? tr("What differs from the baseline")
                                                   : tr("What differs (%1 runs, in the order above)").arg(compared.runs.size()));
  differs_->setDifferences(found, compared.heads, compared.with_baseline);
}

void RunsPanel::updateEmptyText() {
  const bool none = model_->rowCount() == 0;
  empty_->setVisible(none);
  if (!none) return;
  QStringList unknown;
  for (const std::string& name : unknown_filter_names(filter_->text().toStdString(), session_.runs()->runs()))
    unknown << QStringLiteral("“%1”").arg(QString::fromStdString(name));
  const QString hint = unknown.isEmpty() ? QString() : tr("\nNo run has a setting %1.").arg(unknown.join(tr(" or ")));
  empty_->setText(session_.runs()->loading()        ? tr("Reading the folder …")
                  : session_.runs()->rowCount() > 0 ? tr("No run matches the filter, so no page shows any.") + hint
                                                    : tr("No runs here yet.\nCtrl+N configures one, Ctrl+O opens another folder."));
}

}  // namespace saccade::ui
