#pragma once
#include <QAbstractListModel>
#include <QColor>
#include <QString>
#include <memory>
#include <vector>

#include "analysis/runs/run.h"

class QTimer;

namespace saccade::ui {

/// The runs of one folder, followed from their journals (polled; a timer collects changes, 5 a second at most).
class RunList : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { DirectoryRole = Qt::UserRole + 1, TitleRole, SeedRole, StateRole, ProgressRole, ColourRole, VisibleRole, SummaryRole };

  explicit RunList(const QString& folder, QObject* parent = nullptr);
  ~RunList() override;

  QString folder() const;
  void setFolder(const QString& folder);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;  ///< VisibleRole / Qt::CheckStateRole
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  /// Runs switched visible, in list order: what charts draw.
  std::vector<const Run*> visibleRuns() const;
  const Run* run(const QString& directory) const;  ///< null when not in the list
  int row(const QString& directory) const;

 public Q_SLOTS:
  void refresh();  ///< looks for new directories and polls now

 Q_SIGNALS:
  void changed();  ///< new data in some run, or visibility changed; at most 5 a second

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::ui
