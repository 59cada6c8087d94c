#pragma once
#include <QFontMetricsF>
#include <QString>

namespace saccade::ui {

/// A title is a name and, behind a comma, what it differs in. In `room` pixels the name loses its end, and then all but dots, before the
/// difference loses anything: a colour beside it tells the name, too.
QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room);

}  // namespace saccade::ui
