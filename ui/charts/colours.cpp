#include "ui/charts/colours.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace saccade::ui {

namespace {

constexpr int kSteps = 255;

// Sixteen support points of viridis (Smith and van der Walt 2015), evenly spaced; linear between them in sRGB.
constexpr std::array<QRgb, 16> kViridis{0xff440154, 0xff481a6c, 0xff472f7d, 0xff414487, 0xff39568c, 0xff31688e, 0xff2a788e, 0xff23888e,
                                        0xff1f988b, 0xff22a884, 0xff35b779, 0xff54c568, 0xff7ad151, 0xffa5db36, 0xffd2e21b, 0xfffde725};
// Nine each of cividis (Nuñez, Anderton, Renslow 2018) and magma (Smith and van der Walt 2015).
constexpr std::array<QRgb, 9> kCividis{0xff00224e, 0xff1a386f, 0xff434e6c, 0xff61646f, 0xff7d7c78,
                                       0xff9b9476, 0xffbcae6c, 0xffdfc958, 0xfffee838};
constexpr std::array<QRgb, 9> kMagma{0xff000004, 0xff1d1147, 0xff51127c, 0xff822681, 0xffb73779,
                                     0xffe75263, 0xfffc8961, 0xfffec488, 0xfffcfdbf};
constexpr std::array<QRgb, 2> kGrey{0xff101010, 0xfff4f4f4};
// Blue – white – red (ColorBrewer RdBu, reversed): equal lightness at equal distance from the centre.
constexpr std::array<QRgb, 11> kDiverging{0xff053061, 0xff2166ac, 0xff4393c3, 0xff92c5de, 0xffd1e5f0, 0xfff7f7f7,
                                          0xfffddbc7, 0xfff4a582, 0xffd6604d, 0xffb2182b, 0xff67001f};

template <size_t N>
QList<QRgb> interpolated(const std::array<QRgb, N>& points) {
  QList<QRgb> map;
  for (int i = 0; i < kSteps; ++i) {
    const double t = static_cast<double>(i) * (N - 1) / (kSteps - 1);
    const size_t k = std::min(static_cast<size_t>(t), N - 2);
    const double f = t - static_cast<double>(k);
    const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + f * (b - a))); };
    map.append(qRgb(mix(qRed(points[k]), qRed(points[k + 1])), mix(qGreen(points[k]), qGreen(points[k + 1])),
                    mix(qBlue(points[k]), qBlue(points[k + 1]))));
  }
  return map;
}

double luminance(const QColor& c) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

}  // namespace

double contrast(const QColor& a, const QColor& b) {
  const double high = std::max(luminance(a), luminance(b)), low = std::min(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

FigureColours FigureColours::of(bool dark) {
  if (dark)
    return {QColor(0x20, 0x22, 0x25), QColor(0xe4, 0xe4, 0xe4), QColor(0xa8, 0xab, 0xae),
            QColor(0x76, 0x79, 0x7c), QColor(0x38, 0x3b, 0x3f), QColor(0xff, 0x8c, 0x3a)};
  return {Qt::white,
          QColor(0x1c, 0x1c, 0x1c),
          QColor(0x5f, 0x63, 0x66),
          QColor(0x8a, 0x8d, 0x90),
          QColor(0xe4, 0xe6, 0xe8),
          QColor(0xd5, 0x5e, 0x00)};
}

/// On a dark ground greys are turned over, black to nearly white; dark colours move up into the range that can be seen, in their order.
QColor seen_colour(const Colour& colour, bool dark) {
  constexpr float kUpTo = 0.62f;
  QColor seen(colour.r, colour.g, colour.b);
  if (!dark) return seen;
  const QColor ground = FigureColours::of(true).ground;
  float h, s, l;
  seen.getHslF(&h, &s, &l);
  if (s < 0.05f) return QColor::fromHslF(0, 0, 0.93f - 0.45f * l);
  if (l >= kUpTo) return seen;
  float least = 0;
  while (contrast(QColor::fromHslF(h, s, least), ground) < 3.1 && least < 0.95f) least += 0.02f;
  if (least < kUpTo) l = least + l * (kUpTo - least) / kUpTo;
  return QColor::fromHslF(h, s, std::max(l, least));
}

const QList<QRgb>& colour_map(bool diverging, const std::string& name) {
  static const QList<QRgb> viridis = interpolated(kViridis), cividis = interpolated(kCividis), magma = interpolated(kMagma),
                           grey = interpolated(kGrey), centred = interpolated(kDiverging);
  if (diverging) return centred;
  return name == "cividis" ? cividis : name == "magma" ? magma : name == "grey" ? grey : viridis;
}

}  // namespace saccade::ui
