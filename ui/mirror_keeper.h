#pragma once
#include <QHash>
#include <QObject>
#include <QTimer>

class QProcess;

namespace saccade::ui {

/// While the window is open, one `saccade host sync NAME --watch` for every host that is set up: each keeps one connection, and the mirror
/// of the host's runs. A profile that was changed gets another one, a host that was removed none; one that ends is begun again.
class MirrorKeeper : public QObject {
  Q_OBJECT
 public:
  explicit MirrorKeeper(QObject* parent);
  ~MirrorKeeper() override;
  int kept() const { return static_cast<int>(kept_.size()); }

 private:
  struct Kept {
    QProcess* process;
    QByteArray profile;  ///< as it was when it was begun
  };
  void look();
  void begin(const QString& host, const QByteArray& profile);
  void end(QProcess* process);

  QTimer timer_;
  QHash<QString, Kept> kept_;
};

}  // namespace saccade::ui
