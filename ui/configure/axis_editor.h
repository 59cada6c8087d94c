#pragma once
#include <QWidget>

#include "models/json.h"
#include "ui/configure/config_draft.h"

class QComboBox;
class QLineEdit;
class QSpinBox;
class QToolButton;

namespace saccade::ui {

class ProblemLabel;

/// One dimension of a grid: a setting, and its values as a list or a range.
class AxisEditor : public QWidget {
  Q_OBJECT
 public:
  /// `name`: what assistive technology calls it, "Axis 1".
  AxisEditor(const QString& name, bool removable, QWidget* parent = nullptr);

  void setFields(const std::vector<FormField>& fields);
  void setAxis(const nlohmann::json& axis);
  nlohmann::json axis() const;
  /// What the axis comes to, in words, or what is wrong with it.
  void setNote(const QString& note, bool wrong);
  QWidgetList stops() const;

 Q_SIGNALS:
  void edited();
  void settingChosen(const QString& setting);  ///< another one than before
  void removeWanted();

 private:
  QWidget* makeValues(const QString& name);
  void showKind();

  QComboBox *setting_, *kind_;
  QLineEdit *values_, *from_, *to_;
  QSpinBox* count_;
  QWidget* range_;
  QToolButton* remove_;
  ProblemLabel* note_;
  QString chosen_;
  bool showing_ = false;
};

}  // namespace saccade::ui
