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

/// Messages above the page, newest first; work goes on beneath them. Errors stay until closed, notes leave by themselves. Those that differ
/// by a name alone are one message (ui/shell/same_kind.h): the newest whole, and the names of the others, all of them on request.
class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);

 public Q_SLOTS:
  void showError(const QString& text);
  void showNote(const QString& text);
  void showOffer(const QString& text, const Offer& offer);  ///< a note with a button; longer there than others
  void withdraw(const QString& text);                       ///< is true no more; nothing where it has left
  void closeMessage();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Message {
    QStringList texts;  ///< the newest first; several: of one kind
    bool error = true;
    int times = 1;  ///< that the newest has come
    std::optional<Offer> offer = {};
    int id = 0;
  };
  int add(Message message);  ///< its id
  static bool absorb(Message& known, const Message& message);
  void leaveAfter(int milliseconds, int id);
  QString words(const Message& message) const;
  void takeUp();  ///< what the first message offers
  void showFirst();
  void copyDetails() const;

  QList<Message> messages_;
  int last_id_ = 0;
  QLabel* icon_;
  QLabel* text_;
  QPushButton *offer_, *copy_;
  QToolButton *all_, *close_;
};

}  // namespace saccade::ui
