#include "ui/configure/setting_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>
#include <cstring>

#include "models/architectures/registry.h"
#include "ui/calm_wheel.h"
#include "ui/configure/problem_label.h"
#include "ui/theme.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;
using Kind = Setting::Kind;

QString plain_number(double value) {
  if (std::abs(value) < 1e8 && value == std::floor(value)) return QString::number(static_cast<qint64>(value));
  return QString::number(value, 'g', 6).replace(QStringLiteral("e+0"), QStringLiteral("e"));
}

/// "16 … 1024" for ranges that say something.
QString range_text(const Setting& setting) {
  if (setting.kind != Kind::integer && setting.kind != Kind::real && setting.kind != Kind::layers) return {};
  const bool low = std::isfinite(setting.minimum), high = std::isfinite(setting.maximum) && setting.maximum < 1e9;
  if (low && high) {
    const QString text = QStringLiteral("%1 … %2").arg(plain_number(setting.minimum), plain_number(setting.maximum));
    // A default at the upper end means no limit (the window of full attention).
    return setting.default_value == setting.maximum ? text + SettingEditor::tr(" = all") : text;
  }
  return low ? SettingEditor::tr("from %1").arg(plain_number(setting.minimum)) : QString();
}

/// A choice as a person calls it: architectures have titles.
QString choice_title(const Setting& setting, const std::string& choice) {
  if (setting.name == "block" || setting.name == "mixer")
    for (const Architecture* entry : architectures())
      if (entry->id == choice) return QString::fromStdString(entry->title);
  return QString::fromStdString(choice);
}

QString help_text(const Setting& setting) {
  QString text = QString::fromStdString(setting.help);
  if (!setting.source.empty()) text += QStringLiteral("\n") + SettingEditor::tr("Paper: %1").arg(QString::fromStdString(setting.source));
  return text + QStringLiteral("\n") + SettingEditor::tr("In the config: %1").arg(QString::fromStdString(setting.name));
}

QFont small_font(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.9);
  return font;
}

}  // namespace

QString settingTitle(const std::string& name) {
  QString title = QString::fromStdString(name).replace(QLatin1Char('_'), QLatin1Char(' '));
  if (title == QStringLiteral("qk norm")) return SettingEditor::tr("QK norm");
  if (title == QStringLiteral("mlp width")) return SettingEditor::tr("MLP width");
  if (title == QStringLiteral("min lr ratio")) return SettingEditor::tr("Min LR ratio");
  if (title == QStringLiteral("ood")) return SettingEditor::tr("Out of distribution");
  if (title == QStringLiteral("train")) return SettingEditor::tr("Train on");
  for (const char* letters : {"mlp", "qk"})
    if (title.startsWith(QLatin1String(letters)))
      return title.replace(0, static_cast<int>(strlen(letters)), QString::fromLatin1(letters).toUpper());
  title[0] = title[0].toUpper();
  return title;
}

SettingEditor::SettingEditor(const FormField& field, QWidget* parent)
    : QWidget(parent), field_(field), hint_(new QLabel(this)), reset_(new QToolButton(this)), problem_(new ProblemLabel(this)) {
  const QString title = settingTitle(field.setting.name), help = help_text(field.setting);
  auto* name = new QLabel(title, this);
  name->setFont(small_font(font()));
  name->setForegroundRole(QPalette::PlaceholderText);
  hint_->setFont(small_font(font()));
  hint_->setForegroundRole(QPalette::PlaceholderText);
  hint_->setText(range_text(field.setting));
  reset_->setIcon(themedIcon(QStringLiteral("reset")));
  reset_->setIconSize({13, 13});
  reset_->setAutoRaise(true);
  reset_->setAccessibleName(tr("Reset %1").arg(title));
  QSizePolicy keeps_place = reset_->sizePolicy();
  keeps_place.setRetainSizeWhenHidden(true);
  reset_->setSizePolicy(keeps_place);
  problem_->setFont(small_font(font()));
  QWidget* editor = makeEditor();
  setToolTip(wrapped_tip(help));
  name->setBuddy(editor);
  for (QWidget* focusable : {static_cast<QWidget*>(check_), static_cast<QWidget*>(combo_), static_cast<QWidget*>(line_)}) {
    if (!focusable) continue;
    focusable->setAccessibleName(title);
    focusable->setAccessibleDescription(help);
  }

  auto* head = new QHBoxLayout;
  head->setSpacing(4);
  head->addWidget(name);
  head->addWidget(reset_);
  head->addStretch();
  head->addWidget(hint_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 4);
  column->setSpacing(1);
  column->addLayout(head);
  column->addWidget(editor);
  column->addWidget(problem_);
  connect(reset_, &QToolButton::clicked, this, &SettingEditor::resetWanted);
}

