#include "ui/figures/figures_page.h"

#include <QAction>
#include <QCollator>
#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QFontDatabase>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/figures/recipe_form.h"
#include "ui/page.h"
#include "ui/page_action.h"
#include "ui/plain_scroll.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

const RegisterPage entry{{QStringLiteral("figures"), FiguresPage::tr("Figures"), QStringLiteral("figures"), 55,
                          [](Session& session, QWidget* parent) -> QWidget* { return new FiguresPage(session, parent); }}};

/// What a file may be called.
QString file_name(QString name) {
  static const QRegularExpression other(QStringLiteral("[^A-Za-z0-9._+-]+"));
  name.replace(other, QStringLiteral("-"));
  while (name.startsWith(QLatin1Char('.')) || name.startsWith(QLatin1Char('-'))) name.remove(0, 1);
  return name.isEmpty() ? QStringLiteral("figure") : name.left(80);
}

}  // namespace

/// The paper, as large as there is room.
class FiguresPage::Preview : public QWidget {
 public:
  using QWidget::QWidget;
  void setPicture(const QImage& picture, const QString& words) {
    picture_ = picture, words_ = words;
    setAccessibleDescription(words);
    update();
  }
  QSize sizeHint() const override { return {420, 320}; }
  QSize minimumSizeHint() const override { return {160, 120}; }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    if (picture_.isNull()) {
      painter.setPen(quietText(palette()));
      return painter.drawText(rect().adjusted(8, 8, -8, -8), Qt::AlignCenter | Qt::TextWordWrap, words_);
    }
    const QSize room = size() - QSize(8, 8);
    const QSize fitted = picture_.size().scaled(room, Qt::KeepAspectRatio).boundedTo(picture_.size());
    const QRect paper(QPoint((width() - fitted.width()) / 2, (height() - fitted.height()) / 2), fitted);
    const double ratio = devicePixelRatioF();
    if (scaled_.size() != fitted * ratio || scaled_from_ != picture_.cacheKey()) {
      scaled_ = picture_.scaled(fitted * ratio, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
      scaled_from_ = picture_.cacheKey();
    }
    painter.drawImage(paper, scaled_);
    painter.setPen(lineColour(palette()));
    painter.drawRect(paper.adjusted(-1, -1, 0, 0));
  }

 private:
  QImage picture_, scaled_;
  qint64 scaled_from_ = 0;
  QString words_;
};

FiguresPage::FiguresPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      job_(this, [this](const MadeFigure& made) { showMade(made); }),
      writer_(this, [this](const Written& written) {
        if (!written.problem.isEmpty()) Q_EMIT session_.failed(written.problem);
        if (!written.files.isEmpty() && !quiet_)
          Q_EMIT session_.noted(tr("Wrote %1 files into %2").arg(written.files.size()).arg(folder()));
        quiet_ = false;
      }) {
  makeActions();
  auto* column = new QVBoxLayout(this);
  QWidget* left = makeLeft();
  QWidget* right = makeRight();
  column->addWidget(new TwoColumns({left, 6, 5}, {right, 4, 6}, 760, 2, this));
  connect(list_, &QListWidget::currentTextChanged, this, &FiguresPage::choose);
  connect(form_, &RecipeForm::changed, this, [this] {
    for (FigureRecipe& recipe : recipes_)
      if (recipe.name == form_->recipe().name) recipe = form_->recipe();
    draw(true);
  });
  connect(form_, &RecipeForm::renamed, this, &FiguresPage::rename);
  connect(session_.runs(), &RunList::changed, this, [this] {
    if (isVisible()) read_from_ == folder() ? draw(false) : readRecipes();
  });
  readRecipes();
}

void FiguresPage::makeActions() {
  const auto add_action = [this](const QString& text, const QString& help, const QKeySequence& keys, auto what) {
    return addPageAction(this, text, help, keys, what);
  };
  new_ = add_action(tr("New figure"), tr("Of the runs that pass the filter of the list"), {}, [this] {
    FigureRecipe recipe;
    recipe.name = "figure";
    recipe.runs = session_.runs()->selection().filter().toStdString();
    if (!session_.runs()->hidden().isEmpty())
      for (const Run* run : session_.runs()->visibleRuns()) recipe.folders.push_back(run->info().directory.filename().string());
    add(std::move(recipe));
  });
  duplicate_ = add_action(tr("Duplicate"), tr("Another figure that begins as this one"), QKeySequence(Qt::CTRL | Qt::Key_D),
                          [this] { add(form_->recipe()); });
  remove_ = add_action(tr("Remove"), tr("Removes the recipe; its files stay"), {}, [this] { remove(); });
  undo_ = add_action(tr("Undo removing"), tr("Brings the recipe back that was removed last"), QKeySequence::Undo, [this] { undo(); });
  export_ = add_action(tr("Export"), tr("Writes the chosen files of this figure"), QKeySequence(Qt::CTRL | Qt::Key_E),
                       [this] { write({form_->recipe()}, false); });
  export_all_ = add_action(tr("Export all"), tr("Writes all figures of this folder"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E),
                           [this] { write(recipes_, false); });
}

