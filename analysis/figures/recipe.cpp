#include "analysis/figures/recipe.h"

#include <algorithm>
#include <tuple>

#include "analysis/figures/bench_results.h"
#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/resources.h"
#include "models/settings.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> kAxes{"step", "tokens", "flops", "seconds"}, kScales{"linear", "log", "symlog"},
    kLegends{"above", "direct", "none"}, kSpreads{"deviation", "error", "interval"}, kFits{"none", "power-law", "power-law-floor"},
    kCheckpoints{"newest", "mean"}, kPretraining{"validation", "weighted", "train"}, kSplits{"validation", "test"},
    kFormats{"pdf", "svg", "png", "csv", "tex", "json"};

[[noreturn]] void refuse(const std::string& pointer, const Json& value, const std::string& expected) {
  throw UsageError(pointer + " is " + value.dump() + "; expected " + expected);
}

std::string text_at(const Json& object, const char* key, const std::string& pointer, const std::string& otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_string()) refuse(pointer + "/" + key, object[key], "text");
  return object[key];
}

double number_at(const Json& object, const char* key, const std::string& pointer, double otherwise, double low, double high) {
  if (!object.contains(key)) return otherwise;
  const Json& value = object[key];
  if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high))
    refuse(pointer + "/" + key, value, "a number from " + Json(low).dump() + " to " + Json(high).dump());
  return value;
}

std::string one_of(const Json& object, const char* key, const std::string& pointer, const std::vector<std::string>& names,
                   const std::string& otherwise) {
  const std::string text = text_at(object, key, pointer, otherwise);
  if (std::find(names.begin(), names.end(), text) == names.end())
    throw UsageError(pointer + "/" + key + " is \"" + text + "\"" + did_you_mean(text, names));
  return text;
}

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::vector<std::string> texts_at(const Json& object, const char* key, const std::string& pointer, std::vector<std::string> otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_array()) refuse(pointer + "/" + key, object[key], "a list of texts");
  std::vector<std::string> list;
  for (const Json& each : object[key]) {
    if (!each.is_string()) refuse(pointer + "/" + key, object[key], "a list of texts");
    list.push_back(each);
  }
  return list;
}

std::optional<std::array<double, 2>> range_at(const Json& object, const char* key, const std::string& pointer) {
  if (!object.contains(key)) return {};
  const Json& range = object[key];
  if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number() ||
      !(range[0].get<double>() < range[1].get<double>()))
    refuse(pointer + "/" + key, range, "[low, high]");
  return std::array<double, 2>{range[0], range[1]};
}

bool flag_at(const Json& object, const char* key, const std::string& pointer, bool otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_boolean()) refuse(pointer + "/" + key, object[key], "true or false");
  return object[key];
}

/// A preset by "size", and what is written beside it.
PageStyle style_from(const Json& object) {
  const std::string at = "/style";
  if (!object.is_object()) refuse(at, object, "an object");
  check_known_keys(
      object,
      {"size", "width_mm", "panel_height_mm", "columns", "font", "font_points", "line_points", "legend", "colour_map", "letters", "dpi"},
      at);
  PageStyle style;
  std::vector<std::string> sizes;
  for (const PaperSize& size : paper_sizes()) sizes.push_back(size.id);
  if (object.contains("size")) {
    const PaperSize& size = paper_sizes()[place_of(sizes, one_of(object, "size", at, sizes, ""))];
    style.width_mm = size.width_mm, style.font = size.font, style.font_points = size.font_points, style.line_points = size.line_points;
  }
  style.width_mm = number_at(object, "width_mm", at, style.width_mm, 20, 1000);
  style.panel_height_mm = number_at(object, "panel_height_mm", at, style.panel_height_mm, 15, 1000);
  style.columns = static_cast<int64_t>(number_at(object, "columns", at, static_cast<double>(style.columns), 1, 8));
  style.font = text_at(object, "font", at, style.font);
  style.font_points = number_at(object, "font_points", at, style.font_points, 4, 40);
  style.line_points = number_at(object, "line_points", at, style.line_points, 0.2, 10);
  style.legend = static_cast<LegendPlace>(place_of(kLegends, one_of(object, "legend", at, kLegends, "above")));
  style.colour_map = one_of(object, "colour_map", at, colour_maps(), style.colour_map);
  style.letters = flag_at(object, "letters", at, style.letters);
  style.dpi = static_cast<int64_t>(number_at(object, "dpi", at, static_cast<double>(style.dpi), 30, 2400));
  return style;
}

