#include "ui/inspect/large_map_view.h"

#include <cmath>

#include "analysis/probes/capture_maps.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/map_painter.h"
#include "ui/charts/prepared_figure.h"

namespace saccade::ui {

namespace {

constexpr int64_t kAtOnce = int64_t{1} << 17;  // cells that are made ready in a few milliseconds
constexpr int64_t kOverview = 1024, kRows = 16;
constexpr int kRest = 40;  // ms

}  // namespace

LargeMapView::LargeMapView(FigureView* view, QObject* parent)
    : QObject(parent),
      view_(view),
      job_(this, [this](const Made& made) { take(made); }),
      parts_(this,
             [this](const Part& part) {
               if (part.request != request_ || !view_->zoomed()) return;
               if (part.figure) look(part.figure);
             }),
      reading_(this, [this](Rows rows) {
        if (rows.request != request_) return;
        if (!rows.problem.isEmpty()) Q_EMIT failed(rows.problem);
        rows_ = std::move(rows);
        view_->tellAgain();
      }) {
  rest_.setSingleShot(true);
  rest_.setInterval(kRest);
  connect(&rest_, &QTimer::timeout, this, &LargeMapView::lookCloser);
  for (const auto signal : {&FigureView::looked, &FigureView::resized})
    connect(view, signal, this, [this] {
      if (made_.pyramid && !rest_.isActive()) rest_.start();
    });
}

LargeMapView::~LargeMapView() { *latest_ = -1; }

void LargeMapView::clear() {
  *latest_ = ++request_;
  made_ = {};
  rows_ = {};
}

MapSource LargeMapView::Wanted::source() const {
  MapSource source{{captures, &captures->samples[sample]}, place};
  if (minus) source.minus = {minus, &minus->samples[minus_sample]}, source.minus_place = minus_place;
  return source;
}

bool LargeMapView::Wanted::same_map(const Wanted& other) const {
  return captures == other.captures && sample == other.sample && place == other.place && minus == other.minus &&
         minus_sample == other.minus_sample && minus_place == other.minus_place;
}

LargeMapView::Made LargeMapView::make(int request, const Wanted& wanted, const Made& before, const std::function<bool()>& cancelled) try {
  Made made{request, nullptr, nullptr, wanted, {}};
  const MapSource source = wanted.source();
  Figure figure;
  if (!is_read_by_rows(source.place.kind) || cells_of(*source.capture, source.place) <= kMostCells) {
    figure = whole_figure(source);
  } else {
    made.pyramid = before.pyramid && before.wanted.same_map(wanted) ? before.pyramid : pyramid_of(source, cancelled);
    if (!made.pyramid->complete()) return {};
    figure = pyramid_figure(source, *made.pyramid, kOverview);
  }
  made.figure = prepare_figure(wanted.finish ? wanted.finish(std::move(figure)) : std::move(figure));
  return made;
} catch (const std::exception& error) {
  return {request, nullptr, nullptr, wanted, QString::fromUtf8(error.what())};
}

void LargeMapView::show(Wanted wanted) {
  const int request = ++request_;
  *latest_ = request;
  if (cells_of(wanted.captures->samples[wanted.sample], wanted.place) <= kAtOnce) {
    if (job_.busy()) job_.ask([] { return Made{}; }, true);  // in place of what waits
    return take(make(request, wanted, {}, {}));
  }
  job_.ask([wanted = std::move(wanted), before = made_, request,
            latest = latest_] { return make(request, wanted, before, [&] { return *latest != request; }); },
           true);
}

void LargeMapView::take(const Made& made) {
  if (made.request != request_) return;
  if (!made.problem.isEmpty()) return Q_EMIT failed(made.problem);
  if (!made.figure) return;  // cancelled
  made_ = made;
  rows_ = {};
  detail_.reset();
  view_->setPrepared(made_.figure);
  Q_EMIT shown();
  lookCloser();
}

void LargeMapView::look(std::shared_ptr<const PreparedFigure> detail) {
  detail_ = std::move(detail);
  view_->setDetail(detail_);
  Q_EMIT shown();
}

std::array<int64_t, 2> LargeMapView::block() const {
  if (!made_.figure) return {1, 1};
  return (detail_ ? detail_ : made_.figure)->figure.map->block;
}

/// At the part that is seen and a quarter more on every side, where the picture of the whole is too coarse for it.
void LargeMapView::lookCloser() {
  if (!made_.pyramid) return;
  const auto x = view_->part(), y = view_->rowPart();
  if (!x && !y) return look({});
  const auto reach = [](const std::optional<std::array<double, 2>>& part, int64_t cells) {
    const auto all = static_cast<double>(cells);
    const auto [low, high] = part.value_or(std::array<double, 2>{0, all});
    const double more = (high - low) / 4;
    return std::array<int64_t, 2>{static_cast<int64_t>(std::max(0.0, std::floor(low - more))),
                                  static_cast<int64_t>(std::min(all, std::ceil(high + more)))};
  };
  const auto columns = reach(x, made_.pyramid->columns()), rows = reach(y, made_.pyramid->rows());
  const double ratio = 1.5 * view_->devicePixelRatioF();  // blocks and a quarter more on either side
  const auto most = [&](int pixels) { return std::max<int64_t>(16, std::lround(pixels * ratio)); };
  parts_.ask(
      [pyramid = made_.pyramid, whole = made_.figure, part = MapPyramid::Part{rows[0], rows[1], columns[0], columns[1]},
       high = most(view_->height()), wide = most(view_->width()), request = request_] {
        try {
          HeatMap map = pyramid->part(part, high, wide);
          if (map.block[0] >= whole->figure.map->block[0]) return Part{};
          return Part{request, prepare_figure(part_figure(whole->figure, std::move(map)))};
        } catch (const std::exception&) {
          return Part{};  // the file has gone; the whole is still there
        }
      },
      true);
}

QString LargeMapView::words(int64_t row, int64_t column) {
  if (!made_.figure) return {};
  const std::optional<float> number = value(row, column);
  const QString shown = !number ? tr("…") : std::isnan(*number) ? tr("none") : QString::number(static_cast<double>(*number), 'g', 6);
  return QString::fromStdString(made_.figure->figure.map->value_title) + QLatin1Char(' ') + shown;
}

std::optional<float> LargeMapView::value(int64_t row, int64_t column) {
  if (!made_.pyramid) return made_.figure ? std::optional(value_at(*made_.figure->figure.map, row, column)) : std::nullopt;
  if (row >= rows_.first && rows_.columns > 0 && (row - rows_.first + 1) * rows_.columns <= static_cast<int64_t>(rows_.values.size()))
    return rows_.values[static_cast<size_t>((row - rows_.first) * rows_.columns + column)];
  if (rows_.problem.isEmpty())
    reading_.ask(
        [source = made_.wanted.source(), first = row / kRows * kRows, all = made_.pyramid->rows(), columns = made_.pyramid->columns(),
         request = request_] {
          try {
            return Rows{request, first, columns, rows_of(source, first, std::min(kRows, all - first)), {}};
          } catch (const std::exception& error) {
            return Rows{request, 0, 0, {}, QString::fromUtf8(error.what())};
          }
        },
        true);
  return {};
}

}  // namespace saccade::ui