QWidget* FiguresPage::makeLeft() {
  preview_ = new Preview(this);
  preview_->setAccessibleName(tr("The figure on paper"));
  text_ = new QPlainTextEdit(this);
  text_->setReadOnly(true);
  text_->setAccessibleName(tr("Tables as LaTeX"));
  text_->setLineWrapMode(QPlainTextEdit::NoWrap);
  caption_ = new QLabel(this);
  caption_->setWordWrap(true);
  caption_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  caption_->setAccessibleName(tr("Caption"));
  auto* inner = new QWidget(this);
  auto* column = new QVBoxLayout(inner);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(preview_, 1);
  column->addWidget(makeNone(inner), 1);
  column->addWidget(text_, 1);
  column->addWidget(caption_);
  preview_card_ = new Card(tr("Figure"), {}, inner, this);
  for (QAction* action : {export_, export_all_}) {
    auto* button = new QToolButton(preview_card_);
    button->setDefaultAction(action);
    button->setAccessibleName(action->text());
    preview_card_->addControl(button);
  }
  return preview_card_;
}

/// What stands where there is no figure: the sentence, and right below it the way to one.
QWidget* FiguresPage::makeNone(QWidget* parent) {
  none_ = new QWidget(parent);
  none_text_ = new QLabel(none_);
  none_text_->setWordWrap(true);
  none_text_->setAlignment(Qt::AlignHCenter);
  none_text_->setForegroundRole(QPalette::PlaceholderText);
  begin_ = new QToolButton(none_);
  begin_->setText(tr("New figure"));
  begin_->setAccessibleName(tr("Begin the first figure"));
  begin_->setPopupMode(QToolButton::InstantPopup);
  auto* column = new QVBoxLayout(none_);
  column->addStretch();
  column->addWidget(none_text_);
  column->addSpacing(8);
  column->addWidget(begin_, 0, Qt::AlignHCenter);
  column->addStretch();
  return none_;
}

QWidget* FiguresPage::makeRight() {
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("Figures of this folder"));
  list_->setMinimumHeight(70);
  list_->setMaximumHeight(150);
  list_->setFrameShape(QFrame::NoFrame);
  auto* right = new QWidget(this);
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  auto* recipes = new Card(tr("Figures"), {}, list_, right);
  auto* more = new QToolButton(recipes);
  more->setText(tr("New"));
  more->setAccessibleName(tr("New figure"));
  more->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(more);
  menu->addAction(new_);
  menu->addSeparator();
  addShipped(*menu);
  more->setMenu(menu);
  begin_->setMenu(menu);
  recipes->addControl(more);
  for (QAction* action : {duplicate_, remove_, undo_}) {
    auto* button = new QToolButton(recipes);
    button->setDefaultAction(action);
    button->setAccessibleName(action->text());
    recipes->addControl(button);
  }
  recipes->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  column->addWidget(recipes);
  form_ = new RecipeForm(this);
  auto* scroll = new PlainScroll(form_, this);
  scroll->setAccessibleName(tr("Recipe of the figure"));
  form_card_ = new Card(tr("Recipe"), tr("kept as it changes"), scroll, right);
  column->addWidget(form_card_, 1);
  column->addStretch();  // where no recipe is chosen
  return right;
}

/// Figures of papers, where the program finds them.
void FiguresPage::addShipped(QMenu& menu) {
  std::vector<std::string> names;
  try {
    names = shipped_recipes();
  } catch (const std::exception& error) {
    Q_EMIT session_.failed(QString::fromUtf8(error.what()));
  }
  QCollator order{QLocale(QLocale::English)};
  order.setNumericMode(true);  // table 2 before table 10
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return order.compare(QString::fromStdString(a), QString::fromStdString(b)) < 0;
  });
  for (const std::string& name : names)
    menu.addAction(QString::fromStdString(name), this, [this, name] {
      try {
        add(load_recipe(find_recipe(name)));
      } catch (const std::exception& error) {
        Q_EMIT session_.failed(QString::fromUtf8(error.what()));
      }
    });
}