/// Which losses a panel is of, in the words of studies and `saccade compare`.
void take_losses(PanelRecipe& panel, const Json& object, const std::string& at) {
  panel.pretraining = one_of(object, "pretraining", at, kPretraining, panel.pretraining);
  panel.window = number_at(object, "window", at, panel.window, 1, 1e30);
  panel.split = one_of(object, "split", at, kSplits, panel.split);
  if (object.contains("pretraining") && !takes_pretraining(panel))
    throw UsageError(at + "/pretraining is of charts trajectory and table; the chart is " + panel.chart);
  if (object.contains("window") && panel.pretraining != "train")
    throw UsageError(at + "/window goes with " + at + "/pretraining \"train\"");
  if (object.contains("split") && !takes_split(panel))
    throw UsageError(at +
                     "/split is of losses at the end: of chart table, and of chart setting with validation, ood, gap or "
                     "validation_perplexity");
}

PanelRecipe panel_from(const Json& object, const std::string& at) {
  if (!object.is_object()) refuse(at, object, "an object");
  check_known_keys(object, {"chart",     "title",          "runs",     "x",           "x_scale",     "y_scale", "x_range",
                            "y_range",   "series",         "domain",   "statistic",   "at_loss",     "value",   "against",
                            "fit",       "task",           "tasks",    "checkpoints", "rows",        "spread",  "smoothing",
                            "published", "published_rows", "relative", "prompt",      "pretraining", "window",  "split"},
                   at);
  PanelRecipe panel;
  panel.chart = one_of(object, "chart", at, panel_charts(), panel.chart);
  panel.title = text_at(object, "title", at, ""), panel.runs = text_at(object, "runs", at, "");
  panel.x = static_cast<XAxis>(place_of(kAxes, one_of(object, "x", at, kAxes, "tokens")));
  panel.x_scale = static_cast<AxisKind>(place_of(kScales, one_of(object, "x_scale", at, kScales, "linear")));
  panel.y_scale = static_cast<AxisKind>(place_of(kScales, one_of(object, "y_scale", at, kScales, "linear")));
  panel.x_range = range_at(object, "x_range", at), panel.y_range = range_at(object, "y_range", at);
  panel.series = text_at(object, "series", at, ""), panel.domain = text_at(object, "domain", at, "");
  panel.statistic = text_at(object, "statistic", at, "");
  if (object.contains("at_loss")) panel.at_loss = number_at(object, "at_loss", at, 0, 0, 1e6);
  panel.value = text_at(object, "value", at, panel.value), panel.against = text_at(object, "against", at, panel.against);
  panel.fit = static_cast<Fit>(place_of(kFits, one_of(object, "fit", at, kFits, "none")));
  panel.task = text_at(object, "task", at, ""), panel.rows = text_at(object, "rows", at, panel.rows);
  panel.tasks = texts_at(object, "tasks", at, {});
  panel.checkpoint_mean = one_of(object, "checkpoints", at, kCheckpoints, "newest") == "mean";
  panel.spread = static_cast<Spread>(place_of(kSpreads, one_of(object, "spread", at, kSpreads, "deviation")));
  panel.smoothing = number_at(object, "smoothing", at, 0, 0, 1e30);
  panel.published = text_at(object, "published", at, ""), panel.published_rows = texts_at(object, "published_rows", at, {});
  panel.relative = text_at(object, "relative", at, "");
  panel.prompt = static_cast<int64_t>(number_at(object, "prompt", at, 0, 0, 1e12));
  take_losses(panel, object, at);
  if (!panel.published.empty() && !shows_published(panel.chart))
    throw UsageError(at + "/published is of charts setting, score-dots, scores, table and speed-table; the chart is " + panel.chart);
  if (!panel.relative.empty() && !is_bench_chart(panel.chart))
    throw UsageError(at + "/relative is of charts of benchmarks; the chart is " + panel.chart);
  if (panel.chart == "series" && panel.series.empty())
    throw UsageError(at + " shows a series; expected its name as " + at + "/series, like gradient_norm");
  return panel;
}

