#include "ui/studies/job_script.h"

#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/fitting_dialog.h"

namespace saccade::ui {

JobScript::JobScript(const QString& study, const QString& cluster, const QString& script, bool kept, QWidget* parent)
    : QDialog(parent), text_(new QPlainTextEdit(script, this)), given_(script) {
  setWindowTitle(tr("Jobs of %1 on %2").arg(study, cluster));
  auto* note = new QLabel(
      kept ? tr("The script of the study's folder, as it was edited there. It is used as it stands here.")
           : tr("Made from the profile of %1. What is changed here is kept in the study's folder and used from now on.").arg(cluster),
      this);
  note->setWordWrap(true);
  text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text_->setLineWrapMode(QPlainTextEdit::NoWrap);
  text_->setTabChangesFocus(true);
  text_->setAccessibleName(tr("Script of the jobs"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  buttons->addButton(tr("Submit"), QDialogButtonBox::AcceptRole)->setDefault(true);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* column = new QVBoxLayout(this);
  column->addWidget(note);
  column->addWidget(text_, 1);
  column->addWidget(buttons);
  resize_within_window(*this, {820, 620});
}

QString JobScript::script() const { return text_->toPlainText(); }
bool JobScript::edited() const { return script() != given_; }

}  // namespace saccade::ui
