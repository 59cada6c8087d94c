#pragma once
#include <QWidget>

#include "models/json.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QSpinBox;
class QStackedWidget;
class QToolButton;

namespace saccade::ui {

/// Which text is inspected: what the run captured, or one that the helper process reads: typed or pasted, of a file, a generated task with
/// known answers, an item of a task that a run was scored on. The choice stands in the card's header (box()), what belongs to it below.
class TextChoice : public QWidget {
  Q_OBJECT
 public:
  explicit TextChoice(QWidget* parent = nullptr);

  QComboBox* box() const { return box_; }
  /// Parameters of the method "text" (docs/inspect.md), with source "captured" alone for what the run captured.
  nlohmann::json source() const;
  bool captured() const;
  bool ofItems() const;   ///< items that a run was scored on
  bool complete() const;  ///< there is a text to read
  QByteArray state() const;
  void restore(const QByteArray& state);
  void setTyped(const QString& text);      ///< and chooses it
  void setItems(const QByteArray& items);  ///< likewise (Session::inspectItems)

 Q_SIGNALS:
  void chosen();        ///< another text is to be read
  void stateChanged();  ///< what state() is made of

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* makeTyped();
  QWidget* makeFile();
  QWidget* makeTask();
  QWidget* makeItems();
  QToolButton* itemButton(const QString& text, const QString& name, int by);
  void takeItems(const nlohmann::json& items);
  QToolButton* readButton();
  void browse();
  void showChoice();

  QComboBox *box_, *task_, *items_;
  QLabel* of_items_;
  nlohmann::json scored_;  ///< run, task and step of the items, null: there are none
  QStackedWidget* pages_;
  QPlainTextEdit* typed_;
  QLineEdit* path_;
  QSpinBox *length_, *seed_, *index_;
};

}  // namespace saccade::ui
