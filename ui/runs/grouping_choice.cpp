#include "ui/runs/grouping_choice.h"

#include <QAbstractItemView>
#include <QHash>
#include <QSignalBlocker>
#include <algorithm>

#include "ui/calm_wheel.h"
#include "ui/runs/run_tree.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

constexpr const char* kPlace = "runs/group";

/// Another one when other settings may differ.
size_t fingerprint(const std::vector<RunFacts>& runs) {
  size_t hash = runs.size();
  for (const RunFacts& run : runs) {
    hash = qHashMulti(hash, run.info.directory.native(), run.state, run.study, run.info.host);
    if (run.notes)
      for (const std::string& tag : run.notes->tags) hash = qHashMulti(hash, tag);
  }
  return hash;
}

}  // namespace

GroupingChoice::GroupingChoice(Session& session, RunTree& tree, QWidget* parent)
    : QComboBox(parent), session_(session), tree_(tree), job_(this, [this](std::vector<RunSetting> found) { offer(std::move(found)); }) {
  setAccessibleName(tr("Group runs by"));
  setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  setMinimumContentsLength(15);
  setMaxVisibleItems(24);
  calm_wheel(this);
  tree_.setGrouping(session_.place().value(kPlace).toString());
  fill();
  connect(this, &QComboBox::activated, this, [this] {
    tree_.setGrouping(currentData().toString());
    session_.place().set(kPlace, tree_.grouping());
    setToolTip(currentText());
  });
  connect(&tree_, &RunTree::arranged, this, &GroupingChoice::follow);
  follow();
}

void GroupingChoice::follow() {
  std::vector<SharedRun> kept;
  std::vector<RunFacts> runs = tree_.facts(kept);
  if (const size_t now = fingerprint(runs); std::exchange(known_, now) == now) return;
  job_.ask([kept = std::move(kept), runs = std::move(runs)] { return differing_settings(runs); }, false);
}

void GroupingChoice::showPopup() {
  fill();
  QComboBox::showPopup();
}

void GroupingChoice::offer(std::vector<RunSetting> settings) {
  settings_ = std::move(settings);
  if (!view()->isVisible()) fill();
}

/// The one that is chosen stays among them, whatever the runs.
void GroupingChoice::fill() {
  const QSignalBlocker blocker(this);
  const std::string chosen = tree_.grouping().toStdString();
  std::vector<RunSetting> offered = settings_;
  const bool there = std::any_of(offered.begin(), offered.end(), [&](const RunSetting& each) { return each.key == chosen; });
  if (!there && !chosen.empty()) offered.insert(offered.begin(), setting_of(chosen));
  clear();
  addItem(tr("no setting"), QString());
  for (size_t i = 0; i < offered.size(); ++i) {
    if (i > 0 && offered[i - 1].usual && !offered[i].usual) insertSeparator(count());
    addItem(QString::fromStdString(offered[i].title), QString::fromStdString(offered[i].key));
    setItemData(count() - 1, QString::fromStdString(offered[i].key), Qt::ToolTipRole);
  }
  setCurrentIndex(std::max(0, findData(QString::fromStdString(chosen))));
}

}  // namespace saccade::ui
