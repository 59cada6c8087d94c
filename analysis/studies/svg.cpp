#include "analysis/studies/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/comparison/tuning.h"

namespace saccade {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 70, kRight = 20, kTop = 20, kBottom = 50, kLine = 18;  // pixels

std::string format(const char* pattern, double a) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, a);
  return text.data();
}
std::string px(double value) { return format("%.1f", value); }

std::string colour_of(const Colour& c) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", c.r, c.g, c.b);
  return text.data();
}

/// Where values stand on an axis of so many pixels.
class Scale {
 public:
  Scale(const Figure& figure, bool horizontal) : recipe_(horizontal ? figure.x : figure.y), horizontal_(horizontal) {
    bool any = false;
    for (const Curve& curve : figure.curves)
      for (const double v : horizontal ? curve.x : curve.y) {
        if (!fits(v)) continue;
        low_ = any ? std::min(low_, at(v)) : at(v), high_ = any ? std::max(high_, at(v)) : at(v);
        any = true;
      }
    if (recipe_.range) low_ = at((*recipe_.range)[0]), high_ = at((*recipe_.range)[1]);
    const double margin = high_ > low_ ? 0.04 * (high_ - low_) : std::max(1e-9, 0.05 * std::abs(low_));
    low_ -= margin, high_ += margin;
  }

  bool fits(double v) const { return std::isfinite(v) && (!recipe_.logarithmic || v > 0); }
  double pixel(double v) const {
    double share = (at(v) - low_) / (high_ - low_);
    if (recipe_.reversed) share = 1 - share;
    return horizontal_ ? kLeft + share * (kWidth - kLeft - kRight) : kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  /// Round values: 1, 2, 5 times a power of ten; on a logarithmic axis of less than a decade the same of its values.
  std::vector<double> ticks() const {
    std::vector<double> list;
    const double from = recipe_.logarithmic ? std::pow(10, low_) : low_, to = recipe_.logarithmic ? std::pow(10, high_) : high_;
    if (recipe_.logarithmic && high_ - low_ >= 1) {
      for (double e = std::floor(low_); e <= high_; ++e)
        for (const double m : {1.0, 2.0, 5.0})
          if (const double v = m * std::pow(10, e); v >= from && v <= to && (m == 1 || high_ - low_ < 3)) list.push_back(v);
      return list;
    }
    const double raw = (to - from) / 5, unit = std::pow(10, std::floor(std::log10(raw)));
    const double step = raw / unit < 1.5 ? unit : raw / unit < 3.5 ? 2 * unit : raw / unit < 7.5 ? 5 * unit : 10 * unit;
    for (double v = std::ceil(from / step) * step; v <= to; v += step) list.push_back(std::abs(v) < step / 1e6 ? 0 : v);
    return list;
  }
  std::array<double, 2> ends() const {
    if (recipe_.logarithmic) return {std::pow(10, low_), std::pow(10, high_)};
    return {low_, high_};
  }

 private:
  double at(double v) const { return recipe_.logarithmic ? std::log10(v) : v; }
  AxisRecipe recipe_;
  bool horizontal_;
  double low_ = 0, high_ = 1;
};

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) + "\" " + style + "/>\n";
}

std::string text_at(double x, double y, const std::string& anchor, const std::string& text, const std::string& more = "") {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" + escaped_markup(text) + "</text>\n";
}

std::string axes(const Figure& figure, const Scale& x, const Scale& y) {
  std::string svg;
  for (const double v : x.ticks()) {
    svg += line(x.pixel(v), kTop, x.pixel(v), kHeight - kBottom, "stroke=\"#ddd\"");
    svg += text_at(x.pixel(v), kHeight - kBottom + 16, "middle", format("%.6g", v));
  }
  for (const double v : y.ticks()) {
    svg += line(kLeft, y.pixel(v), kWidth - kRight, y.pixel(v), "stroke=\"#ddd\"");
    svg += text_at(kLeft - 6, y.pixel(v) + 4, "end", format("%.6g", v));
  }
  svg += "<rect x=\"" + px(kLeft) + "\" y=\"" + px(kTop) + "\" width=\"" + px(kWidth - kLeft - kRight) + "\" height=\"" +
         px(kHeight - kTop - kBottom) + "\" fill=\"none\" stroke=\"#444\"/>\n";
  svg += text_at(kLeft + (kWidth - kLeft - kRight) / 2, kHeight - 10, "middle", figure.x.title);
  const double middle = kTop + (kHeight - kTop - kBottom) / 2;
  return svg + text_at(0, 0, "middle", figure.y.title, " transform=\"translate(16 " + px(middle) + ") rotate(-90)\"");
}

