#include "ui/studies/study_start.h"

#include <QAbstractSpinBox>
#include <QComboBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QTemporaryFile>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/launchers/cluster_profile.h"
#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "ui/calm_wheel.h"
#include "ui/program_call.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/studies/job_script.h"
#include "ui/where_choice.h"

namespace saccade::ui {
namespace {

/// STUDY of a folder STUDY/runs that is open, else the folder: studies stand in it.
QString studies_folder(const QString& runs) {
  const QFileInfo folder(runs);
  if (folder.fileName() == QStringLiteral("runs") && holds_study(folder.path().toStdString())) return QFileInfo(folder.path()).path();
  return runs;
}

}  // namespace

StudyStart::StudyStart(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  makeFields();
  soon_.setSingleShot(true);
  soon_.setInterval(250);
  connect(&soon_, &QTimer::timeout, this, [this] { plan(false); });
  connect(measure_, &QPushButton::clicked, this, [this] {
    if (!call_ || !measure_->property("busy").toBool()) return plan(true);
    plan(false);  // without the timing that went on
  });
  connect(start_, &QPushButton::clicked, this, &StudyStart::start);
}

void StudyStart::setStudy(const QString& study, const QStringList& assignments) {
  if (call_) call_->cancel();
  study_ = study, assignments_ = assignments;
  takes_->setText(tr("Counting the runs …"));
  start_->setEnabled(false);
  soon_.start();
}

void StudyStart::setNoStudy(const QString& why) {
  soon_.stop();
  if (call_) call_->cancel();
  measure_->setText(tr("Time its steps"));
  study_.clear();
  question_->clear();
  takes_->setText(why);
  start_->setEnabled(false);
  measure_->setEnabled(false);
}

QWidgetList StudyStart::stops() const { return {on_, devices_, budget_, limit_, jobs_, measure_, start_}; }

void StudyStart::makeFields() {
  question_ = new QLabel(this), takes_ = new QLabel(this);
  takes_->setAccessibleName(tr("What the study takes"));
  for (QLabel* label : {question_, takes_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  on_ = new WhereChoice(this);
  connect(on_, &QComboBox::currentIndexChanged, this, &StudyStart::takeItsJobs);
  devices_ = new QComboBox(this);
  devices_->setAccessibleName(tr("GPUs"));
  devices_->setToolTip(tr("Its runs on the device that its configurations name, or on every GPU of this machine, each run on one"));
  devices_->hide();
  budget_ = new QDoubleSpinBox(this);
  budget_->setRange(0, 100000);
  budget_->setSuffix(tr(" h at most"));
  budget_->setSpecialValueText(tr("no budget"));
  budget_->setAccessibleName(tr("Hours of training"));
  budget_->setToolTip(tr("Hours of training of all runs together; then nothing more is started"));
  limit_ = new QSpinBox(this);
  limit_->setRange(0, 1'000'000);
  limit_->setSuffix(tr(" runs at most"));
  limit_->setSpecialValueText(tr("all runs"));
  limit_->setAccessibleName(tr("Runs to begin"));
  jobs_ = new QSpinBox(this);
  jobs_->setRange(kJobsAsPays, 64);
  jobs_->setValue(1);
  jobs_->setSuffix(tr(" at a time"));
  jobs_->setSpecialValueText(tr("as many as pay"));
  jobs_->setAccessibleName(tr("Runs at a time"));
  jobs_->setToolTip(tr("On the device, as far as its memory reaches; as many as pay: found out by what they make together"));
  measure_ = new QPushButton(tr("Time its steps"), this);
  measure_->setToolTip(tr("Trains and evaluates every distinct model here for some seconds, to tell how long all will take"));
  start_ = new QPushButton(tr("Queue it"), this);
  auto *where = new QHBoxLayout, *numbers = new QHBoxLayout;
  const auto add = [](QHBoxLayout* row, QWidget* field) {
    row->addWidget(field, 1);
    field->setMinimumWidth(80);
    calm_wheel(field);
  };
  for (QComboBox* field : {static_cast<QComboBox*>(on_), devices_}) add(where, field);
  for (QAbstractSpinBox* field :
       {static_cast<QAbstractSpinBox*>(budget_), static_cast<QAbstractSpinBox*>(limit_), static_cast<QAbstractSpinBox*>(jobs_)})
    add(numbers, field);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch();
  buttons->addWidget(measure_);
  buttons->addWidget(start_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(question_);
  column->addLayout(where);  // without a row where there is neither to choose
  column->addLayout(numbers);
  column->addWidget(takes_);
  column->addLayout(buttons);
}

QString StudyStart::place() const { return on_->place(); }
QString StudyStart::cluster() const { return on_->isHost() ? QString() : place(); }

/// A cluster's profile says how many jobs run at a time.
void StudyStart::takeItsJobs() {
  usual_jobs_ = 1;
  jobs_->setMinimum(cluster().isEmpty() ? kJobsAsPays : 1);
  try {
    if (!cluster().isEmpty())
      usual_jobs_ = static_cast<int>(std::min<int64_t>(jobs_->maximum(), load_cluster(cluster().toStdString()).at_a_time));
  } catch (const std::exception& error) {
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
  }
  jobs_->setValue(usual_jobs_);
  showPlace();
}

void StudyStart::showDevices() {
  const QVariant chosen = devices_->currentData();
  devices_->clear();
  devices_->addItem(tr("one device"), QString());
  devices_->addItem(tr("all %1 GPUs").arg(gpus_), QStringLiteral("all"));
  devices_->setCurrentIndex(std::max(0, devices_->findData(chosen)));
  devices_->setVisible(gpus_ > 1 && place().isEmpty());
}

void StudyStart::showPlace() {
  showDevices();
  const bool there = !study_.isEmpty() && holds_study(directory().toStdString());
  start_->setText(!cluster().isEmpty() ? tr("Show its script") : there ? tr("Go on with it") : tr("Queue it"));
  if (on_->isHost())
    return start_->setToolTip(tr("Its runs go into the queue of %1, or to the cluster that its profile names").arg(place()));
  start_->setToolTip(cluster().isEmpty() ? tr("Its runs train one after the other in a process of its own, also when this window is closed")
                                         : tr("The script of its jobs on %1, which are submitted from there").arg(cluster()));
}

QString StudyStart::directory() const {
  return on_->folder(studies_folder(session_.runs()->folder())) + QLatin1Char('/') +
         (study_.endsWith(QStringLiteral(".json")) ? QFileInfo(study_).completeBaseName() : QFileInfo(study_).fileName());
}

QStringList StudyStart::overrides() const {
  QStringList arguments;
  for (const QString& each : assignments_) arguments << QStringLiteral("--set") << each;
  return arguments;
}

void StudyStart::plan(bool measure) {
  if (call_) call_->cancel();
  measure_->setProperty("busy", measure);
  measure_->setText(measure ? tr("Cancel the timing") : tr("Time its steps"));
  if (study_.isEmpty()) return takes_->setText(tr("Choose a study, or a file."));
  if (measure) takes_->setText(takes_->text().section(QLatin1Char('\n'), 0, 0) + tr("\nTiming every distinct model …"));
  QStringList arguments{QStringLiteral("study"), QStringLiteral("plan"), study_};
  if (!measure) arguments << QStringLiteral("--no-measure");
  call_ = new ProgramCall(
      arguments + overrides(), false,
      [this, measure](const ProgramCall::Answer& answer) {
        measure_->setProperty("busy", false);
        measure_->setText(tr("Time its steps"));
        measure_->setEnabled(answer.ok);
        start_->setEnabled(answer.ok);
        if (answer.ok) return showPlan(QJsonDocument::fromJson(answer.output).object(), measure);
        question_->clear();
        takes_->setText(QStringLiteral("⚠ ") + answer.reason);
      },
      this);
}

void StudyStart::showPlan(const QJsonObject& plan, bool measured) {
  question_->setText(plan[QStringLiteral("question")].toString());
  const bool there = holds_study(directory().toStdString());
  const QJsonValue seconds = plan[QStringLiteral("seconds")];
  gpus_ = plan[QStringLiteral("gpus")].toInteger();
  const qint64 runs = plan[QStringLiteral("runs")].toInteger();
  QStringList parts{(runs == 1 ? tr("%1 run%2") : tr("%1 runs%2"))
                        .arg(runs)
                        .arg(plan[QStringLiteral("may_extend")].toBool() ? tr(" (more where a best value is at an edge)") : QString()),
                    tr("%1 tokens").arg(formatCount(plan[QStringLiteral("tokens")].toDouble())),
                    tr("%1 of checkpoints").arg(formatBytes(plan[QStringLiteral("disk_bytes")].toDouble()))};
  if (seconds.isDouble()) parts << tr("about %1, one run after the other").arg(formatDuration(seconds.toDouble()));
  QStringList notes;
  for (const QJsonValue& cell : plan[QStringLiteral("cells")].toArray())
    if (const QString note = cell[QStringLiteral("note")].toString(); !note.isEmpty() && !notes.contains(note)) notes << note;
  if (!seconds.isDouble()) parts << (measured ? tr("time not known") : tr("time not measured yet"));
  QString text = parts.join(QStringLiteral(" · "));
  if (!notes.isEmpty()) text += QStringLiteral("\n⚠ ") + notes.join(QStringLiteral("; "));
  if (there) text += tr("\n%1 stands there already: only what is missing is trained.").arg(directory());
  takes_->setText(text);
  showPlace();
}

QStringList StudyStart::startArguments(const QString& file) const {
  QStringList arguments{QStringLiteral("study"),
                        QStringLiteral("start"),
                        file,
                        QStringLiteral("--out"),
                        directory(),
                        QStringLiteral("--on"),
                        place().isEmpty() ? QStringLiteral("local") : place()};
  if (cluster().isEmpty() || jobs_->value() != usual_jobs_)
    arguments << QStringLiteral("--jobs") << QString::fromStdString(jobs_text(jobs_->value()));
  if (budget_->value() > 0) arguments << QStringLiteral("--budget") << QString::number(budget_->value());
  if (!devices_->isHidden() && !devices_->currentData().toString().isEmpty())
    arguments << QStringLiteral("--devices") << devices_->currentData().toString();
  if (limit_->value() > 0) arguments << QStringLiteral("--limit") << QString::number(limit_->value());
  return arguments + overrides();
}

void StudyStart::showScript(const QString& file) {
  const QString name = QFileInfo(directory()).fileName(), place = cluster();
  new ProgramCall(
      QStringList{QStringLiteral("study"), QStringLiteral("script"), file, QStringLiteral("--out"), directory(), QStringLiteral("--on"),
                  place} +
          overrides(),
      false,
      [this, file, name, place](const ProgramCall::Answer& answer) {
        start_->setEnabled(true);
        if (!answer.ok) return Q_EMIT session_.failed(answer.reason);
        const QJsonObject told = QJsonDocument::fromJson(answer.output).object();
        auto* dialog =
            new JobScript(name, place, told[QStringLiteral("script")].toString(), told[QStringLiteral("edited")].toBool(), window());
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(dialog, &QDialog::accepted, this, [this, dialog, file] {
          if (!dialog->edited()) return submit(startArguments(file));
          QTemporaryFile script(QDir::tempPath() + QStringLiteral("/saccade-jobs-XXXXXX.sh"));
          script.setAutoRemove(false);  // submit() removes it
          if (!script.open() || script.write(dialog->script().toUtf8()) < 0) return Q_EMIT session_.failed(script.errorString());
          submit(startArguments(file) + QStringList{QStringLiteral("--script"), script.fileName()});
        });
        dialog->open();
      },
      this);
}

void StudyStart::submit(const QStringList& arguments) {
  start_->setEnabled(false);
  const QString folder = directory(), place = cluster();
  const qsizetype script = arguments.indexOf(QStringLiteral("--script"));
  const QString written = script >= 0 ? arguments[script + 1] : QString();
  new ProgramCall(
      arguments, false,
      [this, folder, place, written](const ProgramCall::Answer& answer) {
        start_->setEnabled(true);
        if (!written.isEmpty()) QFile::remove(written);
        if (!answer.ok) return Q_EMIT session_.failed(answer.reason);
        const QJsonObject told = QJsonDocument::fromJson(answer.output).object();
        const qint64 runs = told[QStringLiteral("submitted")].toInteger();
        Q_EMIT session_.noted(runs > 0 ? tr("%1: %2 runs submitted to %3 as job %4.")
                                             .arg(QFileInfo(folder).fileName())
                                             .arg(runs)
                                             .arg(place, told[QStringLiteral("job")].toString())
                                       : tr("%1: nothing is left to submit to %2 now.").arg(QFileInfo(folder).fileName(), place));
        Q_EMIT queued(folder);
        plan(false);
      },
      this);
}

void StudyStart::start() {
  const QString file = file_to_queue ? file_to_queue() : study_;
  if (file.isEmpty()) return;
  start_->setEnabled(false);
  if (!cluster().isEmpty()) return showScript(file);
  const QString folder = directory(), host = place();
  new ProgramCall(
      startArguments(file), host.isEmpty(),
      [this, folder, host](const ProgramCall::Answer& answer) {
        start_->setEnabled(true);
        if (!answer.ok) return Q_EMIT session_.failed(answer.reason);
        const QJsonObject told = QJsonDocument::fromJson(answer.output).object();
        const QString device = told[QStringLiteral("queue")].toString() + (host.isEmpty() ? QString() : tr(" on %1").arg(host));
        Q_EMIT session_.noted(
            told[QStringLiteral("paused")].toBool()
                ? tr("%1 waits in the queue of %2, which is paused.").arg(QFileInfo(folder).fileName(), device)
                : tr("%1 is in the queue of %2. It goes on when this window is closed.").arg(QFileInfo(folder).fileName(), device));
        Q_EMIT queued(folder);
        plan(false);
      },
      this);
}

}  // namespace saccade::ui
