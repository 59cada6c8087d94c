#pragma once
#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QtTest>
#include <memory>

#include "ui/configure/configure_page.h"
#include "ui/session.h"

namespace saccade::test {

/// The page Configure on a folder of runs, and its controls by their accessible names.
struct ShownConfigure {
  explicit ShownConfigure(const QString& folder, QSettings* settings = nullptr, const QSize& size = {1000, 720}) : session(folder) {
    session.remember(settings);
    page = std::make_unique<ui::ConfigurePage>(session);
    page->resize(size);
    page->show();
  }
  template <class T>
  T* child(const QString& name) {
    for (T* each : page->template findChildren<T*>())
      if (each->accessibleName() == name) return each;
    qFatal("no %s", qPrintable(name));
  }
  bool says(const QString& text) {
    for (const QLabel* label : page->findChildren<QLabel*>())
      if (label->isVisible() && label->text().contains(text)) return true;
    return false;
  }
  static void type(QLineEdit* line, const QString& text) {
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
  }

  ui::Session session;
  std::unique_ptr<ui::ConfigurePage> page;
};

}  // namespace saccade::test
