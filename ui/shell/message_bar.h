#pragma once
#include <QFrame>
#include <QList>
#include <QString>

class QLabel;
class QPushButton;
class QToolButton;

namespace saccade::ui {

/// Messages above the page, newest first; work goes on beneath them. Errors stay until closed, notes leave by themselves.
class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);

 public Q_SLOTS:
  void showError(const QString& text);
  void showNote(const QString& text);
  void closeMessage();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Message {
    QString text;
    bool error = true;
    int times = 1;
  };
  void add(const QString& text, bool error);
  void showFirst();
  void copyDetails() const;

  QList<Message> messages_;
  QLabel* icon_;
  QLabel* text_;
  QPushButton* copy_;
  QToolButton* close_;
};

}  // namespace saccade::ui
