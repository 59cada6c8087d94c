#include "ui/configure/configure_page.h"

#include <QButtonGroup>
#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "models/config_text.h"
#include "models/tasks/symbol_task.h"
#include "ui/charts/figure_view.h"
#include "ui/configure/first_batch.h"
#include "ui/configure/fork_bar.h"
#include "ui/configure/form_above_batch.h"
#include "ui/configure/json_view.h"
#include "ui/configure/layers_view.h"
#include "ui/configure/plan_view.h"
#include "ui/configure/preset_picker.h"
#include "ui/configure/presets.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/settings_form.h"
#include "ui/configure/size_solver.h"
#include "ui/configure/sweep_view.h"
#include "ui/files/write_file.h"
#include "ui/page.h"
#include "ui/plain_scroll.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/where_choice.h"

namespace saccade::ui {
namespace {

const RegisterPage entry{{QStringLiteral("configure"), ConfigurePage::tr("Configure"), QStringLiteral("configure"), 20,
                          [](Session& session, QWidget* parent) -> QWidget* { return new ConfigurePage(session, parent); }, false}};

QToolButton* view_button(const QString& id, const QString& text, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setObjectName(id);
  button->setText(text);
  button->setAccessibleName(name);
  button->setToolTip(name);
  button->setCheckable(true);
  return button;
}

/// Of sequences, as far as the config says so.
int64_t length_of(const nlohmann::json& config) {
  const nlohmann::json data = config.value("data", nlohmann::json::object());
  const auto given = data.is_object() ? whole_number<int64_t>(data.value("sequence_length", nlohmann::json())) : std::nullopt;
  return given.value_or(DataConfig{}.sequence_length);
}

}  // namespace

ConfigurePage::ConfigurePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      fork_(new ForkBar(this)),
      presets_(new PresetPicker(this)),
      changes_(new QLabel(this)),
      views_{view_button(QStringLiteral("form"), tr("Form"), tr("Show the config as a form"), this),
             view_button(QStringLiteral("layers"), tr("Layers"), tr("Show the stack of layers as blocks"), this),
             view_button(QStringLiteral("study"), tr("Study"), tr("Many runs: axes, seeds and tuning over this config"), this),
             view_button(QStringLiteral("json"), tr("JSON"), tr("Show the config as JSON"), this)},
      editors_(new QStackedWidget(this)),
      form_(new SettingsForm(this)),
      layers_(new LayersView(this)),
      sweep_(new SweepView(session, this)),
      json_(new JsonView(this)),
      batch_(new FirstBatch(this)),
      plan_(new PlanView(this)),
      ood_(new QPushButton(this)),
      solver_(new SizeSolver(this)),
      start_(new QPushButton(tr("Start run"), this)),
      outcome_(new ProblemLabel(this)) {
  for (QWidget* editor : QWidgetList{form_, layers_, sweep_, json_}) editors_->addWidget(editor);
  halves_ = new FormAboveBatch(editors_, batch_, this);
  form_->installEventFilter(this);  // its height follows from its width
  auto* left = new QWidget(this);
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(fork_);
  column->addWidget(makeHeader());
  column->addWidget(halves_, 1);

  auto* sides = new QSplitter(Qt::Horizontal, this);
  card_ = new Card(tr("New run"), {}, left, sides);
  for (QToolButton* view : views_) card_->addControl(view);
  sides->addWidget(card_);
  sides->addWidget(new Card(tr("Plan"), tr("nothing is allocated yet"), makePlanSide(), sides));
  sides->setStretchFactor(0, 5);
  sides->setStretchFactor(1, 2);
  sides->setSizes({620, 320});
  sides->setChildrenCollapsible(false);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 8, 8, 8);
  row->addWidget(sides);

  connectEditors();
  connectSession();
  QStringList tasks;
  for (const SymbolTask* task : symbol_tasks()) tasks << QString::fromStdString(task->id);
  form_->setProposals("/data/task", tasks);
  form_->setProposals("/device", {QStringLiteral("auto"), QStringLiteral("cpu"), QStringLiteral("cuda")});
  addActions(layers_->actions());  // so that the palette finds them
  fillPresets();
  const QVariant block = session_.place().value("configure/block");
  showView(session_.place().value("configure/view").toString());
  form_->showAll(session_.place().value("configure/all").toBool());
  restore();
  follow();
  layers_->setCurrent(block.toInt());
  orderTabs();
}

