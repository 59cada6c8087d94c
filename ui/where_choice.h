#pragma once
#include <QComboBox>

namespace saccade::ui {

/// Where runs go: this machine, a host that ssh reaches (saccade host), or a cluster (saccade cluster); or whose queue is meant, which
/// clusters have none of. Looked up anew whenever what it stands on is shown; not to be seen while there is only this machine.
class WhereChoice : public QComboBox {
  Q_OBJECT
 public:
  enum class What { runs, queues };
  explicit WhereChoice(QWidget* parent, What what = What::runs);

  QString place() const;  ///< a name; empty: this machine
  bool isHost() const;    ///< a host, and no cluster
  /// Folder of the runs of a host that is chosen, as they are mirrored here; else `here`.
  QString folder(const QString& here) const;
  void choose(const QString& place);  ///< by its name; what is not there is this machine
  void refresh();

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  const What what_;
  QWidget* const stands_on_;
};

}  // namespace saccade::ui
