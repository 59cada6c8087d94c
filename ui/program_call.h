#pragma once
#include <QObject>
#include <QStringList>
#include <functional>

class QProcess;

namespace saccade::ui {

/// One call of the command line program that is waited for without holding up the window. Deletes itself once it has answered.
class ProgramCall : public QObject {
  Q_OBJECT
 public:
  struct Answer {
    bool ok = false;
    QByteArray output;  ///< standard output
    QString reason;     ///< the last line of standard error, when not ok
  };
  /// `brief`: ends by itself within moments; then a window that closes waits for it, 3 s at most, and lets it go on. Others are ended with
  /// their owner.
  ProgramCall(const QStringList& arguments, bool brief, std::function<void(const Answer&)> then, QObject* owner);
  ~ProgramCall() override;
  void cancel();  ///< no answer comes

 private:
  void finish(const Answer& answer);

  QProcess* process_;
  std::function<void(const Answer&)> then_;
  bool brief_;
};

}  // namespace saccade::ui
