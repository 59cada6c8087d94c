#include "ui/runs/runs_page.h"

#include <QAction>
#include <QLabel>
#include <QMenu>
#include <QSet>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "ui/charts/figure_view.h"
#include "ui/page.h"
#include "ui/page_action.h"
#include "ui/queue_calls.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/runs/differences_view.h"
#include "ui/runs/grouping_choice.h"
#include "ui/runs/queued_runs.h"
#include "ui/runs/run_tree.h"
#include "ui/runs/runs_view.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

constexpr size_t kMostCompared = 12;  // columns that can be read

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

QStringList lines_of(const Run& run) {
  const RunInfo& info = run.info();
  QStringList lines{summary_of(run), QString::fromStdString(info.directory.string())};
  if (const QString parent = parent_text(info); !parent.isEmpty()) lines << parent;
  for (const std::string& own : {tags_text(run.notes().tags), run.notes().note})
    if (!own.empty()) lines << QString::fromStdString(own);
  if (!info.message.empty()) lines.prepend(QString::fromStdString(info.message));
  for (const std::string& problem : {run.damage(), run.lost()})
    if (!problem.empty()) lines.prepend(QStringLiteral("⚠ ") + QString::fromStdString(problem));
  return lines;
}

/// Rows from the top down to it.
std::array<int, 3> place_of(const QModelIndex& index) {
  std::array<int, 3> place{-1, -1, -1};
  std::vector<int> rows;
  for (QModelIndex at = index; at.isValid(); at = at.parent()) rows.insert(rows.begin(), at.row());
  std::copy_n(rows.begin(), std::min(rows.size(), place.size()), place.begin());
  return place;
}

RunTree::Kind kind_of(const QModelIndex& index) { return static_cast<RunTree::Kind>(index.data(RunTree::KindRole).toInt()); }

}  // namespace

RunsPage::RunsPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      actions_(new RunActions(session, this)),
      queued_(new QueuedRuns(this)),
      queue_(new QueueCalls(session, this)),
      tree_(new RunTree(session.runs(), queued_, this)),
      table_(new RunsView(session, *tree_, this)),
      details_(new QLabel(this)),
      differs_(new DifferencesView(this)) {
  auto* halves = new QSplitter(Qt::Vertical, this);
  auto* runs_card = new Card(tr("Runs"), tr("loss in nats per token, last value"), makeTable(), halves);
  group_ = new GroupingChoice(session, *tree_, runs_card);
  auto* by = new QLabel(tr("Group by"), runs_card);
  by->setBuddy(group_);
  runs_card->addControl(by);
  runs_card->addControl(group_);
  for (QAction* action : {actions_->resume, actions_->stop, actions_->openFolder}) {
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
  makeActions();
  follow();
  selectCurrent();
  updateDetails();
}

void RunsPage::makeActions() {
  choose_group_ = addPageAction(this, tr("Group the runs"), tr("Gathers runs that have a setting in common"),
                                QKeySequence(Qt::CTRL | Qt::Key_G), [this] {
                                  group_->setFocus(Qt::ShortcutFocusReason);
                                  group_->showPopup();
                                });
  group_->setToolTip(choose_group_->toolTip());
  fold_ = addPageAction(this, tr("Fold all groups"), tr("Shows the groups of runs alone"), {}, [this] { table_->foldAll(true); });
  unfold_ = addPageAction(this, tr("Unfold all groups"), tr("Shows the runs of every group"), {}, [this] { table_->foldAll(false); });
}

void RunsPage::follow() {
  connect(tree_, &RunTree::failed, &session_, &Session::failed);
  connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (index.column() == RunsTable::star) tree_->setData(index, index.data(RunsTable::SortRole).toDouble() > 0, Qt::EditRole);
  });
  connect(&session_, &Session::currentRunChanged, this, &RunsPage::selectCurrent);
  connect(session_.runs(), &RunList::changed, this, &RunsPage::updateDetails);
  connect(tree_, &RunTree::arranged, this, [this] {
    if (missing_ || !table_->selectionModel()->hasSelection()) selectCurrent();
    for (QAction* action : {fold_, unfold_}) action->setEnabled(!tree_->grouping().isEmpty() && tree_->rowCount() > 0);
  });
  for (QAction* action : {fold_, unfold_}) action->setEnabled(!tree_->grouping().isEmpty());
  connect(table_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    const bool run = kind_of(index) == RunTree::Kind::run || kind_of(index) == RunTree::Kind::branch;
    if (run && !(index.flags() & Qt::ItemIsEditable)) session_.showPage(QStringLiteral("live"));
    if (kind_of(index) == RunTree::Kind::queued) session_.showPage(QStringLiteral("studies"));
  });
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RunsPage::updateDetails);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    const QString directory = index.data(RunList::DirectoryRole).toString();
    if (!selecting_ && !directory.isEmpty()) session_.setCurrentRun(directory);
  });
  table_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(table_, &QWidget::customContextMenuRequested, this, &RunsPage::showMenu);
  connect(queue_, &QueueCalls::done, queued_, &QueuedRuns::look);
  connect(session_.runs(), &RunList::changed, this, &RunsPage::lookForQueued);
}

QWidget* RunsPage::makeTable() { return table_; }

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

void RunsPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  lookForQueued();
  queued_->setLooking(true);
}

void RunsPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  queued_->setLooking(false);
}

