#pragma once
#include <QComboBox>

namespace saccade::ui {

/// Where runs go: this machine, a host that ssh reaches (saccade host), or a cluster (saccade cluster). Looked up anew whenever what it
/// stands on is shown; not to be seen while there is only this machine.
class WhereChoice : public QComboBox {
  Q_OBJECT
 public:
  explicit WhereChoice(QWidget* parent);

  QString place() const;  ///< a name; empty: this machine
  bool isHost() const;    ///< a host, and no cluster
  /// Folder of the runs of a host that is chosen, as they are mirrored here; else `here`.
  QString folder(const QString& here) const;
  void refresh();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
};

}  // namespace saccade::ui
