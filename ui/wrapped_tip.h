#pragma once
#include <QString>

namespace saccade::ui {

/// A long tool tip, broken into lines: Qt puts plain text on one line, however long.
inline QString wrapped_tip(const QString& text) {
  return QStringLiteral("<p>%1</p>").arg(text.toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>")));
}

}  // namespace saccade::ui
