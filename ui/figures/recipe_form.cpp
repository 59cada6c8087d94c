#include "ui/figures/recipe_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QRegularExpression>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "analysis/figures/bench_results.h"
#include "ui/calm_wheel.h"

namespace saccade::ui {
namespace {

QStringList texts(const std::vector<std::string>& list) {
  QStringList all;
  for (const std::string& each : list) all << QString::fromStdString(each);
  return all;
}

QString range_text(const std::optional<std::array<double, 2>>& range) {
  return range ? QStringLiteral("%1 … %2").arg((*range)[0]).arg((*range)[1]) : QString();
}

std::optional<std::array<double, 2>> range_of(const QString& text) {
  static const QRegularExpression between(QStringLiteral("\\s*(?:…|\\.\\.\\.?|\\s)\\s*"));
  const QStringList ends = text.trimmed().split(between, Qt::SkipEmptyParts);
  if (ends.size() != 2) return {};
  bool first = false, second = false;
  const std::array<double, 2> range{ends[0].toDouble(&first), ends[1].toDouble(&second)};
  return first && second && range[0] < range[1] ? std::optional(range) : std::nullopt;
}

}  // namespace

RecipeForm::RecipeForm(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  auto* page = new QFormLayout;
  page->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  makePage(*page);
  column->addLayout(page);
  panel_form_ = new QFormLayout;
  panel_form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  makePanels(*panel_form_);
  makePanel(*panel_form_);
  column->addLayout(panel_form_);
  column->addStretch();
  fill();
}

void RecipeForm::makePage(QFormLayout& form) {
  auto* name = new QLineEdit(this);
  name->setAccessibleName(tr("Name of the figure"));
  form.addRow(tr("Name"), name);
  fillers_.push_back([this, name] { name->setText(QString::fromStdString(recipe_.name)); });
  connect(name, &QLineEdit::editingFinished, this, [this, name] {
    if (!filling_ && name->text().toStdString() != recipe_.name) Q_EMIT renamed(name->text());
  });
  line(form, tr("Caption"), tr("Begins the caption; runs, seeds, tokens and version follow"), [this] { return &recipe_.title; });
  line(form, tr("Runs"), tr("As the filter of the list: mixer:top1 width>64; empty: all of the folder"), [this] { return &recipe_.runs; });
  list(form, tr("Benchmarks"), tr("Files of saccade bench --out, or folders, with commas between; empty: the folder bench beside"),
       [this] { return &recipe_.bench; });
  QStringList sizes{tr("own size")};
  for (const PaperSize& size : paper_sizes()) sizes << QString::fromStdString(size.name);
  choice(
      form, tr("Size"), sizes,
      [this](int at) {
        if (at == 0) return;
        const PaperSize& size = paper_sizes()[static_cast<size_t>(at - 1)];
        recipe_.style.width_mm = size.width_mm, recipe_.style.font = size.font;
        recipe_.style.font_points = size.font_points, recipe_.style.line_points = size.line_points;
        fill();
      },
      [this] {
        const auto& all = paper_sizes();
        const auto found = std::find_if(all.begin(), all.end(), [&](const PaperSize& s) {
          return s.width_mm == recipe_.style.width_mm && s.font_points == recipe_.style.font_points;
        });
        return found == all.end() ? 0 : static_cast<int>(found - all.begin()) + 1;
      });
  number(form, tr("Width"), tr(" mm"), 20, 1000, [this] { return &recipe_.style.width_mm; });
  number(form, tr("Row height"), tr(" mm"), 15, 1000, [this] { return &recipe_.style.panel_height_mm; });
  choice(
      form, tr("Columns"), {"1", "2", "3", "4"}, [this](int at) { recipe_.style.columns = at + 1; },
      [this] { return static_cast<int>(recipe_.style.columns) - 1; });
  choice(
      form, tr("Font"), texts(paper_fonts()), [this](int at) { recipe_.style.font = paper_fonts()[static_cast<size_t>(at)]; },
      [this] {
        return static_cast<int>(std::find(paper_fonts().begin(), paper_fonts().end(), recipe_.style.font) - paper_fonts().begin());
      });
  number(form, tr("Type"), tr(" pt"), 4, 40, [this] { return &recipe_.style.font_points; });
  number(form, tr("Lines"), tr(" pt"), 0.2, 10, [this] { return &recipe_.style.line_points; });
  choice(
      form, tr("Names"), {tr("legend over the chart"), tr("at the ends of the curves"), tr("none")},
      [this](int at) { recipe_.style.legend = static_cast<LegendPlace>(at); }, [this] { return static_cast<int>(recipe_.style.legend); });
  choice(
      form, tr("Colour map"), texts(colour_maps()), [this](int at) { recipe_.style.colour_map = colour_maps()[static_cast<size_t>(at)]; },
      [this] {
        return static_cast<int>(std::find(colour_maps().begin(), colour_maps().end(), recipe_.style.colour_map) - colour_maps().begin());
      });
  auto* letters = new QCheckBox(tr("(a), (b) over panels"), this);
  form.addRow(QString(), letters);
  fillers_.push_back([this, letters] { letters->setChecked(recipe_.style.letters); });
  connect(letters, &QCheckBox::toggled, this, [this](bool on) {
    recipe_.style.letters = on;
    told();
  });
  choice(
      form, tr("PNG"), {"150 dpi", "300 dpi", "600 dpi"}, [this](int at) { recipe_.style.dpi = 150 << at; },
      [this] { return recipe_.style.dpi < 300   ? 0
                      : recipe_.style.dpi < 600 ? 1
                                                : 2; });
  auto* formats = new QHBoxLayout;
  for (const char* format : {"pdf", "svg", "png", "csv", "tex"}) {
    auto* box = new QCheckBox(QString::fromLatin1(format).toUpper(), this);
    formats->addWidget(box);
    const auto has = [this, format] { return std::find(recipe_.formats.begin(), recipe_.formats.end(), format) != recipe_.formats.end(); };
    fillers_.push_back([box, has] { box->setChecked(has()); });
    connect(box, &QCheckBox::toggled, this, [this, format, has](bool on) {
      if (on && !has()) recipe_.formats.emplace_back(format);
      if (!on) std::erase(recipe_.formats, format);
      told();
    });
  }
  formats->addStretch();
  form.addRow(tr("Files"), formats);
}

void RecipeForm::makePanels(QFormLayout& form) {
  panels_ = new QListWidget(this);
  panels_->setAccessibleName(tr("Panels"));
  panels_->setMaximumHeight(90);
  auto* buttons = new QHBoxLayout;
  const auto button = [&](const QString& text, const QString& name, auto change) {
    auto* one = new QToolButton(this);
    one->setText(text);
    one->setAccessibleName(name);
    one->setToolTip(name);
    buttons->addWidget(one);
    connect(one, &QToolButton::clicked, this, [this, change] { changePanels(change); });
  };
  using Panels = std::vector<PanelRecipe>;
  const auto at = [](size_t i) { return static_cast<std::ptrdiff_t>(i); };
  button(tr("Add"), tr("Add a panel"), [at](Panels& all, size_t i) { all.insert(all.begin() + at(i) + 1, all[i]); });
  button(tr("Remove"), tr("Remove the panel"), [at](Panels& all, size_t i) {
    if (all.size() > 1) all.erase(all.begin() + at(i));
  });
  button(tr("Up"), tr("Earlier panel"), [](Panels& all, size_t i) {
    if (i > 0) std::swap(all[i], all[i - 1]);
  });
  button(tr("Down"), tr("Later panel"), [](Panels& all, size_t i) {
    if (i + 1 < all.size()) std::swap(all[i], all[i + 1]);
  });
  buttons->addStretch();
  form.addRow(tr("Panels"), panels_);
  form.addRow(QString(), buttons);
  connect(panels_, &QListWidget::currentRowChanged, this, [this](int row) {
    if (filling_ || row < 0) return;
    panel_ = static_cast<size_t>(row);
    fill();
  });
}

/// What the panel chosen in the list draws; a field is there for the charts that know it.
void RecipeForm::makePanel(QFormLayout& form) {
  const auto only = [&](QWidget* field, const QStringList& charts) { of_charts_.emplace_back(field, charts); };
  choice(
      form, tr("Chart"),
      {tr("losses"),
       tr("OOD against pre-training loss"),
       tr("gap"),
       tr("a series"),
       tr("entropy by layer"),
       tr("layers and heads"),
       tr("a number by a setting"),
       tr("loss by position"),
       tr("table"),
       tr("scores over a number"),
       tr("map of scores"),
       tr("dots of scores"),
       tr("table of scores"),
       tr("held-back against training loss"),
       tr("loss over length"),
       tr("loss of the last tokens over length"),
       tr("right answers over a number"),
       tr("training speed over length"),
       tr("time to first token over length"),
       tr("time of a token over length"),
       tr("state over length"),
       tr("decoding speed over batch"),
       tr("speed with prompts over batch"),
       tr("table of speeds")},
      [this](int chosen) {
        panel().chart = panel_charts()[static_cast<size_t>(chosen)];
        if (panel().chart == "series" && panel().series.empty()) panel().series = "gradient_norm";
        fill();
      },
      [this] { return static_cast<int>(std::find(panel_charts().begin(), panel_charts().end(), panel().chart) - panel_charts().begin()); });
  line(form, tr("Panel title"), {}, [this] { return &panel().title; });
  line(form, tr("Panel runs"), tr("Narrows the figure's runs, in the same words"), [this] { return &panel().runs; });
  only(choice(
           form, tr("x axis"), {tr("steps"), tr("tokens"), tr("FLOPs"), tr("seconds")},
           [this](int chosen) { panel().x = static_cast<XAxis>(chosen); }, [this] { return static_cast<int>(panel().x); }),
       {"loss", "gap", "series", "layers"});
  only(line(form, tr("Series"), tr("gradient_norm, ood/loss/code, tokens_per_second …"), [this] { return &panel().series; }), {"series"});
  only(line(form, tr("Domain"), tr("One OOD domain; empty: the mean of all"), [this] { return &panel().domain; }),
       {"trajectory", "position", "table", "length", "length-last"});
  only(line(form, tr("Statistic"), tr("entropy_normalized, distance, captured_mass …"), [this] { return &panel().statistic; }),
       {"layers", "heads"});
  only(line(form, tr("Value"), tr("ood, validation, gap, perplexity (training), validation_perplexity, entropy, or a series"),
            [this] { return &panel().value; }),
       {"setting"});
  only(line(form, tr("Against"), tr("A setting like architecture.window, parameters, tokens, tokens_times_parameters, or a series"),
            [this] { return &panel().against; }),
       {"setting", "score-curve", "score-map", "answers"});
  only(choice(
           form, tr("Fit"), {tr("none"), tr("power law"), tr("power law with a floor")},
           [this](int chosen) { panel().fit = static_cast<Fit>(chosen); }, [this] { return static_cast<int>(panel().fit); }),
       {"setting"});
  makeScores(form);
  for (const bool x : {true, false})
    choice(
        form, x ? tr("x scale") : tr("y scale"), {tr("linear"), tr("logarithmic"), tr("logarithmic to both sides of 0")},
        [this, x](int chosen) { (x ? panel().x_scale : panel().y_scale) = static_cast<AxisKind>(chosen); },
        [this, x] { return static_cast<int>(x ? panel().x_scale : panel().y_scale); });
  range(form, tr("x range"), [this] { return &panel().x_range; });
  range(form, tr("y range"), [this] { return &panel().y_range; });
  only(choice(
           form, tr("Bands"), {tr("standard deviation"), tr("standard error"), tr("95 % interval")},
           [this](int chosen) { panel().spread = static_cast<Spread>(chosen); }, [this] { return static_cast<int>(panel().spread); }),
       {"loss", "gap", "series", "length", "length-last"});
  only(number(form, tr("Smoothing"), tr(" of the x axis"), 0, 1e15, [this] { return &panel().smoothing; }), {"loss", "series"});
}

/// What counts as pre-training loss, and which text the losses at the end are of.
void RecipeForm::makeLosses(QFormLayout& form) {
  const QStringList kinds{QStringLiteral("validation"), QStringLiteral("weighted"), QStringLiteral("train")};
  of_charts_.emplace_back(
      choice(
          form, tr("Pre-training loss"), {tr("validation, each domain the same"), tr("validation by tokens"), tr("training loss")},
          [this, kinds](int chosen) {
            panel().pretraining = kinds[chosen].toStdString();
            if (chosen != 2) panel().window = PretrainingLoss{}.window;
          },
          [this, kinds] { return static_cast<int>(kinds.indexOf(QString::fromStdString(panel().pretraining))); }),
      QStringList{"trajectory", "table"});
  of_charts_.emplace_back(
      choice(
          form, tr("Losses at the end"), {tr("as recorded (validation)"), tr("test split, as the study evaluated it")},
          [this](int chosen) { panel().split = chosen == 1 ? "test" : "validation"; }, [this] { return panel().split == "test" ? 1 : 0; }),
      QStringList{"setting", "table"});
}

/// Which losses and scores, and what stands beside a panel's own: numbers of papers, and what speeds are relative to.
void RecipeForm::makeScores(QFormLayout& form) {
  makeLosses(form);
  of_charts_.emplace_back(
      line(form, tr("Task"), tr("What the tasks' names begin with: s-niah-2, mqar …; empty: all"), [this] { return &panel().task; }),
      QStringList{"score-curve", "score-map", "score-dots", "scores"});
  of_charts_.emplace_back(
      line(form, tr("Rows"), tr("The number up: depth, pairs, length, architecture.width …"), [this] { return &panel().rows; }),
      QStringList{"score-map"});
  of_charts_.emplace_back(line(form, tr("Published"), tr("A table of a paper, drawn hollow beside: 2506.11305-table-6 …; empty: none"),
                               [this] { return &panel().published; }),
                          QStringList{"setting", "score-dots", "scores", "table", "speed-table"});
  QStringList benchmarks{QStringLiteral("speed-table")};
  for (const std::string& quantity : bench_quantities()) benchmarks << QString::fromStdString(quantity);
  of_charts_.emplace_back(line(form, tr("Relative to"), tr("A model whose speed is 1: transformer-pp-10m …; empty: speeds as they are"),
                               [this] { return &panel().relative; }),
                          benchmarks);
}

QLineEdit* RecipeForm::line(QFormLayout& form, const QString& name, const QString& help, const std::function<std::string*()>& value) {
  auto* field = new QLineEdit(this);
  field->setAccessibleName(name);
  field->setPlaceholderText(help);
  field->setToolTip(help);
  form.addRow(name, field);
  fillers_.push_back([field, value] {
    if (field->text().toStdString() == *value()) return;
    field->setText(QString::fromStdString(*value()));
    field->setCursorPosition(0);  // its beginning is seen
  });
  connect(field, &QLineEdit::textEdited, this, [this, value](const QString& text) {
    *value() = text.toStdString();
    told();
  });
  return field;
}

QComboBox* RecipeForm::choice(QFormLayout& form, const QString& name, const QStringList& entries, const std::function<void(int)>& take,
                              const std::function<int()>& place) {
  auto* field = new QComboBox(this);
  field->setAccessibleName(name);
  field->addItems(entries);
  field->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  field->setMinimumContentsLength(8);
  calm_wheel(field);
  form.addRow(name, field);
  fillers_.push_back([field, place] { field->setCurrentIndex(place()); });
  connect(field, &QComboBox::currentIndexChanged, this, [this, take](int at) {
    if (filling_) return;
    take(at);
    told();
  });
  return field;
}

QDoubleSpinBox* RecipeForm::number(QFormLayout& form, const QString& name, const QString& unit, double low, double high,
                                   const std::function<double*()>& value) {
  auto* field = new QDoubleSpinBox(this);
  field->setAccessibleName(name);
  field->setRange(low, high);
  field->setDecimals(1);
  field->setSuffix(unit);
  calm_wheel(field);
  form.addRow(name, field);
  fillers_.push_back([field, value] { field->setValue(*value()); });
  connect(field, &QDoubleSpinBox::valueChanged, this, [this, value](double now) {
    if (filling_) return;
    *value() = now;
    told();
  });
  return field;
}

void RecipeForm::range(QFormLayout& form, const QString& name, const std::function<std::optional<std::array<double, 2>>*()>& value) {
  auto* field = new QLineEdit(this);
  field->setAccessibleName(name);
  field->setPlaceholderText(tr("all data, or low … high"));
  form.addRow(name, field);
  fillers_.push_back([field, value] {
    if (range_of(field->text()) != *value()) field->setText(range_text(*value()));
  });
  connect(field, &QLineEdit::textEdited, this, [this, value](const QString& text) {
    *value() = range_of(text);
    told();
  });
}

void RecipeForm::list(QFormLayout& form, const QString& name, const QString& help,
                      const std::function<std::vector<std::string>*()>& value) {
  auto* field = new QLineEdit(this);
  field->setAccessibleName(name);
  field->setPlaceholderText(help);
  field->setToolTip(help);
  form.addRow(name, field);
  const auto read = [](const QString& text) {
    std::vector<std::string> parts;
    for (const QString& part : text.split(QLatin1Char(','), Qt::SkipEmptyParts))
      if (!part.trimmed().isEmpty()) parts.push_back(part.trimmed().toStdString());
    return parts;
  };
  fillers_.push_back([field, value, read] {
    if (read(field->text()) == *value()) return;
    QStringList parts;
    for (const std::string& part : *value()) parts << QString::fromStdString(part);
    field->setText(parts.join(QStringLiteral(", ")));
    field->setCursorPosition(0);
  });
  connect(field, &QLineEdit::textEdited, this, [this, value, read](const QString& text) {
    *value() = read(text);
    told();
  });
}

PanelRecipe& RecipeForm::panel() {
  panel_ = std::min(panel_, recipe_.panels.size() - 1);
  return recipe_.panels[panel_];
}

void RecipeForm::changePanels(const std::function<void(std::vector<PanelRecipe>&, size_t)>& change) {
  const std::vector<PanelRecipe> before = recipe_.panels;
  change(recipe_.panels, panel_);
  if (recipe_.panels == before) return;
  if (recipe_.panels.size() > before.size()) ++panel_;
  for (size_t i = 0; recipe_.panels.size() == before.size() && i < before.size(); ++i)
    if (recipe_.panels[i] == before[panel_] && i != panel_) {  // the one that was moved stays chosen
      panel_ = i;
      break;
    }
  fill();
  told();
}

void RecipeForm::setRecipe(const FigureRecipe& recipe) {
  recipe_ = recipe;
  panel_ = 0;
  fill();
}

void RecipeForm::fill() {
  const bool before = std::exchange(filling_, true);
  panels_->clear();
  for (size_t i = 0; i < recipe_.panels.size(); ++i) {
    const PanelRecipe& one = recipe_.panels[i];
    panels_->addItem(QStringLiteral("%1  %2").arg(QChar(static_cast<char16_t>(u'a' + i))).arg(QString::fromStdString(one.chart)) +
                     (one.title.empty() ? QString() : QStringLiteral(": ") + QString::fromStdString(one.title)));
  }
  panel();
  panels_->setCurrentRow(static_cast<int>(panel_));
  for (const auto& filler : fillers_) filler();
  const QString chart = QString::fromStdString(panel().chart);
  for (const auto& [field, charts] : of_charts_) {
    field->setVisible(charts.contains(chart));
    panel_form_->labelForField(field)->setVisible(charts.contains(chart));
  }
  filling_ = before;
}

void RecipeForm::told() {
  if (!filling_) Q_EMIT changed();
}

}  // namespace saccade::ui
