// saccade coordinates CONFIG: how activations grow with the width after a few steps (arXiv:2203.03466, appendix D.1).
#include "analysis/training/coordinates.h"

#include "analysis/figures/count_text.h"
#include "analysis/figures/palette.h"
#include "analysis/runs/provenance.h"
#include "app/cli/command.h"
#include "app/cli/config_options.h"
#include "app/cli/output.h"
#include "app/cli/render.h"

namespace saccade::cli {
namespace {

struct Options {
  std::shared_ptr<ConfigOptions> config;
  std::vector<int64_t> widths{32, 64, 128, 256};
  int64_t steps = 5;
  std::string out;  ///< of the figure; empty: none
};

/// What training has changed, or without steps the activations themselves, against the width: a curve for each layer and the logits.
Figure coordinates_figure(const RunConfig& config, const std::vector<Coordinates>& all, int64_t steps) {
  const std::string what =
      steps > 0 ? "change after " + std::to_string(steps) + (steps > 1 ? " steps" : " step") : "activation at the start";
  Figure figure{.id = "coordinates", .title = "Coordinate check, initialisation " + config.training.initialisation};
  figure.x = {.title = "width", .logarithmic = true};
  figure.y = {.title = what + " (root mean square)", .logarithmic = true};
  std::vector<std::string> names;
  for (size_t l = 0; l < all.front().layers.size(); ++l) names.push_back("layer " + std::to_string(l));
  names.emplace_back("logits");
  std::vector<std::string> kinds(names.size(), "layer");  // shades of one hue
  kinds.back() = "logits";
  const std::vector<VariantLook> looks = variant_looks(kinds);
  for (size_t i = 0; i < names.size(); ++i) {
    Curve curve;
    curve.label = names[i], curve.colour = looks[i].colour, curve.marker = looks[i].marker;
    if (i + 1 == names.size()) curve.dash = Dash::dash;
    for (const Coordinates& c : all) {
      const bool logits = i == c.layers.size();
      curve.x.push_back(static_cast<double>(c.width));
      curve.y.push_back(steps > 0 ? (logits ? c.change : c.changes[i]) : logits ? c.logits : c.layers[i]);
    }
    figure.curves.push_back(std::move(curve));
  }
  figure.provenance = {config.name + ", config " + to_json(config).dump(), library_versions().value("saccade", "")};
  return figure;
}

int run(const Options& options) {
  const RunConfig config = options.config->load();
  if (!options.out.empty()) require_figure_format(options.out);
  const std::vector<Coordinates> all =
      check_coordinates(config, options.widths, options.steps, {[](const std::string& line) { say(line); }, {}});
  nlohmann::json json{{"steps", options.steps},
                      {"initialisation", config.training.initialisation},
                      {"widths", options.widths},
                      {"activations", nlohmann::json::array()}};
  std::vector<std::string> header{"activation (root mean square)"};
  std::vector<double> widths;
  for (const Coordinates& c : all) header.push_back(std::to_string(c.width)), widths.push_back(static_cast<double>(c.width));
  header.emplace_back("grows with width to the power");
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, auto value) {
    std::vector<std::string> row{name};
    std::vector<double> sizes;
    for (const Coordinates& c : all) {
      sizes.push_back(value(c));
      row.push_back(number(sizes.back(), 4));
    }
    row.push_back(number(growth(widths, sizes), 2));
    rows.push_back(std::move(row));
    json["activations"].push_back({{"name", name}, {"root_mean_square", sizes}, {"growth", growth(widths, sizes)}});
  };
  for (size_t l = 0; l < all.front().layers.size(); ++l) {
    add("layer " + std::to_string(l), [l](const Coordinates& c) { return c.layers[l]; });
    if (options.steps > 0) add("layer " + std::to_string(l) + ", change", [l](const Coordinates& c) { return c.changes[l]; });
  }
  add("logits", [](const Coordinates& c) { return c.logits; });
  if (options.steps > 0) add("logits, change", [](const Coordinates& c) { return c.change; });
  if (!options.out.empty()) {
    write_figure(coordinates_figure(config, all, options.steps), options.out);
    json["file"] = options.out;
  }
  print_result(
      json, "after " + counted(options.steps, "step") + ", initialisation " + config.training.initialisation + "\n" + table(header, rows));
  return 0;
}

const RegisterCommand command{
    {"coordinates", "How activations grow with the width after a few steps: a check of muP.",
     "saccade coordinates config.json --set training.initialisation=mup --set training.mup_base_width=32", [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.description(
           "Trains a config at several widths for a few steps and shows the root mean square of activations at a sequence of validation "
           "text: what every layer leaves to the next, the logits, and what training has changed in them. With training.initialisation mup "
           "no size should grow with the width (arXiv:2203.03466, appendix D.1).");
       o->config = add_config_options(app);
       app.add_option("--widths", o->widths, "Widths, with commas between")
           ->delimiter(',')
           ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
           ->capture_default_str();
       app.add_option("--steps", o->steps, "Training steps at each width")->check(CLI::Range(0, 100000))->capture_default_str();
       app.add_option("-o,--out", o->out, "Also draw it: a figure as .pdf .svg .png .csv .json");
       return [o] { return run(*o); };
     }}};

}  // namespace
}  // namespace saccade::cli
