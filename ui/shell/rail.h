#pragma once
#include <QString>
#include <QWidget>

class QAbstractButton;

namespace saccade::ui {

/// The pages, one below the other: icon and word. Arrow keys move between them.
class Rail : public QWidget {
  Q_OBJECT
 public:
  explicit Rail(QWidget* parent = nullptr);
  void setCurrent(const QString& id);

 Q_SIGNALS:
  void chosen(const QString& id);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QList<QAbstractButton*> buttons_;
};

}  // namespace saccade::ui