void ConfigurePage::connectEditors() {
  connect(form_, &SettingsForm::edited, this, [this](const FormField& field, const nlohmann::json& value) {
    draft_.set(field, value);
    follow();
  });
  connect(form_, &SettingsForm::resetWanted, this, [this](const FormField& field) {
    draft_.reset(field);
    follow();
  });
  connect(layers_, &LayersView::edited, this, [this](const nlohmann::json& architecture) {
    nlohmann::json config = draft_.json();
    config["architecture"] = architecture;
    draft_.replace(config);
    follow();
  });
  connect(layers_, &LayersView::currentChanged, this, [this](int block) { session_.place().set("configure/block", block); });
  connect(json_, &JsonView::edited, this, [this](const nlohmann::json& config) {
    draft_.replace(config);
    follow();
  });
  connect(json_, &JsonView::malformed, this, [this](const QString& why) {
    config_.reset();
    json_->setProblem(why);
    plan_->setNoConfig(why);
    proposeData();
    start_->setEnabled(false);
  });
  connect(batch_, &FirstBatch::corporaKnown, this, [this](const std::vector<CorpusSummary>& corpora) {
    QStringList names;
    for (const CorpusSummary& corpus : corpora) names << QString::fromStdString(corpus.name);
    form_->setProposals("/data/corpus", names);
    corpora_ = corpora;
    proposeData();
  });
  connect(ood_, &QPushButton::clicked, this, [this] {
    nlohmann::json config = draft_.json();
    config["data"]["ood"] = ood_proposed_;
    draft_.replace(config);
    follow();
  });
  connect(form_, &SettingsForm::allShown, this, [this](bool all) {
    session_.place().set("configure/all", all);
    shareHeight();
  });
  connect(form_, &SettingsForm::rebuilt, this, &ConfigurePage::orderTabs);
  connect(sweep_, &SweepView::stopsChanged, this, &ConfigurePage::orderTabs);
}

/// What is asked for elsewhere, and beside the editors.
void ConfigurePage::connectSession() {
  connect(&session_, &Session::duplicateRequested, this, [this] { choosePreset(PresetPicker::selected_run); });
  connect(&session_, &Session::forkRequested, this, [this](const QString& run) { fork(run, 0); });
  connect(solver_, &SizeSolver::selectedRunWanted, this, [this] {
    const Run* run = session_.runs()->run(session_.currentRun());
    run ? solver_->setGoal(run->info().parameters) : Q_EMIT session_.failed(tr("No run is selected in the list."));
  });
  connect(solver_, &SizeSolver::solved, this, [this](const QStringList& assignments) {
    nlohmann::json config = draft_.json();
    for (const QString& each : assignments) apply_override(config, each.toStdString());
    draft_.replace(config);
    follow();
  });
  connect(fork_, &ForkBar::closed, this, &ConfigurePage::endFork);
  connect(fork_, &ForkBar::stepChanged, this, &ConfigurePage::follow);
  connect(&session_, &Session::runBegan, this, [this](const QString& run) { endStart(run, {}); });
  connect(&session_, &Session::startFailed, this, &ConfigurePage::endStart);
  connect(&session_, &Session::presetRequested, this, &ConfigurePage::choosePreset);
  connect(&session_, &Session::settingRequested, this, [this](const QString& pointer) {
    showView(QStringLiteral("form"));
    form_->reveal(pointer.toStdString());
  });
}

/// As one reads: view, preset, settings, first batch, plan, and Start last.
void ConfigurePage::orderTabs() {
  QWidgetList order;
  for (QToolButton* view : views_) order << view;
  order << fork_->stops() << presets_;
  order << form_->stops();
  const auto all_of = [&](QWidget* part) {
    for (QWidget* stop : part->findChildren<QWidget*>())
      if (stop->focusPolicy() & Qt::TabFocus && !stop->focusProxy() && stop->window() == window()) order << stop;
  };
  all_of(layers_);
  order << sweep_->stops();
  for (QWidget* part : QWidgetList{json_, batch_, plan_}) all_of(part);
  order << ood_ << solver_->stops();
  order << save_ << where_ << start_;
  for (qsizetype i = 1; i < order.size(); ++i) setTabOrder(order[i - 1], order[i]);
}

QWidget* ConfigurePage::makeHeader() {
  auto* header = new QWidget(this);
  auto* label = new QLabel(tr("Preset"), header);
  presets_->written = [this] { return draft_.json(); };
  changes_->setForegroundRole(QPalette::PlaceholderText);
  auto* modes = new QButtonGroup(this);
  for (QToolButton* view : views_) modes->addButton(view);
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(label);
  row->addWidget(presets_);
  row->addWidget(changes_, 1);
  connect(presets_, &PresetPicker::chosen, this, &ConfigurePage::choosePreset);
  for (QToolButton* view : views_) connect(view, &QToolButton::clicked, this, [this, view] { showView(view->objectName()); });
  return header;
}

