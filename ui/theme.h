#pragma once
#include <QColor>
#include <QIcon>
#include <QString>
#include <optional>

class QPalette;

namespace saccade::ui {

enum class Theme { system, light, dark };

std::optional<Theme> themeFromName(const QString& name);
QString themeName(Theme theme);

/// Sets the application's style: the platform's, with buttons that are down in the colour of what is selected. Before there are widgets.
void useStyle();
/// Sets the application's palette. `system`: what the desktop gives; our light one where it gives none.
void applyTheme(Theme theme);

bool isDark(const QPalette& palette);
/// a at t = 0, b at t = 1.
QColor blend(const QColor& a, const QColor& b, double t);
/// Second-rank text: readable (4.5 : 1) on the window's ground, quieter than the first.
QColor quietText(const QPalette& palette);
QColor lineColour(const QPalette& palette);       ///< of frames and separators
QColor selectionColour(const QPalette& palette);  ///< pale ground of what is selected; text keeps its colour
QColor errorColour(const QPalette& palette);

/// A line icon of resources/icons, drawn in the palette's text colour of the moment.
QIcon themedIcon(const QString& name);

}  // namespace saccade::ui
