#pragma once
#include <QToolButton>
#include <functional>

#include "models/json.h"
#include "ui/configure/presets.h"

class QFrame;
class QLabel;
class QLineEdit;
class QTreeWidget;
class QTreeWidgetItem;

namespace saccade::ui {

/// The preset to start from, chosen in a tree of architectures and their scales. For the one at hand it says what it has otherwise than the
/// configuration that is written.
class PresetPicker : public QToolButton {
  Q_OBJECT
 public:
  explicit PresetPicker(QWidget* parent = nullptr);

  /// In place of a preset's path: the run that is selected; no preset is empty.
  static const QString selected_run;
  void setPresets(const QList<Preset>& presets);
  void setCurrent(const QString& path);
  QString current() const { return current_; }
  std::function<nlohmann::json()> written;  ///< what presets are compared with
  void open();

 Q_SIGNALS:
  void chosen(const QString& path);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void makePopup();
  void fill();
  void filter(const QString& words);
  void showDifference(QTreeWidgetItem* item);
  void choose(QTreeWidgetItem* item);

  QList<Preset> presets_;
  QString current_;
  QFrame* popup_ = nullptr;
  QLineEdit* search_ = nullptr;
  QTreeWidget* tree_ = nullptr;
  QLabel* difference_ = nullptr;
};

/// "width 64 → 256, layers 3 → 4": in what a preset differs from what is written; empty for nothing.
QString preset_difference(const nlohmann::json& written, const nlohmann::json& preset);

}  // namespace saccade::ui
