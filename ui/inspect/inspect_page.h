#pragma once
#include <QTimer>
#include <QWidget>
#include <memory>
#include <optional>

#include "analysis/figures/reads.h"
#include "analysis/inspection/head_order.h"
#include "ui/inspect/capture_loader.h"
#include "ui/inspect/helper_text.h"
#include "ui/inspect/large_map_view.h"

class QComboBox;
class QGridLayout;
class QLabel;
class QSlider;
class QTabWidget;
class QTableWidget;
class QToolButton;

namespace saccade::ui {

class AlignedViews;
class BesideRun;
class Card;
class FigureView;
class LossStrip;
class QueryPanel;
struct WhatIfOffer;
class Session;
class TextChoice;
class TokenText;
class WhatIfPanel;

/// "Where did this query read from?" for the session's run: text, layers × heads, the map of one head, one query in numbers.
/// Arrows move the query, Page Up/Down the layer, Shift+arrows head and layer, Ctrl+arrows the training step; comma and period choose the
/// source of a what-if, W tries it, Escape drops it.
class InspectPage : public QWidget {
  Q_OBJECT
 public:
  InspectPage(Session& session, QWidget* parent);
  ~InspectPage() override;

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Place {
    int layer, head, query;
    bool operator==(const Place&) const = default;
  };
  struct ReadQuery {  ///< one query's reads, which took a thread to read
    std::shared_ptr<const LoadedCaptures> captures;
    Place at;
    Reads reads;
    QString problem;
  };
  QWidget* makeTextCard();
  QWidget* makeTimeCard();
  void connectSession();
  void connectHelper();
  void restore();

  void followRun();  ///< the list or the selected run changed: which steps are there?
  void request();    ///< asks for the captures of the selected step
  void showTime();
  void take(const std::shared_ptr<const LoadedCaptures>& captures);
  void showProblem(const QString& reason);
  void showNothing(const QString& text);
  void showSample();
  void fitText();
  QString emptyWords(const Run& run) const;  ///< of a run without steps

  const Capture* capture() const;
  std::optional<Place> place() const;  ///< the session's selection, moved inside what the capture holds
  int64_t shownStep() const;
  int heads(int layer) const;
  std::vector<int> layers() const;

  // The overview of all heads (inspect_page_heads.cpp).
  void makeOverview();
  void showOverview();
  void selectHead();
  QString headText(int row, int column) const;
  const HeadLists* headLists() const;
  HeadMeasure measure() const;
  HeadOrder order() const;

  // The map of one head (inspect_page_map.cpp).
  QWidget* makeMaps();
  void chooseMap();
  void showHead();
  void titleMap();
  MapKind chosenMap() const;
  int64_t candidateSize() const;
  int queryOfRow(int row) const;
  int rowOfQuery(int query) const;
  QString cellText(int row, int column) const;

  // One query (inspect_page_query.cpp).
  QWidget* makeQueryCard();
  void showQuery();
  void takeReads(const Place& at, Reads reads);
  QString unit() const;
  void nameFiles(const Place& at);

  // What keys do (inspect_page_keys.cpp).
  bool handleKey(int key, Qt::KeyboardModifiers modifiers);
  void moveQuery(int by);
  void moveHead(int layers, int heads);
  void moveStep(int by);

  // Other runs beside this one (inspect_page_beside.cpp).
  void makeBeside();
  void fillBesideMenu();
  void setBeside(const QString& directory, bool on);
  void followBeside();
  void arrangeMaps();
  void linkMap(FigureView* view);  ///< what is pointed at and looked at in one map is so in all of the same cells
  std::vector<FigureView*> besideMaps(const FigureView* of) const;
  void showBeside();
  void showLosses();

  // What the helper process is asked (inspect_page_model.cpp).
  void chooseText();
  void readText();  ///< has the helper run the chosen text
  void placeQuery();
  bool prepareHelper();  ///< whether it has read, or will have, the text that is shown
  void askModel();
  void offerWhatIf();
  std::vector<WhatIfOffer> whatIfs() const;
  void proposeSource(int column);
  void tryWhatIf(int source);
  void dropWhatIf();
  void takeChange(const ShownChange& change);
  bool lossesAreOfAnswers() const;

  Session& session_;
  CaptureLoader* loader_;
  HelperText* helper_;
  QTimer ask_;        ///< once the query rests
  QString prepared_;  ///< text that the helper has read: run, step and source
  int prepared_by_ = 0;
  std::string placed_;  ///< source of the last text that began with a query of its own
  std::shared_ptr<const LoadedCaptures> captures_;
  std::vector<int64_t> steps_;
  QString directory_;  ///< of the run that steps_ belongs to
  std::vector<std::string> provenance_;
  std::optional<Reads> reads_;
  std::shared_ptr<const std::vector<HeadLists>> late_heads_;
  LargeMapView* large_;
  LatestJob<ReadQuery> reading_;

  Card *text_card_, *heads_card_, *map_card_, *query_card_, *time_card_;
  TokenText* text_;
  TextChoice* choice_;
  LossStrip* strip_;
  WhatIfPanel* what_if_;
  QTabWidget* tabs_;
  QGridLayout* maps_;  ///< overview, map, those of other runs
  std::vector<BesideRun*> beside_;
  AlignedViews* aligned_;              ///< the maps
  std::pair<int, int> shown_columns_;  ///< and maps in them
  std::vector<const Capture*> losses_shown_;
  QTableWidget* losses_;
  FigureView *heads_, *map_;
  QueryPanel* query_;
  QComboBox *sample_, *map_choice_, *measure_, *order_;
  std::vector<HeadPlace> heads_shown_;  ///< in the order of the overview
  QToolButton *log_colours_, *margins_, *beside_button_, *difference_;
  QSlider* step_;
};

}  // namespace saccade::ui
