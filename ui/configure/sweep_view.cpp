#include "ui/configure/sweep_view.h"

#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFormLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "analysis/studies/study.h"
#include "kernels/engine/error.h"
#include "ui/calm_wheel.h"
#include "ui/configure/axis_editor.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/sweep.h"
#include "ui/files/write_file.h"
#include "ui/plain_scroll.h"
#include "ui/session.h"
#include "ui/studies/own_studies.h"
#include "ui/studies/study_start.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

/// "4 values: 8, 16, 32, 64"
QString values_note(const QStringList& values) {
  constexpr qsizetype kShown = 8;
  if (values.size() == 1) return SweepView::tr("1 value: %1").arg(values.first());
  const QString more = values.size() > kShown ? QStringLiteral(", …") : QString();
  return SweepView::tr("%1 values: %2").arg(values.size()).arg(values.mid(0, kShown).join(QStringLiteral(", "))) + more;
}

/// Values of an axis, as they stand in its assignments.
QStringList value_texts(const StudyAxis& axis) {
  QStringList texts;
  for (const StudyAxis::Value& value : axis.values)
    texts << (value.settings.empty() ? QString::fromStdString(value.base)
                                     : QString::fromStdString(value.settings.front()).section(QLatin1Char('='), 1));
  return texts;
}

QLineEdit* line(const QString& name, const QString& hint, QWidget* parent) {
  auto* field = new QLineEdit(parent);
  field->setAccessibleName(name);
  field->setPlaceholderText(hint);
  return field;
}

}  // namespace

SweepView::SweepView(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      name_(line(tr("Name of the study"), tr("a short name"), this)),
      question_(line(tr("Question of the study"), tr("what it is to answer, in one sentence"), this)),
      seeds_(line(tr("Seeds"), tr("1, 2, 3"), this)),
      add_(new QPushButton(tr("+ Add axis"), this)),
      save_(new QPushButton(tr("Save study file"), this)),
      tuned_(new QCheckBox(tr("Tune a setting"), this)),
      extend_(new QCheckBox(tr("go on beyond the ends while the best value is there"), this)),
      every_seed_(new QCheckBox(tr("with every seed, by the mean of their losses; else with the first one"), this)),
      tuning_(new AxisEditor(tr("Tuning"), false, this)),
      equal_(new QComboBox(this)),
      equal_by_(line(tr("Settings that make runs equal"), tr("architecture.width"), this)),
      branches_(line(tr("Cooldown branches"), tr("none; 0.5 of all steps, 800, 2000000 tokens, 3.4 nats"), this)),
      problem_(new ProblemLabel(this)),
      start_(new StudyStart(session, this)) {
  auto* content = new QWidget(this);
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, 8, 0);
  column->addWidget(makeHead());
  axes_box_ = new QVBoxLayout;
  column->addLayout(axes_box_);
  column->addWidget(add_, 0, Qt::AlignLeft);
  column->addWidget(makeTuning());
  column->addWidget(makeRules());
  column->addWidget(problem_);
  column->addWidget(start_);
  column->addWidget(save_, 0, Qt::AlignRight);
  column->addStretch();
  auto* scroll = new PlainScroll(content, this);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroll);

  for (QLineEdit* field : {name_, question_, seeds_, equal_by_, branches_})
    connect(field, &QLineEdit::textEdited, this, &SweepView::follow);
  for (QCheckBox* box : {tuned_, extend_, every_seed_}) connect(box, &QCheckBox::clicked, this, &SweepView::follow);
  connect(tuning_, &AxisEditor::edited, this, &SweepView::follow);
  connect(tuning_, &AxisEditor::settingChosen, this, [this](const QString& setting) { propose(tuning_, setting); });
  connect(add_, &QPushButton::clicked, this, [this] {
    addAxis({{"setting", ""}})->stops().first()->setFocus();
    follow();
  });
  connect(save_, &QPushButton::clicked, this, [this] {
    if (const QString path = save(); !path.isEmpty()) Q_EMIT session_.noted(tr("Wrote %1").arg(path));
  });
  start_->file_to_queue = [this] { return save(); };
  connect(start_, &StudyStart::queued, this, [this](const QString& directory) {
    session_.place().set("studies/selected", directory);
    session_.showPage(QStringLiteral("studies"));
  });
  const std::string kept = session_.place().value("configure/sweep").toString().toStdString();
  const Json last = Json::parse(kept.empty() ? "null" : kept, nullptr, false);
  Json begin = empty_sweep();
  if (last.is_object()) begin.update(last);
  setSweep(begin);
  now_ = sweep();
  makeUndo();
}