QWidget* ConfigurePage::makePlanSide() {
  auto* side = new QWidget(this);
  auto* save = save_ = new QPushButton(tr("Save as preset …"), side);
  save->setAccessibleName(tr("Save as preset"));
  start_->setToolTip(tr("Starts the run (Ctrl+Return). It goes on when this window is closed."));
  start_->setAccessibleName(tr("Start run"));
  start_->setDefault(true);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch();
  buttons->addWidget(save);
  where_ = new WhereChoice(side);
  buttons->addWidget(where_);
  buttons->addWidget(start_);
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  auto* told = new QWidget(side);
  auto* inside = new QVBoxLayout(told);
  inside->setContentsMargins(0, 0, 6, 0);
  inside->addWidget(plan_);
  inside->addWidget(ood_, 0, Qt::AlignRight);
  inside->addWidget(solver_);
  inside->addStretch();
  auto* scroll = new PlainScroll(told, side);
  column->addWidget(scroll, 1);
  column->addLayout(buttons);
  column->addWidget(outcome_);
  connect(save, &QPushButton::clicked, this, &ConfigurePage::savePreset);
  connect(start_, &QPushButton::clicked, this, &ConfigurePage::start);
  for (const int key : {Qt::Key_Return, Qt::Key_Enter})
    connect(new QShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(key)), this), &QShortcut::activated, start_, &QPushButton::click);
  return side;
}

void ConfigurePage::fillPresets() {
  try {
    presets_->setPresets(presets());
  } catch (const Error& error) {  // the defaults are there all the same
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
  }
}

void ConfigurePage::choosePreset(const QString& path) {
  const bool as_run = path == PresetPicker::selected_run;
  const Run* run = session_.runs()->run(session_.currentRun());
  if (as_run && !run) return Q_EMIT session_.failed(tr("No run is selected in the list."));
  QString note;
  try {
    draft_.start(path.isEmpty() ? nlohmann::json::object() : as_run ? run->info().config : read_preset(path, &note));
  } catch (const Error& error) {
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
    return;
  }
  if (!note.isEmpty()) Q_EMIT session_.noted(note);
  presets_->setCurrent(path);
  endFork();
}

void ConfigurePage::savePreset() {
  QDir().mkpath(own_presets_folder());
  const QString name = config_ ? QString::fromStdString(config_->name) : QStringLiteral("preset");
  auto* dialog = new QFileDialog(this, tr("Save as preset"), own_presets_folder(), tr("Configs (*.json)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("json"));
  dialog->selectFile(name + QStringLiteral(".json"));
  connect(dialog, &QFileDialog::fileSelected, this, &ConfigurePage::writePreset);
  dialog->show();
}

void ConfigurePage::writePreset(const QString& path) {
  const QByteArray text = QByteArray::fromStdString(draft_.json().dump(2) + "\n");
  if (QString reason; !writeFile(path, text, &reason)) return Q_EMIT session_.failed(reason);
  fillPresets();
  presets_->setCurrent(path);
  draft_.start(draft_.json());
  follow();
}

/// "form", "layers" …; the form where there is no such view.
void ConfigurePage::showView(const QString& view) {
  int shown = 0;
  for (int at = 0; at < views_.size(); ++at)
    if (views_[at]->objectName() == view) shown = at;
  views_[shown]->setChecked(true);
  editors_->setCurrentIndex(shown);
  batch_->setVisible(editors_->currentWidget() == form_ || editors_->currentWidget() == json_);  // the others need the room
  for (int at = 0; at < editors_->count(); ++at) {                                               // what is not seen asks for no room
    const QSizePolicy::Policy policy = at == shown ? QSizePolicy::Preferred : QSizePolicy::Ignored;
    editors_->widget(at)->setSizePolicy(policy, policy);
  }
  shareHeight();
  session_.place().set("configure/view", views_[shown]->objectName());
}

/// Between the editor and the first batch.
void ConfigurePage::shareHeight() { halves_->setWanted(editors_->currentWidget() == form_ ? form_->wholeHeight() : 0); }

bool ConfigurePage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == form_ && (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest))
    QMetaObject::invokeMethod(this, &ConfigurePage::shareHeight, Qt::QueuedConnection);
  return QWidget::eventFilter(watched, event);
}