Json to_json(const PanelRecipe& panel) {
  const PanelRecipe usual;
  Json object{{"chart", panel.chart}};
  const auto put = [&](const char* key, const auto& value, const auto& otherwise) {
    if (!(value == otherwise)) object[key] = value;
  };
  put("title", panel.title, usual.title), put("runs", panel.runs, usual.runs);
  put("x", kAxes[static_cast<size_t>(panel.x)], kAxes[static_cast<size_t>(usual.x)]);
  put("x_scale", kScales[static_cast<size_t>(panel.x_scale)], kScales[0]);
  put("y_scale", kScales[static_cast<size_t>(panel.y_scale)], kScales[0]);
  if (panel.x_range) object["x_range"] = *panel.x_range;
  if (panel.y_range) object["y_range"] = *panel.y_range;
  put("series", panel.series, usual.series), put("domain", panel.domain, usual.domain);
  put("statistic", panel.statistic, usual.statistic);
  if (panel.at_loss) object["at_loss"] = *panel.at_loss;
  put("value", panel.value, usual.value), put("against", panel.against, usual.against);
  put("fit", kFits[static_cast<size_t>(panel.fit)], kFits[0]);
  put("task", panel.task, usual.task), put("rows", panel.rows, usual.rows);
  put("tasks", panel.tasks, usual.tasks);
  put("checkpoints", kCheckpoints[panel.checkpoint_mean ? 1 : 0], kCheckpoints[0]);
  put("spread", kSpreads[static_cast<size_t>(panel.spread)], kSpreads[0]);
  put("smoothing", panel.smoothing, usual.smoothing);
  if (shows_published(panel.chart))
    put("published", panel.published, usual.published), put("published_rows", panel.published_rows, usual.published_rows);
  if (takes_pretraining(panel)) {  // a chart that was another one before keeps what it does not take to itself
    put("pretraining", panel.pretraining, usual.pretraining);
    if (panel.pretraining == "train") put("window", panel.window, usual.window);
  }
  if (takes_split(panel)) put("split", panel.split, usual.split);
  if (is_bench_chart(panel.chart)) put("relative", panel.relative, usual.relative), put("prompt", panel.prompt, usual.prompt);
  return object;
}

}  // namespace

const std::vector<std::string>& panel_charts() {
  static const std::vector<std::string> charts = [] {
    std::vector<std::string> all{"loss",    "trajectory", "gap",    "series",      "layers",    "heads",
                                 "setting", "position",   "table",  "score-curve", "score-map", "score-dots",
                                 "scores",  "held-back",  "length", "length-last", "answers"};
    all.insert(all.end(), bench_quantities().begin(), bench_quantities().end());
    all.push_back("speed-table");
    return all;
  }();
  return charts;
}

bool is_bench_chart(const std::string& chart) {
  const std::vector<std::string>& quantities = bench_quantities();
  return chart == "speed-table" || std::find(quantities.begin(), quantities.end(), chart) != quantities.end();
}

bool takes_pretraining(const PanelRecipe& panel) { return panel.chart == "trajectory" || panel.chart == "table"; }

bool takes_split(const PanelRecipe& panel) {
  return panel.chart == "table" || (panel.chart == "setting" && (is_end_loss(panel.value) || is_end_loss(panel.against)));
}

bool is_table_chart(const std::string& chart) { return chart == "table" || chart == "scores" || chart == "speed-table"; }

bool shows_published(const std::string& chart) {
  return chart == "setting" || chart == "score-dots" || chart == "scores" || chart == "table" || chart == "speed-table";
}

