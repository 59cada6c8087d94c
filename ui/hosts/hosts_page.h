#pragma once
#include <QJsonObject>
#include <QPointer>
#include <QTimer>
#include <QWidget>

class QLabel;
class QListWidget;
class QPushButton;

namespace saccade::ui {

class HostForm;
class ProgramCall;
class Session;

/// Machines that ssh reaches: whether they are connected, what of them is served, and their profiles. What is asked of a host is asked by
/// the command line program.
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
  void refresh();
  void showHost();
  void showState();
  QString current() const;  ///< empty: a new one is written
  void beginNew();
  void save();
  void test();
  void showFacts(const QJsonObject& answer);
  void chooseBundle();
  void copy(const QString& bundle);
  void remove();
  void openRuns();
  void say(const QString& text);
  void enableButtons();

  Session& session_;
  QTimer timer_;
  QPointer<ProgramCall> call_;
  QListWidget* hosts_;
  HostForm* form_;
  QLabel *state_, *facts_;
  QPushButton *add_, *save_, *test_, *copy_, *open_, *remove_;
  bool edited_ = false;
};

}  // namespace saccade::ui