QString FiguresPage::folder() const { return figures_folder(session_.runs()->folder()); }
QString FiguresPage::file(const std::string& name) const { return folder() + QLatin1Char('/') + QString::fromStdString(name) + ".json"; }

void FiguresPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  read_from_ == folder() ? draw(true) : readRecipes();
}

/// From an editor one comes back to a window that is in front again.
bool FiguresPage::event(QEvent* event) {
  if (event->type() == QEvent::WindowActivate) draw(false);
  return QWidget::event(event);
}

void FiguresPage::readRecipes() {
  read_from_ = folder();
  recipes_.clear();
  followed_.clear();
  removed_.reset();
  for (const QFileInfo& each : QDir(folder()).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) try {
      recipes_.push_back(load_recipe(each.filePath().toStdString()));
      maker_->known().forget(each.filePath());
      maker_->known().remember(file(recipes_.back().name), recipes_.back());
    } catch (const std::exception& error) {
      Q_EMIT session_.failed(QString::fromUtf8(error.what()));
    }
  const QString wanted = session_.place().value("figures/selected").toString();
  {
    const QSignalBlocker blocker(list_);
    list_->clear();
    for (const FigureRecipe& recipe : recipes_) list_->addItem(QString::fromStdString(recipe.name));
    const auto found = list_->findItems(wanted, Qt::MatchExactly);
    list_->setCurrentItem(found.isEmpty() ? list_->item(0) : found.first());
  }
  choose(list_->currentItem() ? list_->currentItem()->text() : QString());
}

void FiguresPage::choose(const QString& name) {
  const auto found = std::find_if(recipes_.begin(), recipes_.end(), [&](const FigureRecipe& r) { return r.name == name.toStdString(); });
  const bool any = found != recipes_.end();
  form_card_->setVisible(any);
  none_->setVisible(!any);
  preview_->setVisible(any);
  for (QAction* action : {duplicate_, remove_, export_, export_all_}) action->setEnabled(any);
  undo_->setEnabled(removed_.has_value());
  if (!any) {
    caption_->clear();
    text_->hide();
    preview_card_->setTitle(tr("Figure"), {});
    return none_text_->setText(tr("No figure is kept in %1 yet. “New figure” begins one of the runs in the list, or takes one of the "
                                  "figures of papers that come with the program.")
                                   .arg(folder()));
  }
  session_.place().set("figures/selected", name);
  form_->setRecipe(*found);
  draw(true);
}

void FiguresPage::add(FigureRecipe recipe) {
  const std::string stem = recipe.name;
  const auto taken = [&](const std::string& name) {
    return QFileInfo::exists(file(name)) || std::any_of(recipes_.begin(), recipes_.end(), [&](const auto& r) { return r.name == name; });
  };
  for (int n = 2; taken(recipe.name); ++n) recipe.name = stem + "-" + std::to_string(n);
  recipes_.push_back(recipe);
  list_->addItem(QString::fromStdString(recipe.name));
  list_->setCurrentRow(list_->count() - 1);
}

void FiguresPage::rename(const QString& name) {
  const QString free = file_name(name);
  const std::string before = form_->recipe().name;
  FigureRecipe recipe = form_->recipe();
  recipe.name = free.toStdString();
  const bool taken = std::any_of(recipes_.begin(), recipes_.end(), [&](const auto& r) { return r.name == recipe.name; });
  if (taken || (QFileInfo::exists(file(before)) && !QFile::rename(file(before), file(recipe.name)))) {
    Q_EMIT session_.failed(tr("There is a figure “%1” already, or its file cannot be renamed.").arg(free));
    return form_->setRecipe(form_->recipe());
  }
  maker_->known().renamed(file(before), file(recipe.name));
  followed_[file(recipe.name)] = std::exchange(followed_[file(before)], 0);
  for (FigureRecipe& each : recipes_)
    if (each.name == before) each = recipe;
  const QSignalBlocker blocker(list_);
  for (QListWidgetItem* item : list_->findItems(QString::fromStdString(before), Qt::MatchExactly)) item->setText(free);
  choose(free);
}