QWidget* SweepView::makeHead() {
  auto* head = new QWidget(this);
  auto* rows = new QFormLayout(head);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  auto* base = new QLabel(tr("Runs with the configuration as it is written here, one for every value of the axes and every seed."), head);
  base->setWordWrap(true);
  base->setForegroundRole(QPalette::PlaceholderText);
  rows->addRow(base);
  rows->addRow(tr("Name"), name_);
  rows->addRow(tr("Question"), question_);
  rows->addRow(tr("Seeds"), seeds_);
  return head;
}

QWidget* SweepView::makeTuning() {
  tuned_->setToolTip(
      tr("Every cell is trained with each of these values; validation loss chooses, and the other seeds train at the best one."));
  auto* box = new QWidget(this);
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 4, 0, 0);
  column->addWidget(tuned_);
  column->addWidget(tuning_);
  column->addWidget(extend_);
  column->addWidget(every_seed_);
  return box;
}

QWidget* SweepView::makeRules() {
  equal_->addItem(tr("nothing: as they are written"), QString());
  equal_->addItem(tr("parameters"), QStringLiteral("parameters"));
  equal_->addItem(tr("cache / state per token"), QStringLiteral("state"));
  equal_->addItem(tr("FLOPs"), QStringLiteral("flops"));
  equal_->addItem(tr("tokens"), QStringLiteral("tokens"));
  equal_->addItem(tr("seconds of training"), QStringLiteral("seconds"));
  equal_->setAccessibleName(tr("What all runs have equal"));
  equal_->setToolTip(
      tr("Every cell is brought to what the first one has: FLOPs and tokens by training.steps. Losses are read "
         "at the seconds of the run that took least."));
  calm_wheel(equal_);
  equal_by_->setToolTip(tr("Integer settings of the architecture, coarse to fine, with commas between."));
  branches_->setToolTip(
      tr("Where cooldown branches begin, so that losses are compared at the ends of cooldowns: shares of all steps, steps, tokens trained "
         "on, or the validation loss that begins one. The schedule is then wsd."));
  connect(equal_, &QComboBox::activated, this, &SweepView::follow);
  auto* box = new QWidget(this);
  auto* rows = new QFormLayout(box);
  rows->setContentsMargins(0, 4, 0, 0);
  rows->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  rows->addRow(tr("Equal"), equal_);
  rows->addRow(tr("by"), equal_by_);
  rows->addRow(tr("Branches"), branches_);
  return box;
}

void SweepView::makeUndo() {
  const auto add = [this](const QString& text, const QKeySequence& key, std::vector<Json>& from, std::vector<Json>& to) {
    auto* action = new QAction(text, this);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, [this, &from, &to] { takeBack(from, to); });
    addAction(action);
  };
  add(tr("Undo the last change of the study"), QKeySequence(Qt::CTRL | Qt::Key_Z), done_, undone_);
  add(tr("Redo the change of the study"), QKeySequence(Qt::CTRL | Qt::Key_Y), undone_, done_);
  for (QLineEdit* field : findChildren<QLineEdit*>()) field->installEventFilter(this);
}

/// A line of text would take Ctrl+Z for itself, and know nothing of the other fields.
bool SweepView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->modifiers() == Qt::ControlModifier && (key->key() == Qt::Key_Z || key->key() == Qt::Key_Y)) return true;
  }
  return QWidget::eventFilter(watched, event);
}

