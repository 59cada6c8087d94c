#pragma once
#include <QWidget>

#include "models/corpus/corpus.h"
#include "ui/configure/config_draft.h"

class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace saccade::ui {

class Card;
class FirstBatch;
class ForkBar;
class FormAboveBatch;
class JsonView;
class LayersView;
class PlanView;
class PresetPicker;
class ProblemLabel;
class Session;
class SettingsForm;
class SizeSolver;
class SweepView;
class WhereChoice;

/// A new run: its settings as a form or as JSON, what it will take beside them, and Start.
class ConfigurePage : public QWidget {
  Q_OBJECT
 public:
  explicit ConfigurePage(Session& session, QWidget* parent = nullptr);

  const ConfigDraft& draft() const { return draft_; }
  SettingsForm* form() const { return form_; }
  LayersView* layers() const { return layers_; }
  SweepView* sweep() const { return sweep_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void connectEditors();
  void connectSession();
  QWidget* makeHeader();
  QWidget* makePlanSide();
  void fillPresets();
  void choosePreset(const QString& path);  ///< or PresetPicker::selected_run
  void savePreset();
  void writePreset(const QString& path);
  void showView(const QString& view);
  void shareHeight();
  void follow();
  void restore();
  void proposeData();
  void proposeOod(const QStringList& domains);
  void fork(const QString& run, qint64 step);
  void endFork();
  void start();
  void endStart(const QString& run, const QString& problem);
  void orderTabs();

  Session& session_;
  ConfigDraft draft_;
  std::optional<RunConfig> config_;
  std::vector<CorpusSummary> corpora_;
  ForkBar* fork_;
  PresetPicker* presets_;
  QLabel* changes_;
  Card* card_ = nullptr;
  QList<QToolButton*> views_;  ///< their object names say which
  QStackedWidget* editors_;
  FormAboveBatch* halves_ = nullptr;
  SettingsForm* form_;
  LayersView* layers_;
  SweepView* sweep_;
  JsonView* json_;
  FirstBatch* batch_;
  PlanView* plan_;
  QPushButton* ood_;                       ///< evaluates on domains out of distribution where a config has none
  std::vector<std::string> ood_proposed_;  ///< those
  SizeSolver* solver_;
  QPushButton *save_ = nullptr, *start_;
  WhereChoice* where_ = nullptr;
  ProblemLabel* outcome_;  ///< what became of the last start
  QString starting_;       ///< directory of a run that was started and does not stand on the disk yet
};

}  // namespace saccade::ui
