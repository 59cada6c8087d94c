#pragma once
#include <QWidget>

#include "models/json.h"
#include "ui/configure/config_draft.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QMenu;
class QToolButton;

namespace saccade::ui {

class ProblemLabel;

/// One field of the form: name, range, editor, a way back when changed, and what is wrong with it.
class SettingEditor : public QWidget {
  Q_OBJECT
 public:
  explicit SettingEditor(const FormField& field, QWidget* parent = nullptr);

  const FormField& field() const { return field_; }
  void setValue(const nlohmann::json& value, bool changed, const nlohmann::json& preset);
  void setProblem(const QString& problem);  ///< empty: none
  /// Proposals for text and lists, beside free input.
  void setProposals(const QStringList& proposals);
  bool matches(const QString& words) const;  ///< in name, help, source or choices

 Q_SIGNALS:
  void edited(const nlohmann::json& value);
  void resetWanted();

 private:
  QWidget* makeEditor();
  nlohmann::json textValue(const QString& text) const;
  QString textOf(const nlohmann::json& value) const;

  FormField field_;
  QLabel* hint_;
  QToolButton* reset_;
  QToolButton* pick_ = nullptr;
  QMenu* choices_ = nullptr;
  ProblemLabel* problem_;
  QCheckBox* check_ = nullptr;
  QComboBox* combo_ = nullptr;
  QLineEdit* line_ = nullptr;
};

/// "sequence_length" → "Sequence length"
QString settingTitle(const std::string& name);

}  // namespace saccade::ui