QWidget* SettingEditor::makeEditor() {
  if (field_.setting.kind == Kind::boolean) {
    check_ = new QCheckBox(tr("on"), this);
    connect(check_, &QCheckBox::clicked, this, [this](bool on) { Q_EMIT edited(on); });
    return check_;
  }
  if (field_.setting.kind == Kind::choice) {
    combo_ = new QComboBox(this);
    for (const std::string& choice : field_.setting.choices)
      combo_->addItem(choice_title(field_.setting, choice), QString::fromStdString(choice));
    combo_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    combo_->setMinimumContentsLength(6);
    calm_wheel(combo_);
    connect(combo_, &QComboBox::activated, this, [this] { Q_EMIT edited(combo_->currentData().toString().toStdString()); });
    return combo_;
  }
  auto* row = new QWidget(this);
  line_ = new QLineEdit(row);
  line_->setMinimumWidth(60);
  pick_ = new QToolButton(row);
  pick_->setText(QStringLiteral("▾"));
  pick_->setAccessibleName(tr("Choices for %1").arg(settingTitle(field_.setting.name)));
  choices_ = new QMenu(pick_);  // not the button's own, which would draw a second arrow
  connect(pick_, &QToolButton::clicked, this, [this] { choices_->popup(pick_->mapToGlobal(QPoint(0, pick_->height()))); });
  pick_->hide();
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(line_, 1);
  layout->addWidget(pick_);
  connect(line_, &QLineEdit::textEdited, this, [this](const QString& text) { Q_EMIT edited(textValue(text)); });
  return row;
}

/// What was typed, as JSON: a number where it is one, so that anything else is refused with the setting's own message.
Json SettingEditor::textValue(const QString& typed) const {
  const std::string text = typed.trimmed().toStdString();
  if (field_.setting.kind == Kind::text) return text;
  if (field_.setting.kind == Kind::text_list) {
    Json list = Json::array();
    for (const QString& part : typed.split(QLatin1Char(','), Qt::SkipEmptyParts)) list.push_back(part.trimmed().toStdString());
    return list;
  }
  if (field_.setting.kind == Kind::number_list) {
    Json list = Json::array();
    for (const QString& part : typed.split(QLatin1Char(','), Qt::SkipEmptyParts)) {
      const Json number = Json::parse(part.trimmed().toStdString(), nullptr, false);
      list.push_back(number.is_number() ? number : Json(part.trimmed().toStdString()));
    }
    return list;
  }
  const Json number = Json::parse(text, nullptr, false);
  if (!number.is_number()) return text;
  const double value = number.get<double>();
  return field_.setting.kind == Kind::integer && value == std::floor(value) && std::abs(value) < 9e15 ? Json(static_cast<int64_t>(value))
                                                                                                      : number;
}

QString SettingEditor::textOf(const Json& value) const {
  if (value.is_string()) return QString::fromStdString(value.get<std::string>());
  if (value.is_number_float() && std::abs(value.get<double>()) < 1e8 && value.get<double>() == std::floor(value.get<double>()))
    return QString::number(value.get<double>(), 'f', 0);
  if (!value.is_array()) return QString::fromStdString(value.dump());
  QStringList parts;
  for (const Json& part : value)
    parts << (part.is_string() ? QString::fromStdString(part.get<std::string>()) : QString::fromStdString(part.dump()));
  return parts.join(QStringLiteral(", "));
}

void SettingEditor::setValue(const Json& value, bool changed, const Json& preset) {
  if (check_) check_->setChecked(value.is_boolean() && value.get<bool>());
  if (combo_) combo_->setCurrentIndex(value.is_string() ? combo_->findData(QString::fromStdString(value.get<std::string>())) : -1);
  if (line_ && textValue(line_->text()) != value) line_->setText(textOf(value));
  reset_->setVisible(changed);
  reset_->setToolTip(tr("Back to %1").arg(textOf(preset)));
  if (QWidget* editor = check_ ? static_cast<QWidget*>(check_) : combo_ ? static_cast<QWidget*>(combo_) : line_) {
    QFont words = font();
    words.setBold(changed);
    editor->setFont(words);
  }
}

void SettingEditor::setProblem(const QString& problem) { problem_->say(problem); }

void SettingEditor::setProposals(const QStringList& proposals) {
  if (!pick_) return;
  pick_->setVisible(!proposals.isEmpty());
  choices_->clear();
  const bool several = field_.setting.kind == Kind::text_list;
  for (const QString& proposal : proposals) {
    QAction* action = choices_->addAction(proposal);
    action->setCheckable(several);
    connect(action, &QAction::triggered, this, [this, proposal, several](bool on) {
      QStringList parts;
      if (several)
        for (const QString& part : line_->text().split(QLatin1Char(','), Qt::SkipEmptyParts)) parts << part.trimmed();
      parts.removeAll(proposal);
      if (on || !several) parts << proposal;
      line_->setText(parts.join(QStringLiteral(", ")));
      Q_EMIT edited(textValue(line_->text()));
    });
  }
  if (!several) return;
  connect(choices_, &QMenu::aboutToShow, pick_, [this] {
    QStringList parts;
    for (const QString& part : line_->text().split(QLatin1Char(','), Qt::SkipEmptyParts)) parts << part.trimmed();
    for (QAction* action : choices_->actions()) action->setChecked(parts.contains(action->text()));
  });
}

bool SettingEditor::matches(const QString& words) const {
  QString text = settingTitle(field_.setting.name) + QLatin1Char(' ') + QString::fromStdString(field_.setting.name) + QLatin1Char(' ') +
                 QString::fromStdString(field_.setting.help) + QLatin1Char(' ') + QString::fromStdString(field_.setting.source);
  for (const std::string& choice : field_.setting.choices) text += QLatin1Char(' ') + choice_title(field_.setting, choice);
  for (const QString& word : words.split(QLatin1Char(' '), Qt::SkipEmptyParts))
    if (!text.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

}  // namespace saccade::ui
