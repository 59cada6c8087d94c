#pragma once
#include <QWidget>

#include "models/corpus/corpus.h"
#include "ui/configure/config_draft.h"

class QComboBox;
class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace saccade::ui {

class FirstBatch;
class JsonView;
class PlanView;
class Session;
class SettingsForm;

/// A new run: its settings as a form or as JSON, what it will take beside them, and Start.
class ConfigurePage : public QWidget {
  Q_OBJECT
 public:
  explicit ConfigurePage(Session& session, QWidget* parent = nullptr);

  const ConfigDraft& draft() const { return draft_; }
  SettingsForm* form() const { return form_; }

 private:
  QWidget* makeHeader();
  QWidget* makePlanSide();
  void fillPresets();
  void choosePreset(int index);
  void savePreset();
  void showJson(bool json);
  void follow();
  void restore();
  void proposeDomains();
  void start();
  void orderTabs();

  Session& session_;
  ConfigDraft draft_;
  std::optional<RunConfig> config_;
  std::vector<CorpusSummary> corpora_;
  QComboBox* presets_;
  QLabel* changes_;
  QToolButton* as_form_;
  QToolButton* as_json_;
  QStackedWidget* editors_;
  SettingsForm* form_;
  JsonView* json_;
  FirstBatch* batch_;
  PlanView* plan_;
  QPushButton *save_ = nullptr, *start_;
};

}  // namespace saccade::ui
