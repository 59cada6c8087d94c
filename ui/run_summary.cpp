#include "ui/run_summary.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <QStringList>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "ui/charts/ticks.h"

namespace saccade::ui {
namespace {
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

QString tr(const char* text) { return QCoreApplication::translate("RunSummary", text); }

double last_value(const Series* series) {
  if (!series || series->value.empty()) return unknown;
  return std::isfinite(series->value.back()) ? series->value.back() : std::numeric_limits<double>::infinity();
}

/// 14:05 of "2026-11-25T13:05:00Z", with the day where that is another one.
QString local_time(const std::string& utc) {
  const QDateTime time = QDateTime::fromString(QString::fromStdString(utc), Qt::ISODate).toLocalTime();
  const bool today = time.date() == QDate::currentDate();
  return time.toString(today ? QStringLiteral("HH:mm") : QStringLiteral("d MMM HH:mm"));
}

QString withPrefix(double value, double base, const QStringList& prefixes) {
  int power = 0;
  while (std::abs(value) >= base * 0.9995 && power + 1 < prefixes.size()) value /= base, ++power;
  const int decimals = power == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return QLocale::c().toString(value, 'f', decimals) + QChar(0x00a0) + prefixes[power];
}
}  // namespace

QString stateText(RunState state) {
  switch (state) {
    case RunState::created: return tr("Starting");
    case RunState::running: return tr("Running");
    case RunState::finished: return tr("Done");
    case RunState::stopped: return tr("Stopped");
    case RunState::diverged: return tr("Diverged");
    case RunState::failed: return tr("Failed");
    case RunState::crashed: return tr("Stopped by a crash");
  }
  return {};
}

bool isActive(RunState state) { return state == RunState::created || state == RunState::running; }

bool canResume(RunState state) { return state == RunState::stopped || state == RunState::crashed || state == RunState::failed; }

RunNumbers numbers_of(const Run& run) {
  RunNumbers numbers{last_value(run.find("validation/loss")), last_value(run.find("ood/loss")), run.tokens_per_second(), unknown};
  if (std::isnan(numbers.loss)) numbers.loss = last_value(run.find("train/loss"));
  if (isActive(run.info().state)) numbers.seconds_left = run.seconds_left();
  return numbers;
}

double seconds_silent(const Run& run) {
  constexpr double kLeast = 60, kSteps = 20;
  if (run.info().state != RunState::running) return unknown;
  std::error_code none;
  const auto written = std::filesystem::last_write_time(run.info().directory / "journal.jsonl", none);
  if (none) return unknown;
  const double silent = std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
  const Series* steps = run.find("train/loss");
  const bool known = steps && !steps->step.empty() && steps->step.back() > 0;
  const double step = known ? steps->seconds.back() / static_cast<double>(steps->step.back()) : 0;
  return silent > std::max(kLeast, kSteps * step) ? silent : unknown;
}

QString state_now(const Run& run) {
  const RunInfo& info = run.info();
  const bool offline = !info.as_of.empty();
  if (const double silent = seconds_silent(run); !offline && !std::isnan(silent)) return tr("Silent for %1").arg(formatDuration(silent));
  const QString state = stateText(info.state);
  if (!isActive(info.state)) return state;
  if (offline) return tr("%1, offline as of %2").arg(state, local_time(info.as_of));
  const QString done = info.step > 0 && info.steps > 0 ? tr("%1 %").arg(100 * info.step / info.steps) : state;
  const double left = numbers_of(run).seconds_left;
  return std::isnan(left) ? done : tr("%1, %2 left").arg(done, formatDuration(left));
}

bool is_damaged(const Run& run) { return !run.damage().empty() && !run.detail().outline; }

QString damaged_word() { return tr("damaged"); }

QString summary_of(const Run& run) {
  const RunInfo& info = run.info();
  const RunNumbers numbers = numbers_of(run);
  QStringList parts;
  if (is_damaged(run)) parts << damaged_word();  // first: what is cut off is at the end
  const double silent = seconds_silent(run);
  if (!info.as_of.empty())
    parts << tr("offline, as of %1").arg(local_time(info.as_of));
  else if (!std::isnan(silent))
    parts << tr("silent for %1").arg(formatDuration(silent));
  else if (isActive(info.state))
    parts << (std::isnan(numbers.seconds_left) ? tr("preparing") : tr("%1 left").arg(formatDuration(numbers.seconds_left)));
  if (!info.host.empty()) parts << tr("on %1").arg(QString::fromStdString(info.host));
  if (!std::isnan(numbers.loss)) parts << tr("loss %1").arg(formatLoss(numbers.loss, 2));
  if (!std::isnan(numbers.ood)) parts << tr("OOD %1").arg(formatLoss(numbers.ood, 2));
  if (isActive(info.state)) {
    if (!std::isnan(numbers.tokens_per_second)) parts << tr("%1tok/s").arg(formatCount(numbers.tokens_per_second));
  } else if (info.state != RunState::finished) {
    parts << tr("step %1 of %2").arg(info.step).arg(info.steps);
  }
  return parts.join(QStringLiteral(" · "));
}

QString formatLoss(double value, int decimals) {
  if (std::isinf(value)) return tr("not finite");
  return std::abs(value) < 1000 ? fixed_number(value, decimals) : short_number(value);
}

QString formatCount(double count) {
  return withPrefix(count, 1000, {QString(), QStringLiteral("k"), QStringLiteral("M"), QStringLiteral("G"), QStringLiteral("T")}).trimmed();
}

QString formatBytes(double bytes) {
  return withPrefix(bytes, 1024,
                    {QStringLiteral("B"), QStringLiteral("KiB"), QStringLiteral("MiB"), QStringLiteral("GiB"), QStringLiteral("TiB")});
}

QString formatDuration(double seconds) {
  const qint64 whole = std::llround(seconds);
  if (whole < 100) return tr("%1 s").arg(whole);
  const qint64 minutes = (whole + 30) / 60;
  if (minutes < 100) return tr("%1 min").arg(minutes);
  const qint64 hours = minutes / 60;
  if (hours < 48) return tr("%1 h %2 min").arg(hours).arg(minutes % 60);
  return tr("%1 days %2 h").arg(hours / 24).arg(hours % 24);
}

}  // namespace saccade::ui
