#pragma once
#include <QString>
#include <memory>

#include "ui/charts/figure_view.h"
#include "ui/inspect/helper_text.h"

namespace saccade::ui {

/// What stands beside the map of the page's run: the same text, layer, head and query in another run.
class BesideRun : public Card {
  Q_OBJECT
 public:
  BesideRun(const QString& directory, const QString& name, QWidget* parent);

  const QString& directory() const { return directory_; }
  /// The text that the page's run is seen with: `source` as in LoadedCaptures, at the nearest step that this run has.
  void follow(const std::string& source, int64_t step, int sample);
  struct Place {
    int number = 1;  ///< of the run beside, as it stands in the title
    int layer = 0, head = 0, query = 0;
    bool log_colours = false, difference = false;
  };
  /// The weights of that head, or their difference from those of `main`.
  void show(const Capture& main, const Place& place);
  const Capture* capture() const;  ///< null: not read (yet), or of other tokens than `main` in the last show()
  FigureView* map() const { return map_; }

 Q_SIGNALS:
  void ready();  ///< there is a capture, or a reason why not
  void queryClicked(int query);

 private:
  void take(const std::shared_ptr<const LoadedCaptures>& captures);
  void say(const QString& words);

  QString directory_, name_;
  FigureView* map_;
  CaptureLoader* loader_;
  HelperText* helper_;
  std::shared_ptr<const LoadedCaptures> captures_;
  std::string source_;
  int64_t step_ = -1;
  int sample_ = 0;
  bool followed_ = false;
};

}  // namespace saccade::ui
