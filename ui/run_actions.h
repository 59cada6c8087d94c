#pragma once
#include <QKeySequence>
#include <QObject>
#include <QString>

class QAction;

namespace saccade::ui {

class Session;

/// What can be done with the current run; the same actions stand in the menu, the panel and on the Runs page.
class RunActions : public QObject {
  Q_OBJECT
 public:
  explicit RunActions(Session& session, QObject* parent = nullptr);

  QAction* stop;
  QAction* resume;
  QAction* openFolder;
  QAction* copyPath;
  QAction* showOnly;  ///< hides every run but those marked
  QAction* showAll;
  QAction* baseline;   ///< others are measured against it
  QAction* star;       ///< of the marked runs
  QAction* colour;     ///< of the marked runs' groups, chosen in a dialog
  QAction* usual;      ///< that of their architectures again
  QAction* duplicate;  ///< a configuration that begins as the run's
  QAction* fork;       ///< likewise, from one of its checkpoints
  QAction* trash;      ///< the marked runs
  QAction* restore;    ///< those thrown away last
  QList<QAction*> all() const {
    return {resume, stop, duplicate, fork, openFolder, copyPath, showOnly, showAll, baseline, star, colour, usual, trash, restore};
  }
  /// Keys work in one place of a window, though the tool tips of all tell them.
  void takeKeys();

 private:
  QAction* add(const QString& text, const QString& icon, const QString& help, const QKeySequence& keys = {});
  void update();
  void setStar(bool starred);
  void chooseColour();
  void throwAway();
  void bringBack();
  QStringList these() const;

  Session& session_;
};

}  // namespace saccade::ui
