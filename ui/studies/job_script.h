#pragma once
#include <QDialog>

class QPlainTextEdit;

namespace saccade::ui {

/// The script of a study's jobs before they are submitted to a cluster, to be read and edited.
class JobScript : public QDialog {
  Q_OBJECT
 public:
  /// `kept`: the script of the study's folder that somebody edited before.
  JobScript(const QString& study, const QString& cluster, const QString& script, bool kept, QWidget* parent = nullptr);
  QString script() const;
  bool edited() const;

 private:
  QPlainTextEdit* text_;
  QString given_;
};

}  // namespace saccade::ui
