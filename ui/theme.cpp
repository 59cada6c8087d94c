#include "ui/theme.h"

#include <QApplication>
#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QProxyStyle>
#include <QStyle>
#include <QStyleOption>
#include <QSvgRenderer>
#include <cmath>

namespace saccade::ui {
namespace {

struct Ground {
  QRgb window, panel, line, ink, quiet, accent, on_accent;
};
constexpr Ground light_ground{0xfffbfbfa, 0xfff3f3f1, 0xffc9c9c4, 0xff22252a, 0xff666c74, 0xff0072b2, 0xffffffff};
constexpr Ground dark_ground{0xff1d1f22, 0xff2b2e33, 0xff4b5057, 0xffe6e7e8, 0xff9aa1a9, 0xff56b4e9, 0xff10161b};

QPalette palette_of(const Ground& g, bool dark) {
  QPalette p;
  p.setColor(QPalette::Window, g.window);
  p.setColor(QPalette::WindowText, g.ink);
  p.setColor(QPalette::Base, dark ? QColor(0x21, 0x24, 0x28) : QColor(Qt::white));
  p.setColor(QPalette::AlternateBase, g.panel);
  p.setColor(QPalette::Text, g.ink);
  p.setColor(QPalette::Button, g.panel);
  p.setColor(QPalette::ButtonText, g.ink);
  p.setColor(QPalette::BrightText, dark ? QColor(0xff, 0x8a, 0x7a) : QColor(0xb3, 0x26, 0x1e));
  p.setColor(QPalette::Highlight, g.accent);
  p.setColor(QPalette::HighlightedText, g.on_accent);
  p.setColor(QPalette::Link, g.accent);
  p.setColor(QPalette::LinkVisited, g.accent);
  p.setColor(QPalette::ToolTipBase, g.panel);
  p.setColor(QPalette::ToolTipText, g.ink);
  p.setColor(QPalette::PlaceholderText, g.quiet);
  p.setColor(QPalette::Light, dark ? QColor(0x3a, 0x3e, 0x44) : QColor(Qt::white));
  p.setColor(QPalette::Midlight, dark ? QColor(0x33, 0x37, 0x3c) : QColor(0xea, 0xea, 0xe7));
  p.setColor(QPalette::Mid, g.line);
  p.setColor(QPalette::Dark, dark ? QColor(0x15, 0x17, 0x19) : QColor(0xa8, 0xa8, 0xa2));
  p.setColor(QPalette::Shadow, dark ? QColor(Qt::black) : QColor(0x80, 0x80, 0x7a));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, blend(g.ink, g.window, 0.55));
  p.setColor(QPalette::Disabled, QPalette::Highlight, g.line);
  return p;
}

/// Draws its SVG when asked, so that the icon follows palette and scale.
class LineIcon : public QIconEngine {
 public:
  explicit LineIcon(QByteArray source) : source_(std::move(source)) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const QPalette palette = QApplication::palette();
    const auto group = mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active;
    QByteArray coloured = source_;
    coloured.replace("currentColor", palette.color(group, QPalette::WindowText).name().toLatin1());
    QSvgRenderer(coloured).render(painter, QRectF(rect));
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap pixmap(size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return pixmap;
  }
  QIconEngine* clone() const override { return new LineIcon(source_); }

 private:
  QByteArray source_;
};

/// The edge of what is filled in. On dark ground the style's own is darker still, and an empty box or line is not seen: this has 3 : 1.
void paint_edge(QPainter* painter, const QStyleOption& option) {
  if (!isDark(option.palette)) return;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  const double strength = option.state & QStyle::State_Enabled ? 0.45 : 0.2;
  painter->setPen(blend(option.palette.color(QPalette::Base), option.palette.color(QPalette::Text), strength));
  painter->setBrush(Qt::NoBrush);
  painter->drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
  painter->restore();
}

/// Shows which of several buttons is down on dark ground as on light, which of them open menus, and what is to be filled in.
class ClearButtons : public QProxyStyle {
 public:
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool focused = option->state & State_HasFocus;  // has an edge in the colour of what is selected, but for boxes
    if (element == PE_IndicatorCheckBox || (element == PE_FrameLineEdit && !focused)) paint_edge(painter, *option);
    const bool button = element == PE_PanelButtonTool || element == PE_PanelButtonCommand;
    if (!button || !(option->state & State_On)) return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(option->palette.color(QPalette::Highlight));
    painter->setBrush(selectionColour(option->palette));
    painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
    painter->restore();
  }

