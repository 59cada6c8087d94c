#include "ui/configure/settings_form.h"

#include <QCoreApplication>
#include <QEvent>
#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <set>

#include "ui/configure/setting_editor.h"
#include "ui/configure/setting_group.h"
#include "ui/plain_scroll.h"

namespace saccade::ui {
namespace {

constexpr const char* kFirst = "";  ///< group of the settings that stand first

/// The eight settings that a first run needs, in the order in which they are shown: those marked, and as many of the others as are missing.
std::vector<FormField> first_fields(const std::vector<FormField>& fields) {
  constexpr size_t kWanted = 8;
  const auto find = [&](const std::string& pointer) {
    return std::find_if(fields.begin(), fields.end(), [&](const FormField& field) { return field.pointer == pointer; });
  };
  const bool of_task = find("/data/corpus") == fields.end();  // which takes the place of a corpus
  const std::pair<std::string, bool> order[] = {
      {"/architecture/mixer", true},  {"/architecture/block", false},    {"/architecture/layers", true},
      {"/architecture/depth", false}, {"/architecture/width", true},     {"/architecture/heads", false},
      {"/data/corpus", true},         {"/data/task", of_task},           {"/data/train", false},
      {"/data/ood", false},           {"/data/sequence_length", true},   {"/training/batch_tokens", true},
      {"/training/steps", true},      {"/training/learning_rate", true}, {"/training/schedule", false},
      {"/training/seed", false}};
  std::set<std::string> chosen;
  for (const bool marked : {true, false})
    for (const auto& [pointer, first] : order)
      if (first == marked && chosen.size() < kWanted && find(pointer) != fields.end()) chosen.insert(pointer);
  std::vector<FormField> list;
  for (const auto& [pointer, first] : order)
    if (chosen.count(pointer)) list.push_back(*find(pointer));
  for (FormField& field : list) field.group = kFirst;
  return list;
}

/// Those first, then all others in their groups.
std::vector<FormField> arranged(const std::vector<FormField>& fields) {
  std::vector<FormField> list = first_fields(fields);
  const size_t first = list.size();
  for (const FormField& field : fields)
    if (std::none_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(first),
                     [&](const FormField& other) { return other.pointer == field.pointer; }))
      list.push_back(field);
  return list;
}

bool same_field(const FormField& a, const FormField& b) {
  return a.pointer == b.pointer && a.group == b.group && a.setting.choices == b.setting.choices && a.setting.minimum == b.setting.minimum &&
         a.setting.maximum == b.setting.maximum && a.setting.default_value == b.setting.default_value;
}

}  // namespace

SettingsForm::SettingsForm(QWidget* parent)
    : QWidget(parent),
      search_(new QLineEdit(this)),
      all_(new QToolButton(this)),
      nothing_(new QLabel(tr("No setting matches."), this)),
      content_(new QWidget),
      column_(new QVBoxLayout(content_)) {
  search_->setPlaceholderText(tr("Search in all settings"));
  search_->setAccessibleName(tr("Search in all settings"));
  search_->setClearButtonEnabled(true);
  nothing_->setForegroundRole(QPalette::PlaceholderText);
  nothing_->hide();
  column_->setContentsMargins(0, 0, 8, 0);
  QScrollArea* scroll = scroll_ = new PlainScroll(content_, this);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(search_);
  column->addWidget(nothing_);
  column->addWidget(scroll, 1);
  all_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  all_->setCheckable(true);
  all_->setAutoRaise(true);
  content_->installEventFilter(this);
  connect(all_, &QToolButton::clicked, this, &SettingsForm::showAll);
  connect(search_, &QLineEdit::textChanged, this, &SettingsForm::search);
}

void SettingsForm::setDraft(const ConfigDraft& draft) {
  const std::vector<FormField> fields = arranged(draft.fields());
  const bool same = fields.size() == editors_.size() &&
                    std::equal(fields.begin(), fields.end(), editors_.begin(),
                               [](const FormField& field, const SettingEditor* editor) { return same_field(field, editor->field()); });
  auto* typed_in = qobject_cast<QLineEdit*>(focusWidget());
  const int caret = typed_in ? typed_in->cursorPosition() : -1;
  if (!same) build(fields);
  for (size_t i = 0; i < fields.size(); ++i)
    editors_[i]->setValue(draft.value(fields[i]), draft.changed(fields[i]), draft.preset_value(fields[i]));
  changed_ = 0;
  for (const FormField& field : fields) changed_ += field.group != kFirst && draft.changed(field) ? 1 : 0;
  arrange();
  if (auto* line = qobject_cast<QLineEdit*>(focusWidget()); !same && line && caret >= 0) line->setCursorPosition(caret);
}

