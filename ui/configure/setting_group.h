#pragma once
#include <QWidget>
#include <vector>

class QGridLayout;
class QToolButton;

namespace saccade::ui {

class SettingEditor;

/// A group of editors, which can be folded where it has a title; in as many columns as fit.
class SettingGroup : public QWidget {
  Q_OBJECT
 public:
  SettingGroup(const QString& title, std::vector<SettingEditor*> editors, bool open, QWidget* parent = nullptr);

  /// Shows what matches, unfolded, and everything where the words are the beginning of its title; empty words: everything, as folded
  /// before. Returns the number shown.
  int search(const QString& words);
  void unfold();
  int size() const { return static_cast<int>(editors_.size()); }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void arrange();
  void updateTitle();

  QString title_;
  std::vector<SettingEditor*> editors_;
  std::vector<SettingEditor*> shown_;
  QToolButton* fold_;
  QWidget* body_;
  QGridLayout* grid_;
  bool open_;
  int columns_ = 0;
};

}  // namespace saccade::ui
