#pragma once
#include <QWidget>
#include <optional>

#include "ui/configure/layer_groups.h"

class QAction;
class QComboBox;
class QLabel;
class QSpinBox;
class QVBoxLayout;

namespace saccade::ui {

class LayerList;
class LayerStrip;
class ProblemLabel;
class SettingEditor;

/// The stack of layers as blocks: what each is made of, how often it is repeated, and in which order they stand.
class LayersView : public QWidget {
  Q_OBJECT
 public:
  explicit LayersView(QWidget* parent = nullptr);

  /// The architecture as the config has it, and the sequence length that its layers must bear.
  void setArchitecture(const nlohmann::json& architecture, int64_t sequence_length);
  /// Of the whole config; shown where no block alone is to blame.
  void setProblem(const QString& problem);
  int current() const;
  void setCurrent(int block);

 Q_SIGNALS:
  void edited(const nlohmann::json& architecture);
  void currentChanged(int block);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeBlocks();
  QWidget* makeDetails();
  void makeActions();
  void showStack();
  void showBlock();
  void buildEditors(const std::vector<Setting>& settings);
  void enableActions();
  void add(bool same);
  void remove();
  void move(int from, int to);
  void repeat(int by);
  void setGroup(const nlohmann::json& group);
  void changed();
  void remember();
  void undo();

  LayerGroups stack_;
  std::vector<LayerGroups> before_;  ///< what undo goes back to, newest last
  int64_t sequence_length_ = 512;
  bool readable_ = true, showing_ = false, faulty_ = false;  ///< faulty_: a block says what is wrong with it
  std::string built_for_;                                    ///< block and mixer that the editors are for
  std::vector<SettingEditor*> editors_;
  LayerStrip* strip_;
  LayerList* list_;
  QLabel* order_;
  ProblemLabel* problem_;
  QSpinBox *depth_, *repeat_;
  QComboBox *mixer_, *block_;
  QWidget *details_ = nullptr, *settings_ = nullptr;
  QVBoxLayout* column_ = nullptr;
  QAction *add_ = nullptr, *duplicate_ = nullptr, *up_ = nullptr, *down_ = nullptr, *remove_ = nullptr, *more_ = nullptr, *fewer_ = nullptr,
          *undo_ = nullptr;
};

}  // namespace saccade::ui
