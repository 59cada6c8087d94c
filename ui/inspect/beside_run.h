#pragma once
#include <QString>
#include <memory>

#include "ui/charts/figure_view.h"
#include "ui/inspect/helper_text.h"
#include "ui/inspect/large_map_view.h"

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
  struct Main {
    std::shared_ptr<const LoadedCaptures> captures;
    size_t sample = 0;
    const Capture& capture() const { return captures->samples[sample]; }
  };
  void show(const Main& main, const Place& place);
  const Capture* capture() const;  ///< null: not read (yet), or of other tokens than `main` in the last show()
  FigureView* map() const { return map_; }

 Q_SIGNALS:
  void ready();  ///< there is a capture, or a reason why not
  void queryClicked(int query);

 private:
  void take(const std::shared_ptr<const LoadedCaptures>& captures);
  void say(const QString& words);
  void tell(const QString& words);  ///< in place of the map
  void showMap(const Main& main, const Place& place, const MapPlace& own);
  QString cellText(int row, int column) const;

  /// What the map is of.
  struct Mapped {
    std::shared_ptr<const LoadedCaptures> main, captures;
    size_t sample;
    MapPlace place, own;
    bool log_colours, difference;
    bool operator==(const Mapped&) const = default;
  };
  QString directory_, name_;
  FigureView* map_;
  LargeMapView* large_;
  std::optional<Mapped> mapped_;
  CaptureLoader* loader_;
  HelperText* helper_;
  std::shared_ptr<const LoadedCaptures> captures_;
  std::string source_;
  int64_t step_ = -1;
  int sample_ = 0;
  bool followed_ = false;
};

}  // namespace saccade::ui
