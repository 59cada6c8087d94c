#pragma once
#include <QHash>
#include <QSet>
#include <QString>
#include <map>

#include "analysis/comparison/run_filter.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

/// The one selection of the window: a filter, what is switched off among what passes, which groups are opened, and the baseline.
/// Gives runs their names and looks, and what is shown. Knows runs by their directories.
class RunSelection {
 public:
  QString filter() const { return filter_text_; }
  void setFilter(const QString& text);
  const QSet<QString>& hidden() const { return hidden_; }
  void setHidden(QSet<QString> directories) { hidden_ = std::move(directories); }
  void setShown(const QString& directory, bool shown);
  const QSet<QString>& opened() const { return opened_; }
  void setOpened(QSet<QString> keys) { opened_ = std::move(keys); }
  void setOpened(const QString& key, bool opened);
  /// Colours that someone chose in place of those of architectures, by keys of groups.
  const QHash<QString, Colour>& colours() const { return colours_; }
  void setColours(QHash<QString, Colour> colours) { colours_ = std::move(colours); }
  QString baseline() const { return baseline_; }
  void setBaseline(const QString& directory) { baseline_ = directory; }

  bool passes(const Run& run) const { return filter_.passes(run); }
  /// Hidden or filtered out are not shown.
  bool shows(const Run& run) const;

  /// Names and looks for `runs`, which are all there are, in list order. A group that is new renames none of those before.
  void arrange(const std::vector<SharedRun>& runs);
  /// The same runs, of which these have been read on; names and looks stay.
  void update(const std::vector<SharedRun>& read_on);
  void nameAnew() { names_.clear(); }
  RunLook look(const Run& run) const;  ///< as arranged; of a run by itself
  QString key(const Run& run) const;   ///< of its group
  std::shared_ptr<const ShownRuns> shown() const { return shown_; }
  /// All groups that pass the filter, in list order.
  const std::vector<ShownGroup>& groups() const { return groups_; }

 private:
  void choose();

  QString filter_text_, baseline_;
  RunFilter filter_;
  QSet<QString> hidden_, opened_;
  QHash<QString, Colour> colours_;
  std::map<std::string, std::string> names_;  ///< by setting; anew with every other filter
  QHash<QString, RunLook> looks_;             ///< by directory
  std::vector<ShownGroup> groups_;
  std::shared_ptr<const ShownRuns> shown_ = std::make_shared<ShownRuns>();
};

QString directory_of(const Run& run);

}  // namespace saccade::ui
