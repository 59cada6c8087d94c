#include "ui/charts/ticks.h"

#include <QRegularExpression>
#include <algorithm>
#include <array>

namespace saccade::ui {

namespace {

constexpr int kMostTicks = 200;

QString superscript(int exponent) {
  static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString text;
  for (const QChar c : QString::number(std::abs(exponent))) text += digits[c.digitValue()];
  return exponent < 0 ? QStringLiteral("⁻") + text : text;
}

QString trimmed(double value, int decimals) {
  QString text = QString::number(value, 'f', std::clamp(decimals, 0, 12));
  if (text.contains(QLatin1Char('.'))) {
    while (text.endsWith(QLatin1Char('0'))) text.chop(1);
    if (text.endsWith(QLatin1Char('.'))) text.chop(1);
  }
  if (text == QLatin1String("-0")) text = QStringLiteral("0");
  return text.replace(QLatin1Char('-'), QChar(0x2212));
}

struct Prefix {
  double factor;
  const char* name;
};
const Prefix& prefix_for(double magnitude) {
  static constexpr std::array<Prefix, 7> prefixes{
      {{1, ""}, {1e3, " k"}, {1e6, " M"}, {1e9, " G"}, {1e12, " T"}, {1e15, " P"}, {1e18, " E"}}};
  size_t i = 0;
  while (i + 1 < prefixes.size() && magnitude >= 0.9999999 * prefixes[i + 1].factor) ++i;
  return prefixes[i];
}

QString power_of_ten(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double mantissa = value / std::pow(10.0, exponent);
  const QString ten = QStringLiteral("10") + superscript(exponent);
  if (std::abs(mantissa - 1) < 1e-6) return ten;
  return trimmed(mantissa, 2) + QStringLiteral("·") + ten;
}

/// Decimals that tell neighbours `step` apart.
int decimals_for(double step) { return static_cast<int>(std::max(0.0, std::ceil(-std::log10(step) - 1e-9))); }

QString tick_label(double value, double step, double largest) {
  if (std::abs(value) < step * 1e-6) return QStringLiteral("0");
  if (largest < 1e-3 || largest >= 1e21) return power_of_ten(value);
  if (largest < 1e4) return trimmed(value, decimals_for(step));
  const Prefix& prefix = prefix_for(largest);
  return trimmed(value / prefix.factor, decimals_for(step / prefix.factor)) + QLatin1String(prefix.name);
}

QString log_label(double value) {
  if (value >= 1e-3 && value < 1e21) {
    const Prefix& prefix = value < 1e4 ? prefix_for(1) : prefix_for(value);
    const double shown = value / prefix.factor;
    return trimmed(shown, decimals_for(shown) + 2) + QLatin1String(prefix.name);
  }
  return power_of_ten(value);
}

double round_step(double raw) {
  const double decade = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * decade >= raw * (1 - 1e-9)) return m * decade;
  return 10 * decade;
}

Ticks linear_ticks(double low, double high, int most) {
  Ticks ticks;
  double step = round_step((high - low) / most);
  const auto inside = [&] { return std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1; };
  while (inside() < 2) step = round_step(step * 0.4);  // one number tells no scale
  const double largest = std::max(std::abs(low), std::abs(high));
  if (!(step > largest * 1e-14)) return ticks;  // neighbours are one number
  const double slack = step * 1e-9;
  for (double k = std::ceil((low - slack) / step); k * step <= high + slack && ticks.positions.size() < kMostTicks; ++k) {
    ticks.positions.push_back(k * step);
    ticks.labels.push_back(tick_label(k * step, step, largest));
  }
  const double part = step / 5;
  for (double k = std::ceil(low / part); k * part <= high && ticks.minor.size() < kMostTicks; ++k) ticks.minor.push_back(k * part);
  return ticks;
}

std::vector<double> decade_multiples(double low, double high, std::initializer_list<int> multiples, int every = 1) {
  std::vector<double> found;
  const int first = static_cast<int>(std::floor(std::log10(low) - 1e-9)), last = static_cast<int>(std::ceil(std::log10(high)));
  for (int e = first; e <= last && found.size() < kMostTicks; ++e) {
    if (e % every != 0) continue;
    for (const int m : multiples) {
      const double v = m * std::pow(10.0, e);
      if (v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) found.push_back(v);
    }
  }
  return found;
}

Ticks log_ticks(double low, double high, int most) {
  const auto fits = [&](const std::vector<double>& v) { return static_cast<int>(v.size()) <= most; };
  Ticks ticks;
  ticks.minor = decade_multiples(low, high, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  ticks.positions = decade_multiples(low, high, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  if (!fits(ticks.positions)) ticks.positions = decade_multiples(low, high, {1, 2, 5});
  if (!fits(ticks.positions)) ticks.positions = decade_multiples(low, high, {1, 3});
  for (int every = 1; !fits(ticks.positions) && every < 400; every = every == 1 ? 2 : every + 1)
    ticks.positions = decade_multiples(low, high, {1}, every);
  if (ticks.positions.size() < 3) {  // less than a decade: round values, spaced as the axis is
    Ticks fine = linear_ticks(low, high, most);
    if (fine.positions.size() > ticks.positions.size() && low > 0) return fine;
  }
  for (const double v : ticks.positions) ticks.labels.push_back(log_label(v));
  return ticks;
}

/// Zero, and decades to both sides of it from the linear part on.
Ticks symmetric_ticks(const AxisScale& scale, int most) {
  Ticks ticks;
  const double largest = std::max(std::abs(scale.low), std::abs(scale.high));
  if (largest < 3 * scale.linear_within) return linear_ticks(scale.low, scale.high, most);
  const int first = static_cast<int>(std::round(std::log10(scale.linear_within))),
            last = static_cast<int>(std::floor(std::log10(largest) + 1e-9));
  const int sides = scale.low < 0 && scale.high > 0 ? 2 : 1;
  const int every = std::max(1, (sides * (last - first + 1) + most - 1) / most);
  for (const int sign : {-1, 1})
    for (int e = last; e >= first; --e) {
      const double v = sign * std::pow(10.0, e);
      if (v < scale.low || v > scale.high) continue;
      ((last - e) % every == 0 ? ticks.positions : ticks.minor).push_back(v);
    }
  if (scale.low <= 0 && scale.high >= 0) ticks.positions.push_back(0);
  std::sort(ticks.positions.begin(), ticks.positions.end());
  for (const double v : ticks.positions)
    ticks.labels.push_back(v == 0 ? QStringLiteral("0") : (v < 0 ? QString(QChar(0x2212)) : QString()) + log_label(std::abs(v)));
  return ticks;
}

}  // namespace

Ticks ticks_for(const AxisScale& scale, int most) {
  most = std::max(most, 2);
  if (!(scale.high > scale.low) || !std::isfinite(scale.low) || !std::isfinite(scale.high)) return {};
  if (scale.linear_within > 0) return symmetric_ticks(scale, most);
  return scale.logarithmic ? log_ticks(scale.low, scale.high, most) : linear_ticks(scale.low, scale.high, most);
}

Ticks cell_ticks(double low, double high, int most) {
  Ticks ticks;
  const double step = std::max(1.0, round_step((high - low) / std::max(most, 1)));
  for (double cell = std::ceil(std::max(0.0, low - 0.5) / step) * step; cell + 0.5 <= high && ticks.positions.size() < kMostTicks;
       cell += step) {
    if (cell + 0.5 < low) continue;
    ticks.positions.push_back(cell + 0.5);
    ticks.labels.push_back(QString::number(cell, 'f', 0));
  }
  return ticks;
}

Ticks named_ticks(const AxisScale& scale, const std::vector<std::string>& names, bool numbers) {
  Ticks ticks;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto at = static_cast<double>(i + 1);
    if (at < scale.low || at > scale.high) continue;
    ticks.positions.push_back(at);
    ticks.labels.push_back(numbers ? QString::number(i + 1) : QString::fromStdString(names[i]));
  }
  return ticks;
}

WhatDiffers what_differs(const std::vector<std::string>& names) {
  if (names.size() < 2) return {{}, names};
  const std::string& first = names.front();
  size_t before = first.size(), behind = first.size();  // characters that all begin and end with
  for (const std::string& name : names) {
    const auto begins = std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first;
    const auto ends = std::mismatch(first.rbegin(), first.rend(), name.rbegin(), name.rend()).first;
    before = std::min(before, static_cast<size_t>(begins - first.begin()));
    behind = std::min(behind, static_cast<size_t>(ends - first.rbegin()));
  }
  const auto between_words = [](char c) { return c == '-' || c == ' '; };
  while (before > 0 && !between_words(first[before - 1])) --before;
  while (behind > 0 && !between_words(first[first.size() - behind])) --behind;
  const auto is_left = [&](const std::string& name) { return name.size() > before + behind; };
  if (before + behind == 0 || !std::all_of(names.begin(), names.end(), is_left)) return {{}, names};
  WhatDiffers parts{first.substr(0, before) + "…" + first.substr(first.size() - behind), {}};
  for (const std::string& name : names) parts.names.push_back(name.substr(before, name.size() - before - behind));
  return parts;
}

QStringList lines_of_name(const std::string& name, const QFontMetricsF& metrics, double room) {
  constexpr qsizetype kMost = 3;
  static const QRegularExpression between_words(QStringLiteral("(?<=[- ])"));
  QStringList lines;
  for (const QString& word : QString::fromStdString(name).split(between_words, Qt::SkipEmptyParts)) {
    if (!lines.isEmpty() && metrics.horizontalAdvance((lines.last() + word).trimmed()) <= room)
      lines.last() += word;
    else
      lines << word;
    if (metrics.horizontalAdvance(lines.last().trimmed()) > room || lines.size() > kMost) return {};
  }
  return lines;
}

QString fixed_number(double value, int decimals) {
  QString text = QString::number(value, 'f', decimals);
  const bool nothing = text.startsWith(QLatin1Char('-')) && text.count(QLatin1Char('0')) + text.count(QLatin1Char('.')) == text.size() - 1;
  return nothing ? text.mid(1) : text.replace(QLatin1Char('-'), QChar(0x2212));
}

QString short_number(double value) {
  if (std::isnan(value)) return QStringLiteral("not a number");
  if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
  const double magnitude = std::abs(value);
  if (magnitude == 0) return QStringLiteral("0");
  if (magnitude < 1e-3 || magnitude >= 1e21) return power_of_ten(value);
  const Prefix& prefix = magnitude < 1e4 ? prefix_for(1) : prefix_for(magnitude);
  const double shown = value / prefix.factor;
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(shown))));
  return trimmed(shown, 3 - digits) + QLatin1String(prefix.name);
}

}  // namespace saccade::ui
