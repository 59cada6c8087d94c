#include "ui/inspect/token_text.h"

#include <QFontDatabase>
#include <QHash>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <cmath>
#include <utility>

#include "ui/charts/colours.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

namespace {

constexpr int kMargin = 4;

/// A token as the page shows it: control characters have a sign of their own, so that every token can be seen and clicked.
QString shown_piece(const QString& typed) {
  QString shown;
  for (const QChar c : typed) {
    if (c == QLatin1Char('\n'))
      shown += QChar(0x21B5);
    else if (c == QLatin1Char('\t'))
      shown += QChar(0x21E5);
    else if (c == QChar(0x2581))
      shown += QLatin1Char(' ');  // SentencePiece writes a space like this
    else if (!c.isPrint() && !c.isSurrogate() && c != QLatin1Char(' '))
      shown += QChar(0xB7);
    else
      shown += c;
  }
  return shown.isEmpty() ? QString(QChar(0xB7)) : shown;
}

bool dark(const QWidget& widget) { return widget.palette().color(QPalette::Base).lightness() < 128; }

}  // namespace

TokenText::TokenText(QWidget* parent) : QAbstractScrollArea(parent) {
  setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Tokens of the sample"));
  viewport()->setCursor(Qt::PointingHandCursor);
}

void TokenText::setPieces(const std::vector<std::string>& pieces) {
  clear();
  for (const std::string& piece : pieces) {
    const QString typed = QString::fromStdString(piece);
    tokens_.push_back({shown_piece(typed), QString(typed).replace(QChar(0x2581), QLatin1Char(' ')), {}});
  }
  measure();
  arrange();
}

void TokenText::setReads(int query, const Reads& reads) {
  const bool moved = query != query_;
  query_ = query;
  weights_ = reads.weights;
  largest_ = 0;
  for (const double w : weights_) largest_ = std::max(largest_, std::abs(w));
  chosen_.assign(tokens_.size(), false);
  for (const int64_t position : reads.chosen_positions)
    if (position >= 0 && position < static_cast<int64_t>(chosen_.size())) chosen_[static_cast<size_t>(position)] = true;
  setAccessibleDescription(summary());
  if (moved) showQuery();
  viewport()->update();
}

void TokenText::setKnown(std::vector<bool> known) {
  known_ = std::move(known);
  viewport()->update();
}

void TokenText::clear() {
  tokens_.clear();
  known_.clear();
  weights_.clear();
  chosen_.clear();
  query_ = -1;
  arrange();
}

QString TokenText::text(int64_t begin, int64_t end) const {
  QString joined;
  for (int64_t i = std::max<int64_t>(0, begin); i < std::min<int64_t>(end, static_cast<int64_t>(tokens_.size())); ++i)
    joined += tokens_[static_cast<size_t>(i)].typed;
  return joined;
}

QString TokenText::summary() const {
  if (query_ < 0 || query_ >= static_cast<int>(tokens_.size())) return {};
  size_t most = 0;
  for (size_t i = 0; i < weights_.size(); ++i)
    if (std::abs(weights_[i]) > std::abs(weights_[most])) most = i;
  if (weights_.empty()) return tr("Query %1.").arg(query_);
  return tr("Query %1 “%2” reads most from position %3 “%4”, weight %5.")
      .arg(query_)
      .arg(tokens_[static_cast<size_t>(query_)].typed)
      .arg(most)
      .arg(tokens_[most].typed, short_number(weights_[most]));
}

QSize TokenText::sizeHint() const { return {600, 7 * fontMetrics().lineSpacing()}; }

/// Long texts have few different tokens, and measuring is what takes time.
void TokenText::measure() {
  const QFontMetricsF metrics(font());
  QHash<QString, double> known;
  for (Token& token : tokens_) {
    auto found = known.constFind(token.shown);
    if (found == known.constEnd()) found = known.insert(token.shown, metrics.horizontalAdvance(token.shown));
    token.advance = *found;
  }
}