  /// The arrow of a button with a menu stands behind its text; in the corner it reads as a comma.
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override {
    const auto* button = control == CC_ToolButton ? qstyleoption_cast<const QStyleOptionToolButton*>(option) : nullptr;
    if (!button || !opens_menu(*button)) {
      QProxyStyle::drawComplexControl(control, option, painter, widget);
      if (control == CC_SpinBox && !(option->state & State_HasFocus)) paint_edge(painter, *option);
      return;
    }
    QStyleOptionToolButton frame(*button), label(*button), arrow(*button);
    frame.features &= ~QStyleOptionToolButton::HasMenu;
    frame.text.clear();
    frame.icon = {};
    QProxyStyle::drawComplexControl(control, &frame, painter, widget);
    label.features = frame.features;
    label.rect.adjust(0, 0, -kArrow, 0);
    drawControl(CE_ToolButtonLabel, &label, painter, widget);
    arrow.rect = QRect(button->rect.right() - kArrow, button->rect.center().y() - 3, 8, 8);
    drawPrimitive(PE_IndicatorArrowDown, &arrow, painter, widget);
  }
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size, const QWidget* widget) const override {
    const QSize whole = QProxyStyle::sizeFromContents(type, option, size, widget);
    const auto* button = type == CT_ToolButton ? qstyleoption_cast<const QStyleOptionToolButton*>(option) : nullptr;
    return button && opens_menu(*button) ? whole + QSize(kArrow, 0) : whole;
  }

 private:
  static constexpr int kArrow = 11;
  static bool opens_menu(const QStyleOptionToolButton& button) {
    return (button.features & QStyleOptionToolButton::HasMenu) && !(button.features & QStyleOptionToolButton::MenuButtonPopup) &&
           !button.text.isEmpty() && button.toolButtonStyle != Qt::ToolButtonIconOnly;
  }
};

}  // namespace

std::optional<Theme> themeFromName(const QString& name) {
  for (const Theme theme : {Theme::system, Theme::light, Theme::dark})
    if (themeName(theme) == name) return theme;
  return {};
}

QString themeName(Theme theme) {
  return theme == Theme::light ? QStringLiteral("light") : theme == Theme::dark ? QStringLiteral("dark") : QStringLiteral("system");
}

void useStyle() { QApplication::setStyle(new ClearButtons); }

void applyTheme(Theme theme) {
  static const QPalette desktop = QApplication::palette();
  const bool bare = desktop == QApplication::style()->standardPalette();  // no desktop has set one
  if (theme == Theme::system && !bare) return QApplication::setPalette(desktop);
  QApplication::setPalette(theme == Theme::dark ? palette_of(dark_ground, true) : palette_of(light_ground, false));
}

bool isDark(const QPalette& palette) { return palette.color(QPalette::Base).lightness() < 128; }

QColor blend(const QColor& a, const QColor& b, double t) {
  const auto mix = [t](int x, int y) { return static_cast<int>(std::lround(x + t * (y - x))); };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QColor quietText(const QPalette& palette) { return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.35); }

QColor lineColour(const QPalette& palette) { return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.83); }

QColor selectionColour(const QPalette& palette) {
  return blend(palette.color(QPalette::Base), palette.color(QPalette::Highlight), isDark(palette) ? 0.22 : 0.13);
}

QColor errorColour(const QPalette& palette) { return isDark(palette) ? QColor(0xff, 0x8a, 0x7a) : QColor(0xb3, 0x26, 0x1e); }

QIcon themedIcon(const QString& name) {
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  return file.open(QIODevice::ReadOnly) ? QIcon(new LineIcon(file.readAll())) : QIcon();
}

}  // namespace saccade::ui
