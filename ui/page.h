#pragma once
#include <QString>
#include <functional>
#include <vector>

class QWidget;

namespace saccade::ui {

class Session;

/// A page of the window registers itself: its folder is all that has to be added.
struct Page {
  QString id;     ///< "live"
  QString title;  ///< "Live"
  QString icon;   ///< name of an icon in resources/icons
  int order = 0;  ///< place in the rail
  std::function<QWidget*(Session&, QWidget* parent)> make;
  bool needs_runs = true;  ///< while the folder holds none, the window says what to do instead of showing the page
};
const std::vector<Page>& pages();  ///< in rail order

struct RegisterPage {
  explicit RegisterPage(Page page);
};

}  // namespace saccade::ui