void FiguresPage::remove() {
  const std::string name = form_->recipe().name;
  if (QFileInfo::exists(file(name)) && !QFile::remove(file(name)))
    return Q_EMIT session_.failed(tr("%1 cannot be removed.").arg(file(name)));
  maker_->known().forget(file(name));
  followed_.erase(file(name));
  removed_ = form_->recipe();
  std::erase_if(recipes_, [&](const auto& r) { return r.name == name; });
  delete list_->takeItem(list_->currentRow());
  choose(list_->currentItem() ? list_->currentItem()->text() : QString());
}

void FiguresPage::undo() {
  if (removed_) add(*std::exchange(removed_, {}));
  undo_->setEnabled(false);
}

/// Kept and drawn beside the event loop, as its file will be.
void FiguresPage::draw(bool urgent) {
  if (!isVisible() || recipes_.empty() || !list_->currentItem()) return;
  const FigureRecipe recipe = form_->recipe();
  if (drawn_ != QString::fromStdString(recipe.name)) drawn_ = QString::fromStdString(recipe.name), ended_.clear();
  const QString kept = file(recipe.name);
  job_.ask([maker = maker_, recipe, runs = session_.runs()->folder(), kept,
            followed = followed_[kept]] { return maker->make(recipe, runs, kept, followed); },
           urgent);
}

/// The form follows a file that was edited elsewhere.
void FiguresPage::follow(const FigureRecipe& recipe, int others) {
  const auto own = std::find_if(recipes_.begin(), recipes_.end(), [&](const auto& r) { return r.name == recipe.name; });
  if (own == recipes_.end()) return;  // removed or renamed meanwhile
  *own = recipe;
  followed_[file(recipe.name)] = others;
  if (form_->recipe().name == recipe.name) form_->setRecipe(recipe);
  Q_EMIT session_.noted(tr("%1 was changed by another program: the figure is what it says now.").arg(file(recipe.name)));
}

void FiguresPage::showMade(const MadeFigure& made) {
  if (made.other) follow(*made.other, made.others);
  caption_->setText(made.caption);
  text_->setVisible(!made.text.isEmpty());
  text_->setPlainText(made.text);
  preview_->setVisible(made.text.isEmpty() || !made.picture.isNull());
  preview_->setPicture(made.picture, made.problem.isEmpty() ? tr("Nothing to draw yet.") : made.problem);
  QString words = made.runs == 1 ? tr("1 run") : tr("%1 runs").arg(made.runs);
  if (made.branches > 0) words += made.branches == 1 ? tr(" and 1 branch") : tr(" and %1 branches").arg(made.branches);
  if (made.width_mm > 0) words += tr(" · %1 × %2 mm").arg(made.width_mm, 0, 'f', 1).arg(made.height_mm, 0, 'f', 1);
  if (const QString font = QString::fromStdString(form_->recipe().style.font); !QFontDatabase::hasFamily(font))
    words += tr(" · ⚠ %1 is not installed").arg(font);
  preview_card_->setTitle(drawn_, made.picture.isNull() || made.problem.isEmpty() ? words : words + QStringLiteral(" · ⚠ ") + made.problem);
  const bool news = std::any_of(made.ended.begin(), made.ended.end(), [&](const QString& run) { return !ended_.contains(run); });
  if (news && !ended_.isEmpty()) {  // files that there are show what they said they would
    std::vector<FigureRecipe> written;
    std::copy_if(recipes_.begin(), recipes_.end(), std::back_inserter(written), [&](const auto& r) { return wasWritten(r); });
    if (!written.empty()) write(std::move(written), true);
  }
  ended_ = made.ended.isEmpty() ? QStringList{QString()} : made.ended;
}

bool FiguresPage::wasWritten(const FigureRecipe& recipe) const {
  return std::any_of(recipe.formats.begin(), recipe.formats.end(), [&](const std::string& format) {
    return QFileInfo::exists(folder() + QLatin1Char('/') + QString::fromStdString(recipe.name + "." + format));
  });
}

void FiguresPage::write(std::vector<FigureRecipe> recipes, bool quiet) {
  quiet_ = quiet;
  writer_.ask(
      [maker = maker_, recipes = std::move(recipes), runs = session_.runs()->folder(), into = folder(), followed = followed_]() mutable {
        Written written;
        for (const FigureRecipe& recipe : recipes) {
          QString problem;
          const QString kept = into + QLatin1Char('/') + QString::fromStdString(recipe.name) + QStringLiteral(".json");
          written.files += maker->write(recipe, followed[kept], runs, into, &problem);
          if (!problem.isEmpty()) written.problem += (written.problem.isEmpty() ? "" : "\n") + problem;
        }
        return written;
      },
      true);
}

}  // namespace saccade::ui
