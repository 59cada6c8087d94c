#pragma once
#include <QDir>
#include <QLabel>
#include <QLayout>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/analysis/fixture.h"
#include "ui/charts/figure_view.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"

namespace saccade::test {

/// A folder of made-up runs, and one page of the window on it or on what lies `below` it; `more` may add others. With SACCADE_SHOTS set,
/// pictures go to that folder.
class PageOnRuns {
 public:
  explicit PageOnRuns(const QString& id, const std::vector<FixtureOptions>& runs, const QSize& size = {1100, 720},
                      const std::function<void(const QString& folder)>& more = {}, const QString& below = {}) {
    for (const FixtureOptions& options : runs) write_fixture(directory(options).toStdString(), options);
    if (more) more(folder_.path());
    session_ = std::make_unique<ui::Session>(QDir::cleanPath(folder_.filePath(below)));
    QSignalSpy loaded(session_->runs(), &ui::RunList::loaded);
    if (session_->runs()->loading()) loaded.wait();
    const ui::RunList& list = *session_->runs();
    if (!QTest::qWaitFor([&] { return list.unread() == 0 && list.shown()->runs().size() == list.runs().size(); }, 20000))
      qFatal("the runs were not read");
    for (const ui::Page& page : ui::pages())
      if (page.id == id) widget_.reset(page.make(*session_, nullptr));
    widget_->resize(size);
    widget_->show();
  }
  QString directory(const FixtureOptions& options) const {
    return folder_.filePath(QString("%1-%2").arg(QString::fromStdString(options.mixer)).arg(options.seed));
  }
  ui::Session& session() { return *session_; }
  QWidget& widget() { return *widget_; }
  template <class T>
  T* child(const QString& accessible_name) {
    for (T* each : widget_->findChildren<T*>())
      if (each->accessibleName() == accessible_name) return each;
    return nullptr;
  }
  /// Titles of cards, and what stands beside them, that cannot be read whole; a line each.
  QString cut() {
    QStringList texts;
    for (const ui::Card* card : widget_->findChildren<ui::Card*>())
      for (const QLabel* label : card->findChildren<QLabel*>(QString(), Qt::FindDirectChildrenOnly))
        if (label->isVisible() && label->width() < label->fontMetrics().horizontalAdvance(label->text()) &&
            label->height() <
                label->fontMetrics().boundingRect(QRect(0, 0, label->width(), 9999), Qt::TextWordWrap, label->text()).height())
          texts << label->text();
    return texts.join(QLatin1Char('\n'));
  }
  /// Parts of the page that lie over each other, or reach out of what they stand in without a bar to scroll; a line each.
  QString overlapping() {
    QCoreApplication::processEvents();
    QStringList texts;
    const auto name = [](const QWidget* part) {
      const QRect r = part->geometry();
      return QString("%1 “%2” %3 %4 %5 x %6")
          .arg(part->metaObject()->className(), part->accessibleName())
          .arg(r.x())
          .arg(r.y())
          .arg(r.width())
          .arg(r.height());
    };
    const auto look = [&](const QWidget* whole, const auto& inner) -> void {
      QList<const QWidget*> parts;
      for (const QWidget* part : whole->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
        if (part->isVisible() && !part->isWindow()) parts << part;
      for (qsizetype i = 0; i < parts.size(); ++i) {
        if (whole->layout()) {
          if (!whole->rect().contains(parts[i]->geometry())) texts << name(parts[i]) + " reaches out of " + name(whole);
          for (qsizetype k = 0; k < i; ++k)
            if (parts[k]->geometry().intersects(parts[i]->geometry())) texts << name(parts[i]) + " lies over " + name(parts[k]);
        }
        inner(parts[i], inner);
      }
    };
    look(widget_.get(), look);
    return texts.join(QLatin1Char('\n'));
  }
  /// Mean lightness of the page, 0 to 255, and how many different colours it is painted in.
  struct Look {
    double lightness = 0;
    qsizetype colours = 0;
  };
  Look look() {
    QCoreApplication::processEvents();
    const QImage picture = widget_->grab().toImage().convertToFormat(QImage::Format_RGB32);
    QSet<QRgb> colours;
    double sum = 0;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x) {
        colours.insert(picture.pixel(x, y));
        sum += qGray(picture.pixel(x, y));
      }
    return {sum / (static_cast<double>(picture.width()) * picture.height()), colours.size()};
  }
  void shoot(const QString& name) {
    QCoreApplication::processEvents();
    if (const QString folder = qEnvironmentVariable("SACCADE_SHOTS"); !folder.isEmpty())
      widget_->grab().save(QDir(folder).filePath(name + ".png"));
  }

 private:
  QTemporaryDir folder_;
  std::unique_ptr<ui::Session> session_;
  std::unique_ptr<QWidget> widget_;
};

inline std::vector<FixtureOptions> three_architectures() {
  FixtureOptions attention, chunk, avey, second;
  chunk.mixer = "top1_chunk", chunk.offset = 0.1;
  avey.mixer = "avey", avey.offset = 0.2;
  second.seed = 2, second.offset = 0.02;
  return {attention, chunk, avey, second};
}

inline void darken() {
  QPalette palette;
  palette.setColor(QPalette::Window, QColor(0x1a, 0x1b, 0x1e));
  palette.setColor(QPalette::Base, QColor(0x20, 0x22, 0x25));
  palette.setColor(QPalette::Button, QColor(0x2a, 0x2c, 0x30));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) palette.setColor(role, QColor(0xe4, 0xe4, 0xe4));
  palette.setColor(QPalette::PlaceholderText, QColor(0xa8, 0xab, 0xae));
  QApplication::setPalette(palette);
}

}  // namespace saccade::test
