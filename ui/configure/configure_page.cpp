#include "ui/configure/configure_page.h"

#include <QButtonGroup>
#include <QComboBox>
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

#include "ui/charts/figure_view.h"
#include "ui/configure/first_batch.h"
#include "ui/configure/json_view.h"
#include "ui/configure/plan_view.h"
#include "ui/configure/presets.h"
#include "ui/configure/settings_form.h"
#include "ui/files/write_file.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::ui {
namespace {

const RegisterPage entry{{QStringLiteral("configure"), ConfigurePage::tr("Configure"), QStringLiteral("configure"), 20,
                          [](Session& session, QWidget* parent) -> QWidget* { return new ConfigurePage(session, parent); }, false}};

const QString kSelectedRun = QStringLiteral("selected run");  // in place of a preset's path

QToolButton* mode_button(const QString& text, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setAccessibleName(name);
  button->setToolTip(name);
  button->setCheckable(true);
  return button;
}

}  // namespace

ConfigurePage::ConfigurePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      presets_(new QComboBox(this)),
      changes_(new QLabel(this)),
      as_form_(mode_button(tr("Form"), tr("Show the config as a form"), this)),
      as_json_(mode_button(tr("JSON"), tr("Show the config as JSON"), this)),
      editors_(new QStackedWidget(this)),
      form_(new SettingsForm(this)),
      json_(new JsonView(this)),
      batch_(new FirstBatch(this)),
      plan_(new PlanView(this)),
      start_(new QPushButton(tr("Start run"), this)) {
  editors_->addWidget(form_);
  editors_->addWidget(json_);
  auto* halves = new QSplitter(Qt::Vertical, this);
  halves->addWidget(editors_);
  halves->addWidget(batch_);
  halves->setStretchFactor(0, 4);
  halves->setStretchFactor(1, 1);
  halves->setChildrenCollapsible(false);
  halves->setSizes({600, 170});
  auto* left = new QWidget(this);
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(makeHeader());
  column->addWidget(halves, 1);

  auto* sides = new QSplitter(Qt::Horizontal, this);
  sides->addWidget(new Card(tr("New run"), {}, left, sides));
  sides->addWidget(new Card(tr("Plan"), tr("nothing is allocated yet"), makePlanSide(), sides));
  sides->setStretchFactor(0, 5);
  sides->setStretchFactor(1, 2);
  sides->setChildrenCollapsible(false);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 8, 8, 8);
  row->addWidget(sides);

  connect(form_, &SettingsForm::edited, this, [this](const FormField& field, const nlohmann::json& value) {
    draft_.set(field, value);
    follow();
  });
  connect(form_, &SettingsForm::resetWanted, this, [this](const FormField& field) {
    draft_.reset(field);
    follow();
  });
  connect(json_, &JsonView::edited, this, [this](const nlohmann::json& config) {
    draft_.replace(config);
    follow();
  });
  connect(json_, &JsonView::malformed, this, [this](const QString& why) {
    config_.reset();
    json_->setProblem(why);
    plan_->setNoConfig(why);
    start_->setEnabled(false);
  });
  connect(batch_, &FirstBatch::corporaKnown, this, [this](const std::vector<CorpusSummary>& corpora) {
    QStringList names;
    for (const CorpusSummary& corpus : corpora) names << QString::fromStdString(corpus.name);
    form_->setProposals("/data/corpus", names);
    corpora_ = corpora;
    proposeDomains();
  });
  form_->setProposals("/data/tokenizer", {QStringLiteral("bytes"), QStringLiteral("bpe:4096"), QStringLiteral("unigram:4096")});
  form_->setProposals("/device", {QStringLiteral("auto"), QStringLiteral("cpu"), QStringLiteral("cuda")});
  connect(form_, &SettingsForm::rebuilt, this, &ConfigurePage::orderTabs);
  connect(&session_, &Session::duplicateRequested, this, [this] { choosePreset(presets_->findData(kSelectedRun)); });
  connect(&session_, &Session::settingRequested, this, [this](const QString& pointer) {
    showJson(false);
    form_->reveal(pointer.toStdString());
  });
  fillPresets();
  showJson(false);
  restore();
  follow();
  orderTabs();
}

/// As one reads: preset, settings, first batch, plan, and Start last.
void ConfigurePage::orderTabs() {
  QWidgetList order{presets_, as_form_, as_json_};
  order << form_->stops();
  for (QWidget* part : {static_cast<QWidget*>(json_), static_cast<QWidget*>(batch_), static_cast<QWidget*>(plan_)})
    for (QWidget* stop : part->findChildren<QWidget*>())
      if (stop->focusPolicy() & Qt::TabFocus && !stop->focusProxy() && stop->window() == window()) order << stop;
  order << save_ << start_;
  for (qsizetype i = 1; i < order.size(); ++i) setTabOrder(order[i - 1], order[i]);
}