std::string marker(Marker kind, double x, double y, const std::string& fill) {
  const auto polygon = [&](std::initializer_list<std::array<double, 2>> points) {
    std::string list;
    for (const auto& p : points) list += px(x + p[0]) + "," + px(y + p[1]) + " ";
    return "<polygon points=\"" + list + "\" " + fill + "/>\n";
  };
  switch (kind) {
    case Marker::none: return "";
    case Marker::square: return polygon({{-3, -3}, {3, -3}, {3, 3}, {-3, 3}});
    case Marker::triangle: return polygon({{0, -4}, {4, 3}, {-4, 3}});
    case Marker::wedge: return polygon({{0, 4}, {4, -3}, {-4, -3}});
    case Marker::diamond: return polygon({{0, -4}, {4, 0}, {0, 4}, {-4, 0}});
    case Marker::cross:
      return polygon({{-4, -1}, {-1, -1}, {-1, -4}, {1, -4}, {1, -1}, {4, -1}, {4, 1}, {1, 1}, {1, 4}, {-1, 4}, {-1, 1}, {-4, 1}});
    case Marker::circle: return "<circle cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"3.2\" " + fill + "/>\n";
  }
  return "";
}

std::string stroke_of(const Curve& curve) {
  std::string style = "fill=\"none\" stroke=\"" + colour_of(curve.colour) + "\" stroke-width=\"" + px(curve.width) + "\"";
  if (curve.dash == Dash::dash) style += " stroke-dasharray=\"6 4\"";
  if (curve.dash == Dash::dot) style += " stroke-dasharray=\"2 3\"";
  if (curve.dash == Dash::dash_dot) style += " stroke-dasharray=\"6 3 2 3\"";
  return style;
}

std::string drawn(const Curve& curve, const Scale& x, const Scale& y) {
  std::string path, markers;
  bool pen = false;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    const bool there = x.fits(curve.x[i]) && y.fits(curve.y[i]);
    if (there) {
      path += (pen ? "L" : "M") + px(x.pixel(curve.x[i])) + " " + px(y.pixel(curve.y[i])) + " ";
      markers += marker(curve.marker, x.pixel(curve.x[i]), y.pixel(curve.y[i]), "fill=\"" + colour_of(curve.colour) + "\"");
    }
    pen = there;
  }
  return "<path d=\"" + path + "\" " + stroke_of(curve) + "/>\n" + markers;
}

std::string legend(const std::vector<const Curve*>& curves) {
  std::string svg;
  for (size_t i = 0; i < curves.size(); ++i) {
    const double y = kHeight + kLine * (static_cast<double>(i) + 0.5);
    svg += line(kLeft, y, kLeft + 26, y, stroke_of(*curves[i]));
    svg += marker(curves[i]->marker, kLeft + 13, y, "fill=\"" + colour_of(curves[i]->colour) + "\"");
    svg += text_at(kLeft + 34, y + 4, "start", curves[i]->label);
  }
  return svg;
}

}  // namespace

std::string escaped_markup(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string to_svg(const Figure& figure) {
  const Scale x(figure, true), y(figure, false);
  std::vector<const Curve*> named;
  for (const Curve& curve : figure.curves)
    if (curve.in_legend) named.push_back(&curve);
  const double height = kHeight + kLine * static_cast<double>(named.size()) + 6;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + px(kWidth) + " " + px(height) + "\" width=\"" +
                    px(kWidth) + "\" height=\"" + px(height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n<title>" +
                    escaped_markup(figure.title) + "</title>\n<desc>";
  for (const std::string& note : figure.provenance) svg += escaped_markup(note) + "\n";
  svg += "</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + axes(figure, x, y);
  if (figure.identity_line) {
    const double from = std::max(x.ends()[0], y.ends()[0]), to = std::min(x.ends()[1], y.ends()[1]);
    if (from < to) svg += line(x.pixel(from), y.pixel(from), x.pixel(to), y.pixel(to), "stroke=\"#999\" stroke-dasharray=\"4 4\"");
  }
  for (const Curve& curve : figure.curves) svg += drawn(curve, x, y);
  return svg + legend(named) + "</svg>\n";
}

}  // namespace saccade
