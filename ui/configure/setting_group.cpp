#include "ui/configure/setting_group.h"

#include <QGridLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/configure/setting_editor.h"

namespace saccade::ui {
namespace {
constexpr int column_width = 210, most_columns = 3, gap = 18;
}

SettingGroup::SettingGroup(const QString& title, std::vector<SettingEditor*> editors, bool open, QWidget* parent)
    : QWidget(parent),
      title_(title),
      editors_(std::move(editors)),
      shown_(editors_),
      fold_(new QToolButton(this)),
      body_(new QWidget(this)),
      open_(open) {
  fold_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  fold_->setAutoRaise(true);
  QFont bold = font();
  bold.setBold(true);
  fold_->setFont(bold);
  grid_ = new QGridLayout(body_);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setHorizontalSpacing(gap);
  grid_->setVerticalSpacing(2);
  for (SettingEditor* editor : editors_) editor->setParent(body_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 6);
  column->setSpacing(2);
  column->addWidget(fold_, 0, Qt::AlignLeft);
  column->addWidget(body_);
  connect(fold_, &QToolButton::clicked, this, [this] {
    open_ = !open_;
    updateTitle();
  });
  arrange();
  updateTitle();
}

void SettingGroup::updateTitle() {
  body_->setVisible(open_);
  fold_->setArrowType(open_ ? Qt::DownArrow : Qt::RightArrow);
  fold_->setText(open_ ? title_ : tr("%1 (%2)").arg(title_).arg(editors_.size()));
  fold_->setVisible(!title_.isEmpty());
  fold_->setAccessibleName(open_ ? tr("Fold %1").arg(title_) : tr("Unfold %1").arg(title_));
}

void SettingGroup::unfold() {
  open_ = true;
  updateTitle();
}

int SettingGroup::search(const QString& words) {
  shown_.clear();
  const bool all = words.isEmpty() || title_.startsWith(words, Qt::CaseInsensitive);  // the group is what is looked for
  for (SettingEditor* editor : editors_)
    if (all || editor->matches(words)) shown_.push_back(editor);
  columns_ = 0;
  arrange();
  setVisible(!shown_.empty());
  if (words.isEmpty())
    updateTitle();
  else
    body_->show();
  return static_cast<int>(shown_.size());
}

void SettingGroup::arrange() {
  const int columns = std::clamp((width() + gap) / (column_width + gap), 1, most_columns);
  if (columns == columns_) return;
  columns_ = columns;
  for (SettingEditor* editor : editors_) {
    grid_->removeWidget(editor);
    editor->hide();
  }
  for (int i = 0; i < most_columns; ++i) grid_->setColumnStretch(i, i < columns ? 1 : 0);
  for (size_t i = 0; i < shown_.size(); ++i) {
    const int at = static_cast<int>(i);
    grid_->addWidget(shown_[i], at / columns, at % columns, Qt::AlignTop);
    shown_[i]->show();
  }
}

void SettingGroup::resizeEvent(QResizeEvent*) { arrange(); }

}  // namespace saccade::ui
