#pragma once
#include <QFontMetricsF>
#include <QString>

namespace saccade::ui {

/// A title is a name and, behind a comma, what it differs in. In `room` pixels the name loses its end, and then all but dots, before the
/// difference loses anything: a colour beside it tells the name, too.
QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room);

/// Words between dots (" · "), what matters most first: in `room` pixels the last of them go, whole, and dots stand in their place. The
/// first stays, as a title does.
QString fittingWords(const QString& whole, const QFontMetricsF& metrics, double room);

}  // namespace saccade::ui
