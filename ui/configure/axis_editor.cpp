#include "ui/configure/axis_editor.h"

#include <QComboBox>
#include <QCompleter>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/calm_wheel.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/sweep.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

std::string text_of(const QLineEdit* line) { return line->text().toStdString(); }

void put(QLineEdit* line, const Json& axis, const char* key) {
  const QString text = QString::fromStdString(axis.value(key, std::string()));
  if (line->text() != text) line->setText(text);
}

}  // namespace

AxisEditor::AxisEditor(const QString& name, bool removable, QWidget* parent)
    : QWidget(parent),
      setting_(new QComboBox(this)),
      kind_(new QComboBox(this)),
      remove_(new QToolButton(this)),
      note_(new ProblemLabel(this)) {
  setting_->setEditable(true);
  setting_->setInsertPolicy(QComboBox::NoInsert);
  setting_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  setting_->setMinimumContentsLength(12);
  setting_->setAccessibleName(tr("%1, setting").arg(name));
  setting_->completer()->setFilterMode(Qt::MatchContains);
  setting_->completer()->setCompletionMode(QCompleter::PopupCompletion);
  setting_->lineEdit()->setPlaceholderText(tr("a setting"));
  kind_->addItem(tr("values"), QStringLiteral("values"));
  kind_->addItem(tr("range"), QStringLiteral("range"));
  kind_->addItem(tr("log range"), QStringLiteral("log"));
  kind_->setAccessibleName(tr("%1, kind of values").arg(name));
  for (QComboBox* combo : {setting_, kind_}) calm_wheel(combo);
  remove_->setText(QStringLiteral("×"));
  remove_->setAutoRaise(true);
  remove_->setAccessibleName(tr("Remove %1").arg(name));
  remove_->setToolTip(tr("Takes the axis out"));
  remove_->setVisible(removable);
  auto* first = new QHBoxLayout;
  first->addWidget(setting_, 3);
  first->addWidget(kind_);
  first->addWidget(remove_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 4);
  column->setSpacing(3);
  column->addLayout(first);
  column->addWidget(makeValues(name));
  column->addWidget(note_);
  const auto changed = [this] {
    if (!showing_) Q_EMIT edited();
  };
  connect(setting_, &QComboBox::currentTextChanged, this, [this, changed](const QString& setting) {
    if (showing_) return;
    const bool known = setting_->findText(setting) >= 0 && setting != std::exchange(chosen_, setting);
    known ? settingChosen(setting) : changed();
  });
  connect(kind_, &QComboBox::currentIndexChanged, this, [this, changed] {
    showKind();
    changed();
  });
  for (QLineEdit* line : {values_, from_, to_}) connect(line, &QLineEdit::textEdited, this, changed);
  connect(count_, &QSpinBox::valueChanged, this, changed);
  connect(remove_, &QToolButton::clicked, this, &AxisEditor::removeWanted);
  showKind();
}

QWidget* AxisEditor::makeValues(const QString& name) {
  auto* both = new QWidget(this);
  values_ = new QLineEdit(both);
  values_->setPlaceholderText(tr("8, 16, 32"));
  values_->setAccessibleName(tr("%1, values").arg(name));
  values_->setToolTip(tr("With commas between; with semicolons where values have commas themselves."));
  range_ = new QWidget(both);
  from_ = new QLineEdit(range_), to_ = new QLineEdit(range_);
  from_->setAccessibleName(tr("%1, from").arg(name));
  to_->setAccessibleName(tr("%1, to").arg(name));
  count_ = new QSpinBox(range_);
  count_->setRange(2, 1000);
  count_->setSuffix(tr(" values"));
  for (QWidget* field : QWidgetList{from_, to_, count_}) field->setMinimumWidth(64);
  count_->setAccessibleName(tr("%1, number of values").arg(name));
  calm_wheel(count_);
  auto* row = new QHBoxLayout(range_);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(from_, 1);
  row->addWidget(new QLabel(QStringLiteral("…"), range_));
  row->addWidget(to_, 1);
  row->addWidget(count_);
  auto* column = new QVBoxLayout(both);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(values_);
  column->addWidget(range_);
  return both;
}

void AxisEditor::showKind() {
  const bool list = kind_->currentIndex() == 0;
  values_->setVisible(list);
  range_->setVisible(!list);
}

void AxisEditor::setFields(const std::vector<FormField>& fields) {
  QStringList names{QStringLiteral("base")};
  for (const FormField& field : fields)
    if (const QString name = QString::fromStdString(dotted_name(field));
        name.contains(QLatin1Char('.')) || name == QStringLiteral("precision"))
      names << name;
  QStringList now;
  for (int i = 0; i < setting_->count(); ++i) now << setting_->itemText(i);
  if (now == names) return;
  showing_ = true;
  const QString text = setting_->currentText();
  setting_->clear();
  setting_->addItems(names);
  setting_->setCurrentIndex(-1);
  setting_->setEditText(text);
  showing_ = false;
}

void AxisEditor::setAxis(const Json& axis) {
  showing_ = true;
  chosen_ = QString::fromStdString(axis.value("setting", ""));
  if (setting_->currentText() != chosen_) setting_->setEditText(chosen_);
  kind_->setCurrentIndex(std::max(0, kind_->findData(QString::fromStdString(axis.value("kind", "values")))));
  put(values_, axis, "values");
  put(from_, axis, "from");
  put(to_, axis, "to");
  count_->setValue(axis.value("count", 3));
  showing_ = false;
}

Json AxisEditor::axis() const {
  return {{"setting", setting_->currentText().trimmed().toStdString()},
          {"kind", kind_->currentData().toString().toStdString()},
          {"values", text_of(values_)},
          {"from", text_of(from_)},
          {"to", text_of(to_)},
          {"count", count_->value()}};
}

void AxisEditor::setNote(const QString& note, bool wrong) { wrong ? note_->say(note) : note_->note(note); }

QWidgetList AxisEditor::stops() const {
  QWidgetList all{setting_, kind_};
  if (remove_->isVisibleTo(const_cast<AxisEditor*>(this))) all << remove_;
  return all << values_ << from_ << to_ << count_;
}

}  // namespace saccade::ui