QWidget* ConfigurePage::makeHeader() {
  auto* header = new QWidget(this);
  auto* label = new QLabel(tr("Preset"), header);
  presets_->setAccessibleName(tr("Preset"));
  presets_->setToolTip(tr("A config to start from; what you change is measured against it."));
  presets_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  presets_->setStyleSheet(QStringLiteral("QComboBox { combobox-popup: 0; }"));  // a list to scroll: Fusion would cover the screen
  presets_->setMaxVisibleItems(20);
  changes_->setForegroundRole(QPalette::PlaceholderText);
  auto* modes = new QButtonGroup(this);
  modes->addButton(as_form_);
  modes->addButton(as_json_);
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(label);
  row->addWidget(presets_);
  row->addWidget(changes_, 1);
  row->addWidget(as_form_);
  row->addWidget(as_json_);
  connect(presets_, &QComboBox::activated, this, &ConfigurePage::choosePreset);
  connect(as_form_, &QToolButton::clicked, this, [this] { showJson(false); });
  connect(as_json_, &QToolButton::clicked, this, [this] { showJson(true); });
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
  buttons->addWidget(start_);
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(plan_);
  column->addSpacing(8);
  column->addLayout(buttons);
  column->addStretch();
  side->setMinimumWidth(220);
  connect(save, &QPushButton::clicked, this, &ConfigurePage::savePreset);
  connect(start_, &QPushButton::clicked, this, &ConfigurePage::start);
  for (const int key : {Qt::Key_Return, Qt::Key_Enter})
    connect(new QShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(key)), this), &QShortcut::activated, start_, &QPushButton::click);
  return side;
}

void ConfigurePage::fillPresets() {
  presets_->clear();
  presets_->addItem(tr("defaults"), QString());
  presets_->addItem(tr("as the selected run"), kSelectedRun);
  try {
    for (const Preset& preset : presets()) presets_->addItem(preset.own ? tr("%1 (yours)").arg(preset.title) : preset.title, preset.path);
  } catch (const Error& error) {  // the defaults are there all the same
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
  }
}

void ConfigurePage::choosePreset(int index) {
  const QString path = presets_->itemData(index).toString();
  const Run* run = session_.runs()->run(session_.currentRun());
  if (path == kSelectedRun && !run) return Q_EMIT session_.failed(tr("No run is selected in the list."));
  QString note;
  try {
    draft_.start(path.isEmpty() ? nlohmann::json::object() : path == kSelectedRun ? run->info().config : read_preset(path, &note));
  } catch (const Error& error) {
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
    return;
  }
  if (!note.isEmpty()) Q_EMIT session_.noted(note);
  follow();
}

void ConfigurePage::savePreset() {
  QDir().mkpath(own_presets_folder());
  const QString name = config_ ? QString::fromStdString(config_->name) : QStringLiteral("preset");
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save as preset"), own_presets_folder() + QLatin1Char('/') + name + QStringLiteral(".json"), tr("Configs (*.json)"));
  if (path.isEmpty()) return;
  const QByteArray text = QByteArray::fromStdString(draft_.json().dump(2) + "\n");
  if (QString reason; !writeFile(path, text, &reason)) return Q_EMIT session_.failed(reason);
  fillPresets();
  presets_->setCurrentIndex(presets_->findData(path));
  draft_.start(draft_.json());
  follow();
}

void ConfigurePage::showJson(bool json) {
  as_form_->setChecked(!json);
  as_json_->setChecked(json);
  editors_->setCurrentWidget(json ? static_cast<QWidget*>(json_) : form_);
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
}

/// Everything that follows from the draft.
void ConfigurePage::follow() {
  session_.place().set("configure/preset", QString::fromStdString(draft_.preset().dump()));
  session_.place().set("configure/draft", QString::fromStdString(draft_.json().dump()));
  ConfigProblem problem;
  config_ = resolve(draft_, &problem);
  form_->setDraft(draft_);
  form_->setProblem(problem);
  json_->setConfig(draft_.json());
  json_->setProblem(QString::fromStdString(problem.message));
  const int changes = draft_.changes();
  changes_->setText(changes == 0 ? QString() : changes == 1 ? tr("1 change") : tr("%1 changes").arg(changes));
  start_->setEnabled(config_.has_value());
  proposeDomains();
  if (!config_) return plan_->setNoConfig(QString::fromStdString(problem.message));
  plan_->setConfig(*config_);
  batch_->setConfig(*config_);
}

void ConfigurePage::proposeDomains() {
  const nlohmann::json text = draft_.json().value("data", nlohmann::json::object());
  const std::string wanted = text.is_object() && text.contains("corpus") && text.at("corpus").is_string()
                                 ? text.at("corpus").get<std::string>()
                                 : DataConfig{}.corpus;
  QStringList domains;
  for (const CorpusSummary& corpus : corpora_)
    if (corpus.name == wanted)
      for (const DomainInfo& domain : corpus.domains) domains << QString::fromStdString(domain.name);
  form_->setProposals("/data/train", domains);
  form_->setProposals("/data/ood", domains);
}

void ConfigurePage::start() {
  if (!config_) return;
  bool started = false;
  const auto connection = connect(&session_, &Session::runStarted, this, [&] { started = true; });
  session_.startRun(QByteArray::fromStdString(to_json(*config_).dump(2)));
  disconnect(connection);
  if (started) session_.showPage(QStringLiteral("live"));  // else the message says why, and here it can be mended
}

}  // namespace saccade::ui