/// Of a change what was before it, so that it can be taken back.
void SweepView::keep() {
  const Json next = sweep();
  const Json changes = Json::diff(now_, next);
  if (changes.empty()) return;
  const std::string field = changes.size() == 1 && changes[0]["op"] == "replace" ? changes[0]["path"].get<std::string>() : std::string();
  if (field.empty() || field != edited_) done_.push_back(now_);
  edited_ = field;
  undone_.clear();
  now_ = next;
}

void SweepView::takeBack(std::vector<Json>& from, std::vector<Json>& to) {
  if (from.empty()) return;
  to.push_back(now_);
  now_ = from.back();
  from.pop_back();
  edited_.clear();
  setSweep(now_);
  Q_EMIT stopsChanged();
  follow();
}

void SweepView::setSweep(const Json& sweep) {
  name_->setText(QString::fromStdString(sweep.value("name", "")));
  question_->setText(QString::fromStdString(sweep.value("question", "")));
  seeds_->setText(QString::fromStdString(sweep.value("seeds", "1")));
  tuned_->setChecked(sweep.value("tuned", false));
  extend_->setChecked(sweep.value("extend", true));
  every_seed_->setChecked(sweep.value("every_seed", false));
  tuning_->setAxis(sweep.value("tuning", Json::object()));
  equal_->setCurrentIndex(std::max(0, equal_->findData(QString::fromStdString(sweep.value("equal", "")))));
  equal_by_->setText(QString::fromStdString(sweep.value("equal_by", "")));
  branches_->setText(QString::fromStdString(sweep.value("branches", "")));
  const Json axes = sweep.value("axes", Json::array());
  while (axes_.size() > axes.size()) dropAxis(axes_.back());
  for (size_t i = 0; i < axes.size(); ++i) i < axes_.size() ? axes_[i]->setAxis(axes[i]) : static_cast<void>(addAxis(axes[i]));
}

Json SweepView::sweep() const {
  Json axes = Json::array();
  for (const AxisEditor* axis : axes_) axes.push_back(axis->axis());
  return {{"name", name_->text().toStdString()},
          {"question", question_->text().toStdString()},
          {"seeds", seeds_->text().toStdString()},
          {"axes", axes},
          {"tuned", tuned_->isChecked()},
          {"tuning", tuning_->axis()},
          {"extend", extend_->isChecked()},
          {"every_seed", every_seed_->isChecked()},
          {"equal", equal_->currentData().toString().toStdString()},
          {"equal_by", equal_by_->text().toStdString()},
          {"branches", branches_->text().toStdString()}};
}

AxisEditor* SweepView::addAxis(const Json& axis) {
  auto* editor = new AxisEditor(tr("Axis %1").arg(++made_), true, this);
  editor->setFields(fields_);
  editor->setAxis(axis);
  connect(editor, &AxisEditor::edited, this, &SweepView::follow);
  connect(editor, &AxisEditor::settingChosen, this, [this, editor](const QString& setting) { propose(editor, setting); });
  connect(editor, &AxisEditor::removeWanted, this, [this, editor] { removeAxis(editor); });
  axes_.push_back(editor);
  axes_box_->addWidget(editor);
  for (QLineEdit* field : editor->findChildren<QLineEdit*>()) field->installEventFilter(this);
  Q_EMIT stopsChanged();
  return editor;
}

void SweepView::dropAxis(AxisEditor* axis) {
  std::erase(axes_, axis);
  axes_box_->removeWidget(axis);
  axis->hide();
  axis->deleteLater();
}

void SweepView::removeAxis(AxisEditor* axis) {
  dropAxis(axis);
  add_->setFocus();
  Q_EMIT stopsChanged();
  follow();
}

/// Values around what the configuration has.
void SweepView::propose(AxisEditor* axis, const QString& setting) {
  for (const FormField& field : fields_)
    if (QString::fromStdString(dotted_name(field)) == setting) axis->setAxis(proposed_axis(field, draft_.value(field)));
  follow();
}