void SettingsForm::build(const std::vector<FormField>& fields) {
  std::string focused;
  const QMetaObject* kind = nullptr;  // an editor has a line and a reset button
  for (SettingEditor* editor : editors_)
    if (editor->isAncestorOf(focusWidget())) focused = editor->field().pointer, kind = focusWidget()->metaObject();
  for (SettingGroup* group : groups_) {
    column_->removeWidget(group);
    group->hide();
    group->deleteLater();
  }
  groups_.clear();
  editors_.clear();
  while (QLayoutItem* rest = column_->takeAt(0)) delete rest;
  for (size_t begin = 0; begin < fields.size();) {
    size_t end = begin;
    std::vector<SettingEditor*> editors;
    for (; end < fields.size() && fields[end].group == fields[begin].group; ++end) {
      auto* editor = new SettingEditor(fields[end]);
      connect(editor, &SettingEditor::edited, this, [this, editor](const nlohmann::json& value) { Q_EMIT edited(editor->field(), value); });
      connect(editor, &SettingEditor::resetWanted, this, [this, editor] { Q_EMIT resetWanted(editor->field()); });
      if (const auto known = proposals_.find(fields[end].pointer); known != proposals_.end()) editor->setProposals(known->second);
      editors.push_back(editor);
    }
    editors_.insert(editors_.end(), editors.begin(), editors.end());
    auto* group = new SettingGroup(QString::fromStdString(fields[begin].group), std::move(editors), true, content_);
    groups_.push_back(group);
    column_->addWidget(group);
    if (begin == 0) column_->addWidget(all_, 0, Qt::AlignLeft);
    begin = end;
  }
  column_->addStretch();
  search(search_->text());
  SettingEditor* again = editor(focused);
  for (QWidget* part : again ? again->findChildren<QWidget*>() : QList<QWidget*>())
    if (part->metaObject() == kind) {
      part->setFocus();
      break;
    }
  Q_EMIT rebuilt();
}

/// What Tab goes through, from top to bottom.
QWidgetList SettingsForm::stops() const {
  QWidgetList list{search_};
  for (const SettingGroup* group : groups_) {
    if (group == groups_[std::min<size_t>(1, groups_.size() - 1)]) list << all_;
    for (QWidget* part : group->findChildren<QWidget*>())
      if (part->focusPolicy() & Qt::TabFocus && !part->focusProxy() && part->window() == window()) list << part;  // no lists of combos
  }
  return list;
}

/// Unfolds the group of a setting and puts the cursor there; false when the form has no such setting.
bool SettingsForm::reveal(const std::string& pointer) {
  search_->clear();
  SettingEditor* its = editor(pointer);
  if (!its) return false;
  if (its->field().group != kFirst) showAll(true);
  for (SettingGroup* group : groups_)
    if (group->isAncestorOf(its)) group->unfold();
  content_->layout()->activate();
  for (QWidget* part : its->findChildren<QWidget*>()) {
    if (!(part->focusPolicy() & Qt::TabFocus) || qobject_cast<QToolButton*>(part)) continue;
    part->setFocus(Qt::ShortcutFocusReason);
    break;
  }
  scroll_->ensureWidgetVisible(its);
  return true;
}

void SettingsForm::search(const QString& words) {
  int found = 0;
  for (SettingGroup* group : groups_) found += group->search(words.trimmed());
  nothing_->setVisible(found == 0);
  arrange();
}

void SettingsForm::showAll(bool all) {
  all_->setChecked(all);
  arrange();
  Q_EMIT allShown(all);
}

int SettingsForm::wholeHeight() const {
  QLayout* layout = content_->layout();
  layout->activate();
  const int width = scroll_->viewport()->width();  // problems are as high as they have lines
  return (layout->hasHeightForWidth() ? layout->totalHeightForWidth(width) : content_->sizeHint().height()) + scroll_->y();
}

/// A problem that comes or goes makes the content another height, of which only the scrolled part hears.
bool SettingsForm::eventFilter(QObject* watched, QEvent* event) {
  if (watched == content_ && event->type() == QEvent::LayoutRequest) QCoreApplication::postEvent(this, new QEvent(QEvent::LayoutRequest));
  return QWidget::eventFilter(watched, event);
}

/// The eight, and all others where they are wanted.
void SettingsForm::arrange() {
  const bool searching = !search_->text().trimmed().isEmpty();
  for (size_t i = 1; i < groups_.size() && !searching; ++i) groups_[i]->setVisible(all_->isChecked());
  all_->setVisible(!searching && groups_.size() > 1);
  all_->setArrowType(all_->isChecked() ? Qt::DownArrow : Qt::RightArrow);
  const qsizetype others = static_cast<qsizetype>(editors_.size()) - (groups_.empty() ? 0 : groups_.front()->size());
  all_->setText(changed_ > 0 ? tr("All settings (%1 more, %2 changed)").arg(others).arg(changed_)
                             : tr("All settings (%1 more)").arg(others));
  all_->setAccessibleName(tr("All settings"));
}

void SettingsForm::setProblem(const ConfigProblem& problem) {
  for (SettingEditor* editor : editors_) {
    const bool its = !problem.pointer.empty() && editor->field().pointer == problem.pointer;
    QString text = QString::fromStdString(problem.message);
    if (text.startsWith(QString::fromStdString(problem.pointer) + QStringLiteral(" is ")))
      text = text.mid(static_cast<qsizetype>(problem.pointer.size()) + 1);
    editor->setProblem(its ? text : QString());
    if (!its) continue;
    if (editor->field().group != kFirst && !all_->isChecked()) showAll(true);
    for (SettingGroup* group : groups_)
      if (group->isAncestorOf(editor)) group->unfold();
  }
}

void SettingsForm::setProposals(const std::string& pointer, const QStringList& proposals) {
  proposals_[pointer] = proposals;
  if (SettingEditor* its = editor(pointer)) its->setProposals(proposals);
}

SettingEditor* SettingsForm::editor(const std::string& pointer) const {
  for (SettingEditor* editor : editors_)
    if (editor->field().pointer == pointer) return editor;
  return nullptr;
}

}  // namespace saccade::ui
