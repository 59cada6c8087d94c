#pragma once
#include <QFontMetricsF>
#include <QString>

namespace saccade::ui {

/// A title is the name of an architecture and what it differs in: behind a comma, or behind the name whose hue it has ("Transformer++" of
/// "Transformer++ window 64, width 80"). In `room` pixels the names of settings lose their ends, then the name its middle, and values stay:
/// "Gated DeltaNet, lr 0.003, exp… 4"; then values that are words: "RWKV-7, lr 0.027, t… s-nia…". In the least room dots stand for the
/// name, which a colour beside it tells, too.
QString fittingTitle(const QString& whole, const QFontMetricsF& metrics, double room);

/// Words between dots (" · "), what matters most first: in `room` pixels the last of them go, whole, and dots stand in their place. The
/// first stays, as a title does.
QString fittingWords(const QString& whole, const QFontMetricsF& metrics, double room);

}  // namespace saccade::ui