/// In the folder, and in those that its runs stand in.
void RunsPage::lookForQueued() {
  QSet<QString> folders{session_.runs()->folder()};
  for (int row = 0; row < session_.runs()->rowCount(); ++row) {
    const QString directory = session_.runs()->index(row).data(RunList::DirectoryRole).toString();
    if (trunk_in(directory).isEmpty()) folders.insert(directory.left(directory.lastIndexOf(QLatin1Char('/'))));
  }
  QStringList all(folders.begin(), folders.end());
  all.sort();
  queued_->setFolders(session_.runs()->folder(), all);
}

void RunsPage::showMenu(const QPoint& at) {
  const QModelIndex index = table_->indexAt(at).isValid() ? table_->indexAt(at) : table_->currentIndex();
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (const QueuedRun* run = tree_->queued(index)) {
    addQueueActions(*menu, *run);
  } else if (index.isValid() && kind_of(index) == RunTree::Kind::group) {
    menu->addActions({fold_, unfold_});
    menu->addSeparator();
    menu->addActions({actions_->showOnly, actions_->showAll, actions_->star, actions_->trash, actions_->restore});
  } else {
    menu->addActions(actions_->all());
  }
  menu->addSeparator();
  table_->addColumns(*menu->addMenu(tr("Columns")));
  menu->popup(table_->viewport()->mapToGlobal(at));
}

/// What the page Studies does with entries of the queue.
void RunsPage::addQueueActions(QMenu& menu, const QueuedRun& run) {
  const QString name = QString::fromStdString(run.info.name), device = run.device;
  const auto move = [&](const QString& text, int by) {
    QAction* action =
        menu.addAction(text, this, [this, device, entry = run.entry, place = run.place + by] { queue_->move({device}, entry, place); });
    action->setEnabled(run.place + by >= 1 && run.place + by <= run.count);
  };
  menu.addAction(tr("&Go on with the queue"), this, [this, device] { queue_->goOn({device}); });
  move(tr("&Earlier in the queue"), -1);
  move(tr("&Later in the queue"), 1);
  const bool whole = !run.study.isEmpty();
  menu.addAction(whole ? tr("&Take the study %1 out of the queue").arg(run.study) : tr("&Take out of the queue"), this,
                 [this, device, entry = run.entry, told = whole ? run.study : name] { queue_->takeOut({device}, entry, told); });
}

void RunsPage::selectCurrent() {
  const QModelIndex index = tree_->indexOf(session_.currentRun());
  missing_ = !index.isValid();
  if (missing_ || table_->isInFolded(index)) return;  // what was folded stays so
  QItemSelectionModel* selection = table_->selectionModel();
  const QString marked = selection->currentIndex().data(RunList::DirectoryRole).toString();
  if (marked == session_.currentRun() && selection->isSelected(selection->currentIndex())) return;
  selecting_ = true;
  selection->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  selecting_ = false;
}

QStringList RunsPage::marked() const {
  QModelIndexList rows = table_->selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end(), [](const QModelIndex& a, const QModelIndex& b) { return place_of(a) < place_of(b); });
  QStringList members;
  for (const QModelIndex& row : std::as_const(rows)) members << row.data(RunTree::MembersRole).toStringList();
  members.removeDuplicates();
  return members;
}

void RunsPage::updateDetails() {
  const QStringList members = marked();
  if (isVisible()) session_.setChosen(members);
  const QModelIndexList rows = table_->selectionModel()->selectedRows();
  if (rows.size() == 1)
    if (const QueuedRun* queued = tree_->queued(rows.first()))
      return showOne({rows.first().data(Qt::ToolTipRole).toString()}, all_settings(queued->info));
  if (members.isEmpty()) {
    showOne({tr("Choose a run; with Ctrl or Shift several, to see in what they differ.")}, {});
    return selected_->setTitle(tr("Selected"), QString());
  }
  const QString baseline = session_.runs()->selection().baseline();
  const Run* run = session_.runs()->run(members.first());
  if (members.size() > 1 || (run && members.first() != baseline && session_.runs()->run(baseline))) return showSeveral(members);
  run ? showOne(lines_of(*run), all_settings(run->info())) : showOne({rows.first().data(RunList::ProblemRole).toString()}, {});
}

void RunsPage::showOne(const QStringList& lines, const std::vector<Difference>& settings) {
  selected_->setTitle(tr("Selected"), tr("one run: its settings"));
  details_->setVisible(true);
  details_->setText(lines.join(QLatin1Char('\n')));
  differs_->setVisible(!settings.empty());
  differs_->setAccessibleName(tr("Settings of the selected run"));
  differs_->setDifferences(settings, {});
}

void RunsPage::showSeveral(const QStringList& members) {
  const ComparedRuns compared = compared_runs(*session_.runs(), members, kMostCompared);
  const std::vector<Difference> found = differences(compared.runs);
  const bool cut = members.size() > static_cast<qsizetype>(kMostCompared);
  selected_->setTitle(tr("Selected"), cut ? tr("%1 runs: what differs among the first %2").arg(members.size()).arg(kMostCompared)
                                      : compared.with_baseline ? tr("what differs from the baseline")
                                                               : tr("several runs: what differs"));
  QStringList lines;
  if (members.size() == 1) lines = lines_of(*session_.runs()->run(members.first()));
  if (found.empty())
    lines << (members.size() == 1 ? tr("It has the baseline's settings.")
                                  : tr("The %1 selected runs have equal settings.").arg(members.size()));
  details_->setVisible(!lines.isEmpty());
  details_->setText(lines.join(QLatin1Char('\n')));
  differs_->setVisible(!found.empty());
  differs_->setAccessibleName(tr("What differs between the selected runs"));
  differs_->setDifferences(found, compared.heads, compared.with_baseline);
}

}  // namespace saccade::ui
