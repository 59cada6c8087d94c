#pragma once
#include <QStringList>
#include <QWidget>
#include <map>
#include <vector>

#include "ui/configure/config_draft.h"

class QLabel;
class QLineEdit;
class QScrollArea;
class QToolButton;
class QVBoxLayout;

namespace saccade::ui {

class SettingEditor;
class SettingGroup;

/// The form: every setting of the chosen architecture, grouped, searchable; made from the registry.
class SettingsForm : public QWidget {
  Q_OBJECT
 public:
  explicit SettingsForm(QWidget* parent = nullptr);

  /// Shows the draft; makes new editors only when the fields are others than before.
  void setDraft(const ConfigDraft& draft);
  void setProblem(const ConfigProblem& problem);
  void setProposals(const std::string& pointer, const QStringList& proposals);
  SettingEditor* editor(const std::string& pointer) const;
  QWidgetList stops() const;
  bool reveal(const std::string& pointer);
  /// The eight settings that a first run needs are always there; the rest when wanted, or searched for.
  void showAll(bool all);
  /// Pixels that show everything without scrolling, at the present width.
  int wholeHeight() const;

 Q_SIGNALS:
  void rebuilt();  ///< the editors are others
  void allShown(bool all);
  void edited(const saccade::ui::FormField& field, const nlohmann::json& value);
  void resetWanted(const saccade::ui::FormField& field);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build(const std::vector<FormField>& fields);
  void search(const QString& words);

  void arrange();

  QLineEdit* search_;
  QToolButton* all_;
  QLabel* nothing_;
  QScrollArea* scroll_;
  QWidget* content_;
  QVBoxLayout* column_;
  std::vector<SettingGroup*> groups_;
  std::vector<SettingEditor*> editors_;
  std::map<std::string, QStringList> proposals_;
  int changed_ = 0;  ///< of the settings that do not stand first
};

}  // namespace saccade::ui
