#include "ui/charts/curve_layer.h"

#include <QApplication>
#include <QPainter>
#include <QPointer>
#include <QThread>
#include <QThreadPool>
#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "ui/charts/colours.h"
#include "ui/threads/hand_over.h"
#include "ui/threads/step_back.h"

namespace saccade::ui {
namespace {

constexpr size_t kQuickPoints = 6000;  // drawn in about a millisecond,
constexpr size_t kQuickCurves = 12;    // unless they are many
constexpr size_t kBandPoints = 4;      // what a point of a band takes, in points: a polygon is filled there
constexpr size_t kMostApart = 8;       // curves drawn over the others again and again

QThreadPool& pool() {
  static QThreadPool threads;
  static const bool set = (threads.setMaxThreadCount(std::clamp(QThread::idealThreadCount() - 1, 1, 4)), true);
  Q_UNUSED(set)
  return threads;
}

bool same_plane(const Plane& a, const Plane& b) { return a.area == b.area && a.x == b.x && a.y == b.y; }

bool quick(const CurveLayer::Job& job) {
  if (job.figure->curves.size() > kQuickCurves) return false;
  size_t points = 0;
  for (const auto& curve : job.figure->curves)
    points += std::min(curve->size(), static_cast<size_t>(4 * job.size.width())) * (curve->curve().low.empty() ? 1 : 1 + kBandPoints);
  return points <= kQuickPoints;
}

QImage blank(const CurveLayer::Job& job) {
  QImage image(job.size, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(job.ratio);
  image.fill(Qt::transparent);
  return image;
}

void draw_curves(QImage& image, const PreparedCurves& curves, const CurveLayer::Job& job) {
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  const auto colour = [&](const auto& curve) { return seen_colour(curve->curve().colour, job.dark); };
  for (const auto& curve : curves) paint_band(painter, *curve, job.plane, colour(curve), job.unit, 1 / job.ratio);
  for (const auto& curve : curves) paint_curve(painter, *curve, job.plane, colour(curve), job.unit, 1 / job.ratio);
  for (const auto& curve : curves) paint_markers(painter, *curve, job.plane, colour(curve), job.ground, job.unit);
}

}  // namespace

struct CurveLayer::Picture {
  Job job;
  QImage image;
  QImage base;  ///< with the curves in `based` alone
  PreparedCurves based;
};

CurveLayer::CurveLayer(QObject* parent) : QObject(parent), alive_(std::make_shared<std::atomic<bool>>(true)) {}
CurveLayer::~CurveLayer() {
  *alive_ = false;
  if (running_) wait_for(pool());  // a painter at work must not outlive the application
}

std::shared_ptr<const CurveLayer::Picture> CurveLayer::draw(const Job& job, const std::shared_ptr<const Picture>& last) {
  auto picture = std::make_shared<Picture>();
  picture->job = job;
  const PreparedCurves& curves = job.figure->curves;
  const bool same_place = last && same_plane(last->job.plane, job.plane) && last->job.size == job.size && last->job.dark == job.dark &&
                          last->job.ratio == job.ratio;
  const auto set_of = [](const PreparedCurves& all) {
    std::unordered_set<const PreparedCurve*> set;
    for (const auto& curve : all) set.insert(curve.get());
    return set;
  };
  const auto here = set_of(curves);
  if (same_place && std::all_of(last->based.begin(), last->based.end(), [&](const auto& curve) { return here.contains(curve.get()); }) &&
      curves.size() - last->based.size() <= kMostApart) {
    picture->base = last->base;
    picture->based = last->based;
  } else {
    const auto before = same_place ? set_of(last->job.figure->curves) : std::unordered_set<const PreparedCurve*>();
    for (const auto& curve : curves)
      if (before.contains(curve.get())) picture->based.push_back(curve);
    if (curves.size() - picture->based.size() > kMostApart) picture->based = curves;
    picture->base = blank(job);
    draw_curves(picture->base, picture->based, job);
  }
  const auto drawn = set_of(picture->based);
  PreparedCurves rest;
  for (const auto& curve : curves)
    if (!drawn.contains(curve.get())) rest.push_back(curve);
  picture->image = picture->base;
  if (!rest.empty()) draw_curves(picture->image, rest, job);
  return picture;
}

void CurveLayer::show(const Job& job) {
  if (picture_ && picture_->job.figure == job.figure && same_plane(picture_->job.plane, job.plane) && picture_->job.size == job.size &&
      picture_->job.dark == job.dark)
    return;
  if (quick(job)) {
    waiting_.reset();
    ++generation_;
    picture_ = draw(job, picture_);
    return;
  }
  waiting_ = job;
  start();
}

void CurveLayer::start() {
  if (running_ || !waiting_) return;
  running_ = true;
  start_in(pool(), [this, alive = alive_, job = *std::exchange(waiting_, {}), last = picture_, generation = generation_] {
    if (!*alive) return;
    step_back();
    const auto picture = draw(job, last);
    hand_over(qApp, [this, alive, picture, generation] {
      if (!*alive) return;
      running_ = false;
      if (generation == generation_) picture_ = picture;
      Q_EMIT ready();
      start();
    });
  });
}

void CurveLayer::clear() {
  ++generation_;
  waiting_.reset();
  picture_.reset();
}

void CurveLayer::paint(QPainter& painter, const Plane& plane) const {
  if (!picture_) return;
  const Plane& from = picture_->job.plane;
  if (same_plane(from, plane)) return painter.drawImage(QPointF(), picture_->image);
  if (!from.x.same_kind(plane.x) || !from.y.same_kind(plane.y)) return;
  const QPointF a = plane.to(from.x.at(0), from.y.at(0)), b = plane.to(from.x.at(1), from.y.at(1));
  const QRectF target(QPointF(a.x(), b.y()), QPointF(b.x(), a.y())), seen = target.intersected(plane.area);
  if (!(target.width() > 0 && target.height() > 0) || seen.isEmpty()) return;
  // Only the part that is seen, or a deep zoom would scale a large picture.
  const double sx = from.area.width() / target.width() * picture_->job.ratio,
               sy = from.area.height() / target.height() * picture_->job.ratio;
  const QRectF source(from.area.left() * picture_->job.ratio + (seen.left() - target.left()) * sx,
                      from.area.top() * picture_->job.ratio + (seen.top() - target.top()) * sy, seen.width() * sx, seen.height() * sy);
  painter.drawImage(seen, picture_->image, source);
}

}  // namespace saccade::ui