void SweepView::setDraft(const ConfigDraft& draft) {
  draft_ = draft;
  fields_ = draft.fields();
  for (AxisEditor* axis : axes_) axis->setFields(fields_);
  tuning_->setFields(fields_);
  if (isVisible()) follow();
}

void SweepView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  follow();
}

/// The study's name as a file has it.
QString SweepView::fileName() const {
  QString name = name_->text().trimmed();
  return name.replace(QRegularExpression(QStringLiteral("[^A-Za-z0-9._-]+")), QStringLiteral("-"));
}

void SweepView::follow() {
  keep();
  session_.place().set("configure/sweep", QString::fromStdString(now_.dump()));
  equal_by_->setEnabled(equal_by_settings(now_["equal"]));
  for (QWidget* part : {static_cast<QWidget*>(tuning_), static_cast<QWidget*>(extend_), static_cast<QWidget*>(every_seed_)})
    part->setVisible(tuned_->isChecked());
  file_ = nullptr;
  if (fileName().isEmpty()) return showProblem(tr("Give the study a name."));
  try {
    const Json file = study_file(sweep(), draft_.json(), fields_);
    showAxes(parse_study(file.dump(), "", fileName().toStdString()));
    file_ = file;
  } catch (const Error& error) {
    QString why = QString::fromUtf8(error.what());
    return showProblem(why.startsWith(QStringLiteral(": ")) ? why.mid(2) : why);
  }
  problem_->say({});
  save_->setEnabled(true);
  const QString path = scratch_.filePath(fileName() + QStringLiteral(".json"));
  const QByteArray text = QByteArray::fromStdString(file_.dump(2) + "\n");
  if (const QString wanted = path + QString::fromUtf8(text); wanted != planned_) {
    QString reason;
    if (!writeFile(path, text, &reason)) return showProblem(reason);
    planned_ = wanted;
    start_->setStudy(path);
  }
}

void SweepView::showAxes(const Study& study) {
  for (size_t i = 0; i < axes_.size(); ++i) axes_[i]->setNote(values_note(value_texts(study.axes[i])), false);
  QStringList rates;
  if (study.tuning)
    for (const double rate : study.tuning->values) rates << QString::number(rate, 'g', 4);
  tuning_->setNote(values_note(rates), false);
}

/// At the axis it is about, else below all.
void SweepView::showProblem(const QString& problem) {
  planned_.clear();
  save_->setEnabled(false);
  static const QRegularExpression axis(QStringLiteral("^/axes/(\\d+)(/|\\s)"));
  const QRegularExpressionMatch match = axis.match(problem);
  const int faulty = match.hasMatch() ? match.captured(1).toInt() : -1;
  const bool tuning = problem.startsWith(QStringLiteral("/tuning"));
  QString why = problem;
  why.remove(QRegularExpression(QStringLiteral("^/(axes/\\d+|tuning)/?")));
  for (size_t i = 0; i < axes_.size(); ++i) axes_[i]->setNote(static_cast<int>(i) == faulty ? why : QString(), true);
  tuning_->setNote(tuning ? why : QString(), true);
  problem_->say(faulty < 0 && !tuning ? problem : QString());
  start_->setNoStudy(tr("Nothing can be queued yet."));
}

/// Where others find it; empty when it could not be written.
QString SweepView::save() {
  QDir().mkpath(own_studies_folder());
  const QString path = own_studies_folder() + QLatin1Char('/') + fileName() + QStringLiteral(".json");
  QString reason;
  if (writeFile(path, QByteArray::fromStdString(file_.dump(2) + "\n"), &reason)) return path;
  Q_EMIT session_.failed(reason);
  return {};
}

QWidgetList SweepView::stops() const {
  QWidgetList all{name_, question_, seeds_};
  for (const AxisEditor* axis : axes_) all << axis->stops();
  all << add_ << tuned_ << tuning_->stops() << extend_ << every_seed_ << equal_ << equal_by_ << branches_ << start_->stops() << save_;
  return all;
}

}  // namespace saccade::ui
