#pragma once
#include <QFrame>
#include <QList>
#include <QString>
#include <optional>

#include "ui/offer.h"

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
  void showOffer(const QString& text, const Offer& offer);  ///< a note with a button; longer there than others
  void closeMessage();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Message {
    QString text;
    bool error = true;
    int times = 1;
    std::optional<Offer> offer = {};
  };
  void add(const Message& message);
  void leaveAfter(int milliseconds, const QString& text);
  void takeUp();  ///< what the first message offers
  void showFirst();
  void copyDetails() const;

  QList<Message> messages_;
  QLabel* icon_;
  QLabel* text_;
  QPushButton *offer_, *copy_;
  QToolButton* close_;
};

}  // namespace saccade::ui
