#include "ui/studies/new_study.h"

#include <QComboBox>
#include <QCompleter>
#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QToolButton>
#include <QVBoxLayout>

#include "analysis/studies/study.h"
#include "ui/calm_wheel.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/studies/own_studies.h"
#include "ui/studies/study_start.h"

namespace saccade::ui {

NewStudy::NewStudy(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  makeFields();
  const auto follow = [this] {
    session_.place().set("studies/new", studies_->currentText());
    session_.place().set("studies/set", settings_->text());
    static const QRegularExpression spaces(QStringLiteral("\\s+"));
    start_->setStudy(studies_->currentText().trimmed(), settings_->text().split(spaces, Qt::SkipEmptyParts));
  };
  connect(studies_, &QComboBox::currentTextChanged, this, follow);
  connect(settings_, &QLineEdit::textChanged, this, follow);
  connect(start_, &StudyStart::queued, this, &NewStudy::queued);
  follow();
}

void NewStudy::makeFields() {
  studies_ = new QComboBox(this);
  studies_->setAccessibleName(tr("Study to begin"));
  studies_->setEditable(true);
  studies_->setInsertPolicy(QComboBox::NoInsert);
  studies_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  studies_->setMinimumContentsLength(18);
  try {
    for (const std::string& name : shipped_studies()) studies_->addItem(QString::fromStdString(name));
    studies_->addItems(own_studies());
  } catch (const std::exception& error) {  // a file can be chosen all the same
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
  }
  studies_->completer()->setFilterMode(Qt::MatchContains);
  studies_->completer()->setCompletionMode(QCompleter::PopupCompletion);
  const QString last = session_.place().value("studies/new").toString();
  studies_->setCurrentText(last.isEmpty() ? QStringLiteral("tuned-tiny") : last);
  auto* file = new QToolButton(this);
  file->setText(tr("File …"));
  file->setToolTip(tr("Take a study file of your own"));
  file->setAccessibleName(tr("Choose a study file"));
  connect(file, &QToolButton::clicked, this, &NewStudy::chooseFile);
  auto* first = new QHBoxLayout;
  first->addWidget(studies_, 1);
  first->addWidget(file);

  settings_ = new QLineEdit(session_.place().value("studies/set").toString(), this);
  settings_->setAccessibleName(tr("Settings of all runs"));
  settings_->setPlaceholderText(tr("settings of all runs: data.corpus=mine training.steps=200"));
  calm_wheel(studies_);
  setFocusProxy(studies_);
  start_ = new StudyStart(session_, this);  // Tab comes to it last
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(first);
  column->addWidget(settings_);
  column->addWidget(start_);
  column->addStretch();
}

void NewStudy::chooseFile() {
  auto* dialog = new QFileDialog(this, tr("A study file"), session_.runs()->folder(), tr("Studies (*.json)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, studies_, &QComboBox::setCurrentText);
  dialog->show();  // not in front of what goes on
}

}  // namespace saccade::ui