/// The configuration that was being written.
void ConfigurePage::restore() {
  const auto json = [&](const char* key) {
    const std::string text = session_.place().value(key).toString().toStdString();
    return nlohmann::json::parse(text.empty() ? "null" : text, nullptr, false);
  };
  const nlohmann::json preset = json("configure/preset"), draft = json("configure/draft");
  if (!preset.is_object() || !draft.is_object()) return;
  draft_.start(preset);
  draft_.replace(draft);
  presets_->setCurrent(session_.place().value("configure/preset_path").toString());
  const QString parent = session_.place().value("configure/fork").toString();
  if (!parent.isEmpty() && fork_->setRun(parent, QFileInfo(parent).fileName(), session_.place().value("configure/fork_step").toLongLong()))
    draft_.keepModel(true);
}

/// Everything that follows from the draft.
void ConfigurePage::follow() {
  session_.place().set("configure/preset_path", presets_->current());
  session_.place().set("configure/preset", QString::fromStdString(draft_.preset().dump()));
  session_.place().set("configure/draft", QString::fromStdString(draft_.json().dump()));
  ConfigProblem problem;
  const bool forked = !fork_->run().isEmpty();
  session_.place().set("configure/fork", fork_->run());
  session_.place().set("configure/fork_step", forked ? fork_->step() : 0);
  config_ = forked ? resolve_fork(fork_->run(), fork_->step(), draft_, &problem) : resolve(draft_, &problem);
  card_->setTitle(forked ? tr("New fork") : tr("New run"), {});
  for (QToolButton* view : views_)
    if (view->objectName() == QStringLiteral("layers") || view->objectName() == QStringLiteral("study")) view->setVisible(!forked);
  form_->setDraft(draft_);
  form_->setProblem(problem);
  layers_->setArchitecture(draft_.json().value("architecture", nlohmann::json::object()), length_of(draft_.json()));
  layers_->setProblem(problem.message.rfind("/architecture", 0) == 0 ? QString::fromStdString(problem.message) : QString());
  sweep_->setDraft(draft_);
  solver_->setConfig(draft_.json());
  solver_->setVisible(!forked);
  json_->setConfig(draft_.json());
  json_->setProblem(QString::fromStdString(problem.message));
  const int changes = draft_.changes();
  changes_->setText(changes == 0 ? QString() : changes == 1 ? tr("1 change") : tr("%1 changes").arg(changes));
  where_->setEnabled(!forked);  // a fork goes where its parent is
  start_->setText(forked ? tr("Start fork") : tr("Start run"));
  start_->setEnabled(config_.has_value() && starting_.isEmpty());
  if (starting_.isEmpty()) outcome_->say({});
  proposeData();
  if (!config_) return plan_->setNoConfig(QString::fromStdString(problem.message));
  plan_->setConfig(*config_, forked ? fork_->step() : 0);
  batch_->setConfig(*config_);
}

/// Domains of the task that is written, else those of the corpus and tokenizers for it.
void ConfigurePage::proposeData() {
  QStringList domains, tokenizers;
  if (draft_.task_name().empty()) {
    tokenizers << QStringLiteral("bytes") << QStringLiteral("bpe:4096") << QStringLiteral("unigram:4096");
    for (const CorpusSummary& corpus : corpora_)
      if (corpus.name == draft_.corpus())
        for (const DomainInfo& domain : corpus.domains) domains << QString::fromStdString(domain.name);
  }
  if (const SymbolTask* task = draft_.task())
    for (const auto& names : {task->train, task->test})
      for (const std::string& name : names) domains << QString::fromStdString(name);
  form_->setProposals("/data/train", domains);
  form_->setProposals("/data/ood", domains);
  form_->setProposals("/data/tokenizer", tokenizers);
  proposeOod(domains);
}

/// A run of which no domain is out of distribution says nothing of what this program is for: others of its corpus are a click away.
void ConfigurePage::proposeOod(const QStringList& domains) {
  ood_proposed_.clear();
  const bool none = config_ && config_->data.ood.empty() && config_->data.task.empty() && fork_->run().isEmpty();
  for (const QString& domain : domains)
    if (const std::string name = domain.toStdString();
        none && std::find(config_->data.train.begin(), config_->data.train.end(), name) == config_->data.train.end())
      ood_proposed_.push_back(name);
  ood_->setVisible(!ood_proposed_.empty());
  ood_->setText(ood_proposed_.size() == 1 ? tr("Evaluate on %1, too").arg(QString::fromStdString(ood_proposed_.front()))
                                          : tr("Evaluate on %1 other domains, too").arg(ood_proposed_.size()));
  ood_->setAccessibleName(ood_->text());
  QStringList names;
  for (const std::string& name : ood_proposed_) names << QString::fromStdString(name);
  ood_->setToolTip(tr("Measures the loss out of distribution on %1").arg(names.join(QStringLiteral(", "))));
}

}  // namespace saccade::ui
