#pragma once
#include <QJsonObject>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <functional>

#include "ui/hosts/hosts_now.h"
#include "ui/latest_job.h"
#include "ui/program_call.h"

class QLabel;
class QListWidget;
class QPushButton;

namespace saccade::ui {

class HostForm;
class Session;

/// Machines that ssh reaches: whether they are connected, what of them is served, and their profiles. What is asked of a host is asked by
/// the command line program; its files are read beside the event loop.
class HostsPage : public QWidget {
  Q_OBJECT
 public:
  HostsPage(Session& session, QWidget* parent);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeList();
  QWidget* makeProfile();
  /// What was read, and how often hosts had been written or removed here by then.
  struct Read {
    std::vector<HostNow> hosts;
    int writes = 0;
  };
  void refresh(bool urgent);
  void take(Read read);
  void showHosts();
  void showHost();
  void showState();
  QString current() const;                        ///< empty: a new one is written
  const HostNow* now(const QString& name) const;  ///< null: there is no such host
  void put(HostNow host);
  void setForm(const HostNow& host);
  void beginNew();
  void save();
  void ask(QPushButton* button, const QStringList& arguments, const std::function<void(const ProgramCall::Answer&)>& then);
  void cancel();
  void test();
  void showFacts(const QJsonObject& answer);
  void chooseBundle();
  void copy(const QString& bundle);
  void remove();
  void openRuns();
  void say(const QString& text);
  void enableButtons();

  Session& session_;
  std::vector<HostNow> hosts_now_;
  int writes_ = 0;
  nlohmann::json in_form_;
  LatestJob<Read> job_;
  QTimer timer_;
  QPointer<ProgramCall> call_;
  QListWidget* hosts_;
  QLabel* none_;  ///< in its place
  HostForm* form_;
  QLabel *state_, *facts_;
  QPushButton *add_, *save_, *test_, *copy_, *open_, *remove_;
  QPushButton* asked_ = nullptr;  ///< whose question is under way
  QString asked_of_;              ///< which host
  bool edited_ = false, read_ = false;
};

}  // namespace saccade::ui
