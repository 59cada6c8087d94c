#pragma once
#include <QHash>
#include <QObject>
#include <QStringList>
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
  /// Hosts with such a program; of those that were removed, until it has ended.
  int kept() const { return static_cast<int>(kept_.size()); }

 private:
  struct Kept {
    QProcess* process;
    QByteArray profile;   ///< as it was when it was begun
    bool ending = false;  ///< it was told to end; nothing waits for it
  };
  void look();
  void begin(const QString& host, const QByteArray& profile);
  void endOthers(const QStringList& names);
  void end(Kept& kept);
  void forget(const QString& host);

  QTimer timer_;
  QHash<QString, Kept> kept_;
};

}  // namespace saccade::ui
