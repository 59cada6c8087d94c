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

class Card;
class FirstBatch;
class JsonView;
class LayersView;
class PlanView;
class Session;
class SettingsForm;
class SweepView;

/// A new run: its settings as a form or as JSON, what it will take beside them, and Start.
class ConfigurePage : public QWidget {
  Q_OBJECT
 public:
  explicit ConfigurePage(Session& session, QWidget* parent = nullptr);

  const ConfigDraft& draft() const { return draft_; }
  SettingsForm* form() const { return form_; }
  LayersView* layers() const { return layers_; }
  SweepView* sweep() const { return sweep_; }

 private:
  QWidget* makeHeader();
  QWidget* makePlanSide();
  void fillPresets();
  void choosePreset(int index);
  void savePreset();
  void showView(const QString& view);
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
  Card* card_ = nullptr;
  QList<QToolButton*> views_;  ///< their object names say which
  QStackedWidget* editors_;
  SettingsForm* form_;
  LayersView* layers_;
  SweepView* sweep_;
  JsonView* json_;
  FirstBatch* batch_;
  PlanView* plan_;
  QPushButton *save_ = nullptr, *start_;
};

}  // namespace saccade::ui
