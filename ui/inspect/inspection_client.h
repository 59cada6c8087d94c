#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>
#include <deque>
#include <functional>

#include "models/json.h"

class QProcess;

namespace saccade::ui {

/// `saccade inspect RUN --serve` of one run and checkpoint (docs/inspect.md), asked without holding up the window. Started at the first
/// request. When it ends or takes too long, that is one message, and the next request starts another.
class InspectionClient : public QObject {
  Q_OBJECT
 public:
  /// Called with a result in a worker thread; what it returns is then called here.
  using Digest = std::function<std::function<void()>(nlohmann::json result)>;

  explicit InspectionClient(QObject* parent);
  ~InspectionClient() override;

  /// Another run or checkpoint ends the process of the one before.
  void open(const QString& run, qint64 checkpoint);
  void ask(const std::string& method, nlohmann::json parameters, Digest digest);
  /// Nothing that was asked is answered any more; what is being worked on comes to its end first.
  void forget();
  bool busy() const { return !waiting_.empty(); }
  qint64 process() const;                              ///< its id; 0: none runs
  void setPatience(int ms) { patience_ms_ = ms; }      ///< for one answer
  int startedProcesses() const { return processes_; }  ///< each begins without a text

 Q_SIGNALS:
  void refused(const QString& message);  ///< a request was answered with an error
  void ended(const QString& message);    ///< the process ended by itself, was ended, or cannot be started; nothing is waited for any more
  void busyChanged(bool busy);

 private:
  struct Request {
    std::string line;
    Digest digest;
    bool forgotten = false;
  };
  void start();
  void send();
  void read();
  void take(const QByteArray& line);
  void deliver(const std::function<void()>& then, const QString& problem);
  void fail(const QString& message);
  void stop();

  QString run_;
  qint64 checkpoint_ = 0;
  QProcess* process_ = nullptr;
  QTimer patience_;
  QByteArray buffer_;
  qsizetype searched_ = 0;
  std::deque<Request> waiting_;  ///< the first one has been sent
  int64_t id_ = 0;
  int patience_ms_ = 120000, processes_ = 0;
};

}  // namespace saccade::ui