void choose_pretraining(FigureRecipe& recipe, const std::string& kind, double window) {
  bool taken = false;
  for (PanelRecipe& panel : recipe.panels)
    if (takes_pretraining(panel)) panel.pretraining = kind, panel.window = window, taken = true;
  if (!taken) throw UsageError("the recipe " + recipe.name + " shows no pre-training loss: it has no chart trajectory or table");
}

void choose_split(FigureRecipe& recipe, const std::string& split) {
  bool taken = false;
  for (PanelRecipe& panel : recipe.panels)
    if (takes_split(panel)) panel.split = split, taken = true;
  if (!taken) throw UsageError("the recipe " + recipe.name + " shows no losses at the end: it has no table, and no chart setting of them");
}

bool FigureRecipe::operator==(const FigureRecipe& other) const {
  const auto parts = [](const FigureRecipe& r) {
    return std::tie(r.name, r.title, r.source, r.runs, r.folders, r.bench, r.formats, r.style, r.panels);
  };
  return parts(*this) == parts(other);
}

FigureRecipe parse_recipe(const std::string& text, const std::string& origin, const std::string& name) try {
  const Json object = parse_json_text(text, origin);
  if (!object.is_object()) throw UsageError("the recipe is " + object.dump() + "; expected an object");
  check_known_keys(object, {"title", "source", "runs", "folders", "bench", "formats", "style", "panels"}, "");
  FigureRecipe recipe;
  recipe.name = name;
  recipe.title = text_at(object, "title", "", ""), recipe.source = text_at(object, "source", "", "");
  recipe.runs = text_at(object, "runs", "", ""), recipe.folders = texts_at(object, "folders", "", {});
  recipe.bench = texts_at(object, "bench", "", {});
  recipe.formats = texts_at(object, "formats", "", recipe.formats);
  for (const std::string& format : recipe.formats)
    if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end())
      throw UsageError("/formats holds \"" + format + "\"" + did_you_mean(format, kFormats));
  if (object.contains("style")) recipe.style = style_from(object["style"]);
  if (!object.contains("panels")) return recipe;
  if (!object["panels"].is_array() || object["panels"].empty() || object["panels"].size() > 26)
    refuse("/panels", object["panels"], "a list of 1 to 26 panels");
  recipe.panels.clear();
  for (size_t i = 0; i < object["panels"].size(); ++i)
    recipe.panels.push_back(panel_from(object["panels"][i], "/panels/" + std::to_string(i)));
  return recipe;
} catch (const UsageError& error) {
  const std::string what = error.what();
  throw UsageError(what.starts_with(origin) ? what : origin + ": " + what);
}

FigureRecipe load_recipe(const fs::path& file) {
  FigureRecipe recipe = parse_recipe(read_text(file), file.string(), file.stem().string());
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  recipe.home = folder.filename() == "figures" ? folder.parent_path() : folder;
  return recipe;
}

Json to_json(const FigureRecipe& recipe) {
  Json object{{"title", recipe.title}, {"runs", recipe.runs}, {"formats", recipe.formats}, {"style", to_json(recipe.style)}};
  if (!recipe.source.empty()) object["source"] = recipe.source;
  if (!recipe.folders.empty()) object["folders"] = recipe.folders;
  if (!recipe.bench.empty()) object["bench"] = recipe.bench;
  object["panels"] = Json::array();
  for (const PanelRecipe& panel : recipe.panels) object["panels"].push_back(to_json(panel));
  return object;
}

std::vector<std::string> shipped_recipes() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(resource_folder() / "figures", error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_recipe(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json") || name_or_file.find('/') != std::string::npos) return name_or_file;
  const std::vector<std::string> names = shipped_recipes();
  if (std::find(names.begin(), names.end(), name_or_file) != names.end()) return resource_folder() / "figures" / (name_or_file + ".json");
  throw UsageError("there is no recipe \"" + name_or_file + "\"" + did_you_mean(name_or_file, names));
}

}  // namespace saccade