/// Places tokens line by line: words stay whole where they fit, and a line break in the text is one here.
void TokenText::arrange() {
  const QFontMetricsF metrics(font());
  const double width = viewport()->width() - 2 * kMargin, line = 1.35 * metrics.height();
  double x = 0, y = kMargin;
  for (size_t i = 0; i < tokens_.size();) {
    size_t end = i;  // tokens up to the next space or line break stay together
    double word = 0;
    do {
      word += tokens_[end].advance;
      ++end;
    } while (end < tokens_.size() && !tokens_[end].typed.startsWith(QLatin1Char(' ')) && !tokens_[end].typed.contains(QLatin1Char('\n')) &&
             !tokens_[end - 1].typed.contains(QLatin1Char('\n')) && end - i < 64);
    if (x > 0 && x + word > width && word <= width) x = 0, y += line;
    for (; i < end; ++i) {
      const double advance = tokens_[i].advance;
      if (x > 0 && x + advance > width) x = 0, y += line;
      tokens_[i].box = QRectF(kMargin + x, y, advance, 1.25 * metrics.height());
      x += advance;
      if (tokens_[i].typed.contains(QLatin1Char('\n'))) x = 0, y += line;
    }
  }
  const int height = static_cast<int>(y + line + kMargin);
  verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(static_cast<int>(line));
  viewport()->update();
  if (std::exchange(text_height_, height) != height) Q_EMIT textHeightChanged();
}

void TokenText::showQuery() {
  if (query_ < 0 || query_ >= static_cast<int>(tokens_.size())) return;
  const QRectF& box = tokens_[static_cast<size_t>(query_)].box;
  QScrollBar* bar = verticalScrollBar();
  if (box.top() < bar->value() + box.height()) bar->setValue(static_cast<int>(box.top() - 2 * box.height()));
  if (box.bottom() > bar->value() + viewport()->height() - box.height())
    bar->setValue(static_cast<int>(box.bottom() - viewport()->height() + box.height()));
}

/// Strength by the square root of the share, so that small weights are still seen beside a large one.
QColor TokenText::shade(size_t token) const {
  if (token >= weights_.size() || !(largest_ > 0) || weights_[token] == 0) return {};
  QColor colour = weights_[token] > 0 ? FigureColours::of(dark(*this)).accent : QColor(0x00, 0x72, 0xB2);
  colour.setAlphaF(static_cast<float>(0.75 * std::sqrt(std::abs(weights_[token]) / largest_)));
  return colour;
}

void TokenText::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.setFont(font());
  const QFontMetricsF metrics(font());
  const int top = verticalScrollBar()->value();
  painter.translate(0, -top);
  const QColor text = palette().color(QPalette::Text), quiet = palette().color(QPalette::PlaceholderText);
  const QColor chosen = seen_colour({0x00, 0x72, 0xB2}, dark(*this)), known = seen_colour({0x00, 0x9E, 0x73}, dark(*this));
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.box.bottom() < top || token.box.top() > top + viewport()->height()) continue;
    if (const QColor ground = shade(i); ground.isValid()) painter.fillRect(token.box, ground);
    if (i < chosen_.size() && chosen_[i]) painter.fillRect(QRectF(token.box.left(), token.box.bottom() - 2, token.box.width(), 2), chosen);
    if (i < known_.size() && known_[i]) painter.fillRect(QRectF(token.box.left(), token.box.top(), token.box.width(), 2), known);
    painter.setPen(static_cast<int>(i) > query_ && query_ >= 0 ? quiet : text);
    painter.drawText(QPointF(token.box.left(), token.box.top() + metrics.ascent() + 0.08 * metrics.height()), token.shown);
  }
  if (query_ >= 0 && query_ < static_cast<int>(tokens_.size())) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(text, 1.6));
    painter.drawRoundedRect(tokens_[static_cast<size_t>(query_)].box.adjusted(-1, -0.5, 1, 0.5), 2, 2);
  }
  if (hasFocus()) {
    painter.resetTransform();
    painter.setPen(palette().color(QPalette::Highlight));
    painter.drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
  }
}

void TokenText::resizeEvent(QResizeEvent*) {
  arrange();
  showQuery();
}

void TokenText::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() != QEvent::FontChange) return;
  measure();
  arrange();
}

std::optional<int> TokenText::tokenAt(const QPointF& viewport_position) const {
  const QPointF at = viewport_position + QPointF(0, verticalScrollBar()->value());
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (tokens_[i].box.contains(at)) return static_cast<int>(i);
  return {};
}

void TokenText::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const auto token = tokenAt(event->position())) Q_EMIT queryClicked(*token);
}

bool TokenText::viewportEvent(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QAbstractScrollArea::viewportEvent(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto token = tokenAt(help->pos());
  if (!token) {
    QToolTip::hideText();
    return true;
  }
  QString text = tr("position %1").arg(*token);
  if (static_cast<size_t>(*token) < weights_.size()) text += tr(", weight %1").arg(short_number(weights_[static_cast<size_t>(*token)]));
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace saccade::ui
