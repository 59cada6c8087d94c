#pragma once
#include <QWidget>
#include <memory>
#include <optional>

#include "analysis/figures/reads.h"
#include "ui/inspect/capture_loader.h"

class QComboBox;
class QLabel;
class QSlider;
class QToolButton;

namespace saccade::ui {

class Card;
class FigureView;
class QueryPanel;
class Session;
class TokenText;

/// "Where did this query read from?" for the session's run: text, layers × heads, the map of one head, one query in numbers.
/// Arrows move the query, Page Up/Down the layer, Shift+arrows head and layer, Ctrl+arrows the training step.
class InspectPage : public QWidget {
  Q_OBJECT
 public:
  InspectPage(Session& session, QWidget* parent);
  ~InspectPage() override;

 protected:
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Place {
    int layer, head, query;
  };
  QWidget* makeTextCard();
  QWidget* makeMaps();
  QWidget* makeTimeCard();
  void connectSession();

  void followRun();  ///< the list or the selected run changed: which steps are there?
  void request();    ///< asks for the captures of the selected step
  void take(const std::shared_ptr<const LoadedCaptures>& captures);
  void showProblem(const QString& reason);
  void showNothing(const QString& text);
  void showSample();
  void showHead();
  void showQuery();
  void chooseMap();
  void fitText();

  const Capture* capture() const;
  std::optional<Place> place() const;  ///< the session's selection, moved inside what the capture holds
  int64_t shownStep() const;
  int64_t candidateSize() const;
  int heads(int layer) const;
  std::vector<int> layers() const;
  void moveQuery(int by);
  void moveHead(int layers, int heads);
  void moveStep(int by);
  bool handleKey(int key, Qt::KeyboardModifiers modifiers);
  MapKind chosenMap() const;
  int queryOfRow(int row) const;
  int rowOfQuery(int query) const;
  QString cellText(int row, int column) const;
  QString unit() const;
  void nameFiles(const Place& at);

  Session& session_;
  CaptureLoader* loader_;
  std::shared_ptr<const LoadedCaptures> captures_;
  std::vector<int64_t> steps_;
  QString directory_;  ///< of the run that steps_ belongs to
  std::vector<std::string> provenance_;
  std::optional<Reads> reads_;

  Card *text_card_, *heads_card_, *map_card_, *query_card_, *time_card_;
  TokenText* text_;
  FigureView *heads_, *map_;
  QueryPanel* query_;
  QComboBox *sample_, *map_choice_;
  QToolButton* log_colours_;
  QSlider* step_;
};

}  // namespace saccade::ui
