#include "ui/hosts/host_form.h"

#include <QComboBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>

#include "analysis/remote/host_profile.h"
#include "ui/calm_wheel.h"

namespace saccade::ui {
namespace {

/// What people read before a field.
QString title_of(const std::string& setting) {
  static const QHash<QString, QString> titles{{QStringLiteral("ssh"), HostForm::tr("ssh alias")},
                                              {QStringLiteral("program"), HostForm::tr("Program there")},
                                              {QStringLiteral("folder"), HostForm::tr("Folder of runs")},
                                              {QStringLiteral("cluster"), HostForm::tr("Cluster there")},
                                              {QStringLiteral("gpu_command"), HostForm::tr("GPUs are told by")},
                                              {QStringLiteral("files"), HostForm::tr("Captures, results")},
                                              {QStringLiteral("answer_seconds"), HostForm::tr("Answers within")},
                                              {QStringLiteral("poll_seconds"), HostForm::tr("Looks every")}};
  const QString name = QString::fromStdString(setting);
  return titles.value(name, name);
}

}  // namespace

HostForm::HostForm(QWidget* parent) : QWidget(parent), rows_(new QFormLayout(this)), name_(new QLineEdit(this)) {
  rows_->setContentsMargins(0, 0, 0, 0);
  name_->setAccessibleName(tr("Name"));
  name_->setPlaceholderText(tr("what it is called here, for example server"));
  rows_->addRow(tr("Name"), name_);
  connect(name_, &QLineEdit::textEdited, this, &HostForm::edited);
  for (const Setting& setting : host_schema().settings()) {
    QWidget* field = makeField(setting);
    field->setToolTip(QString::fromStdString(setting.help));
    field->setAccessibleName(title_of(setting.name));
    fields_[QString::fromStdString(setting.name)] = field;
    rows_->addRow(title_of(setting.name), field);
  }
}

QWidget* HostForm::makeField(const Setting& setting) {
  if (setting.kind == Setting::Kind::choice) {
    auto* choice = new QComboBox(this);
    for (const std::string& each : setting.choices) choice->addItem(QString::fromStdString(each));
    calm_wheel(choice);
    connect(choice, &QComboBox::activated, this, &HostForm::edited);
    return choice;
  }
  if (setting.kind == Setting::Kind::integer) {
    auto* number = new QSpinBox(this);
    number->setRange(static_cast<int>(setting.minimum), static_cast<int>(setting.maximum));
    number->setSuffix(tr(" s"));
    calm_wheel(number);
    connect(number, &QSpinBox::valueChanged, this, &HostForm::edited);
    return number;
  }
  auto* line = new QLineEdit(this);
  line->setPlaceholderText(QString::fromStdString(setting.help));
  connect(line, &QLineEdit::textEdited, this, &HostForm::edited);
  return line;
}

void HostForm::setHost(const QString& name, const nlohmann::json& profile) {
  name_->setText(name);
  name_->setCursorPosition(0);  // a long one is read from its beginning
  name_->setReadOnly(!name.isEmpty());
  for (const auto& [key, value] : profile.items()) {
    QWidget* field = fields_.value(QString::fromStdString(key));
    const QSignalBlocker quiet(field);
    if (auto* line = qobject_cast<QLineEdit*>(field)) {
      const QString text = QString::fromStdString(value.get<std::string>());
      if (line->text() == text) continue;  // the cursor stays
      line->setText(text);
      if (!line->hasFocus()) line->setCursorPosition(0);  // a long one is read from its beginning
    }
    if (auto* choice = qobject_cast<QComboBox*>(field)) choice->setCurrentText(QString::fromStdString(value.get<std::string>()));
    if (auto* number = qobject_cast<QSpinBox*>(field)) number->setValue(value.get<int>());
  }
}

QString HostForm::name() const { return name_->text().trimmed(); }

nlohmann::json HostForm::profile() const {
  nlohmann::json profile;
  for (auto field = fields_.cbegin(); field != fields_.cend(); ++field) {
    const std::string key = field.key().toStdString();
    if (auto* line = qobject_cast<QLineEdit*>(*field)) profile[key] = line->text().trimmed().toStdString();
    if (auto* choice = qobject_cast<QComboBox*>(*field)) profile[key] = choice->currentText().toStdString();
    if (auto* number = qobject_cast<QSpinBox*>(*field)) profile[key] = number->value();
  }
  return profile;
}

}  // namespace saccade::ui
