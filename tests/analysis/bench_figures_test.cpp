// Files of `saccade bench --out`, and their charts.
#include <QtTest>
#include <cmath>
#include <fstream>

#include "analysis/evaluation/benchmark_json.h"
#include "analysis/figures/bench_figures.h"
#include "analysis/figures/empty_panels.h"
#include "analysis/figures/recipe.h"
#include "kernels/engine/error.h"

using namespace saccade;
using Json = nlohmann::json;

namespace {

Json timing(double ms) { return {{"ms", ms}, {"fastest_ms", 0.9 * ms}, {"slowest_ms", 1.2 * ms}}; }

Json step(const char* name, const char* title, int64_t length, double ms) {
  Json json = timing(ms);
  json.update({{"preset", name},
               {"title", title},
               {"sequence_length", length},
               {"batch_tokens", 4096},
               {"tokens_per_s", 4096 / ms * 1e3},
               {"gpu", ""},
               {"processor", "a processor"}});
  return json;
}

Json without_times(Json entry) {
  for (const char* key : {"ms", "fastest_ms", "slowest_ms", "tokens_per_s"}) entry.erase(key);
  entry["refusal"] = "a step takes 9 MiB, 5 MiB are free";
  return entry;
}

Json prompt(int64_t length, double ms, double batch_ms) {
  return {
      {"length", length},
      {"prompt", timing(ms)},
      {"token", timing(ms / 10)},
      {"state_bytes", 4 * length},
      {"batches", {{{"batch", 8}, {"step", timing(batch_ms)}, {"tokens_per_s", 8e3 / batch_ms}, {"whole_tokens_per_s", 4e3 / batch_ms}}}}};
}

Json model(const char* name, const char* title, const Json& points) {
  return {{"preset", name}, {"title", title}, {"gpu", ""}, {"processor", "a processor"}, {"points", points}};
}

}  // namespace

class BenchFiguresTest : public QObject {
  Q_OBJECT

 private:
  QTemporaryDir folder_;
  std::filesystem::path write(const char* name, Json result, const char* made = "2026-01-02T00:00:00Z") const {
    result.update({{"saccade_bench", 1}, {"made", made}});
    const std::filesystem::path file = std::filesystem::path(folder_.path().toStdString()) / "bench" / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << result.dump();
    return file;
  }

 private Q_SLOTS:
  void init() { std::filesystem::remove_all(std::filesystem::path(folder_.path().toStdString()) / "bench"); }

  void stepsByLength() {
    const std::vector<BenchedModel> models =
        load_bench({write("a.json", {{"steps",
                                      {step("tpp", "Transformer++", 512, 20), step("tpp", "Transformer++", 1024, 40),
                                       step("avey", "Avey", 512, 10), without_times(step("avey", "Avey", 1024, 1))}}})});
    QCOMPARE(models.size(), size_t{2});
    const BenchFigure plain = bench_figure(models, "training-speed");
    QCOMPARE(plain.figure.curves.size(), size_t{2});
    const Curve& tpp = plain.figure.curves[0];
    QCOMPARE(tpp.label, std::string("Transformer++"));
    QCOMPARE(tpp.x.values(), (std::vector<double>{512, 1024}));
    QCOMPARE(tpp.y.values(), (std::vector<double>{204800, 102400}));
    QVERIFY(std::abs(tpp.low.values()[0] - 204800 / 1.2) < 1e-6 && std::abs(tpp.high.values()[0] - 204800 / 0.9) < 1e-6);
    QVERIFY(std::isnan(plain.figure.curves[1].y.back()));
    QCOMPARE(plain.notes, std::vector<std::string>{"Nothing of Avey at 1024 tokens: a step takes 9 MiB, 5 MiB are free."});
    const BenchFigure times = bench_figure(models, "training-speed", "tpp");
    QCOMPARE(times.figure.curves[1].y.values()[0], 2.0);
    QCOMPARE(times.figure.y.title, std::string("times as fast as tpp"));
    QVERIFY_THROWS_EXCEPTION(UsageError, bench_figure(models, "training-speed", "gpt"));

    const PageTable table = bench_table(models, "Transformer++", "");
    QCOMPARE(table.header, (std::vector<std::string>{"", "training, 512 tokens", "training, 1024 tokens"}));
    QCOMPARE(table.rows[0], (std::vector<std::string>{"Transformer++", "1.00×", "1.00×"}));
    QCOMPARE(table.rows[1], (std::vector<std::string>{"Avey", "2.00×", "does not fit"}));
    QCOMPARE(bench_table(models, "", "").rows[0][1], std::string("0.205 M"));
  }

  /// Beside runs a model of a run's name looks as the run does, and no other one has a run's look: a page has one legend.
  void looksBesideRuns() {
    const std::vector<BenchedModel> models = load_bench({write(
        "a.json",
        {{"steps",
          {step("tpp", "Transformer++", 512, 20), step("window", "Transformer++ window 64", 512, 10), step("avey", "Avey", 512, 10)}}})});
    const VariantLook black = variant_look("Transformer++", 0), grey = variant_look("Transformer++", 1);
    const std::vector<Curve> alone = bench_figure(models, "training-speed").figure.curves;
    QVERIFY(alone[0].colour == black.colour && alone[1].colour == grey.colour);
    const std::vector<Curve> beside =
        bench_figure(models, "training-speed", {}, 0, {{"Transformer++", grey}, {"deep", black}}).figure.curves;
    QCOMPARE(beside[0].label, std::string("Transformer++"));
    QVERIFY(beside[0].colour == grey.colour);
    QVERIFY(beside[1].colour != grey.colour && beside[1].colour != black.colour);
    QVERIFY(beside[2].colour == alone[2].colour);
  }

  void promptsAndBatches() {
    const std::vector<BenchedModel> models = load_bench(
        {write("a.json",
               {{"decoding",
                 {model("tpp", "Transformer++", {prompt(64, 20, 4), prompt(128, 60, 4)}),
                  model("avey", "Avey", {prompt(64, 10, 8), {{"length", 128}, {"refusal", "too long"}, {"batches", Json::array()}}})}}})});
    const BenchFigure first = bench_figure(models, "first-token");
    QCOMPARE(first.figure.curves[0].y.values(), (std::vector<double>{0.02, 0.06}));
    QCOMPARE(first.figure.y.title, std::string("first token (s)"));
    QCOMPARE(first.notes, std::vector<std::string>{"Nothing of Avey at 128 tokens: too long."});
    QCOMPARE(bench_figure(models, "first-token", "tpp").figure.curves[1].y.values()[0], 2.0);  // half of the time
    QCOMPARE(bench_figure(models, "state-bytes").figure.curves[0].y.values(), (std::vector<double>{256, 512}));
    const BenchFigure batches = bench_figure(models, "decoding-speed");  // behind the longest prompts
    QCOMPARE(batches.figure.curves.size(), size_t{1});
    QCOMPARE(batches.figure.x.title, std::string("sequences, prompts of 128"));
    QCOMPARE(batches.figure.curves[0].x.values(), std::vector<double>{8});
    QVERIFY(batches.figure.curves[0].low.empty());
    QCOMPARE(bench_figure(models, "decoding-speed", "tpp", 64).figure.curves[1].y.values()[0], 0.5);
    QCOMPARE(bench_table(models, "tpp", "").rows[1], (std::vector<std::string>{"Avey", "0.50×", "–", "0.50×", "–"}));
  }

  void whatWasMeasuredLastCounts() {
    write("b.json", {{"steps", {step("tpp", "Transformer++", 512, 20)}}}, "2026-01-01T00:00:00Z");
    write("a.json", {{"steps", {step("tpp", "Transformer++", 512, 10)}}}, "2026-01-03T00:00:00Z");
    const std::vector<BenchedModel> models = load_bench({std::filesystem::path(folder_.path().toStdString()) / "bench"});
    QCOMPARE(bench_figure(models, "training-speed").figure.curves[0].y.values(), std::vector<double>{409600});
    QVERIFY_THROWS_EXCEPTION(DataError, load_bench({"/nowhere/a.json"}));
    const std::filesystem::path other = write("other.json", Json::object());
    std::ofstream(other) << R"({"steps": []})";
    QVERIFY_THROWS_EXCEPTION(DataError, load_bench({other}));
    std::ofstream(other) << R"({"saccade_bench": 1, "steps": [{"preset": 1}]})";
    QVERIFY_THROWS_EXCEPTION(DataError, load_bench({other}));
  }

  void recipesReadTheFolderBesideRuns() {
    FigureRecipe recipe = load_recipe(find_recipe("2506.11305-figure-4"));
    recipe.home = folder_.path().toStdString();
    const FigurePage nothing = make_page(recipe, {});
    QCOMPARE(empty_parts(recipe, nothing).size(), recipe.panels.size());
    QVERIFY2(empty_words(recipe, nothing).starts_with("no file of saccade bench has what panel 1 (first-token)"),
             empty_words(recipe, nothing).c_str());
    QVERIFY2(nothing.caption.find("no run has recorded") == std::string::npos, nothing.caption.c_str());
    QCOMPARE(bench_figure({}, "decoding-speed").figure.x.title, std::string("sequences"));
    write("a.json", {{"decoding", {model("tpp", "Transformer++", {prompt(64, 20, 4), prompt(128, 60, 4)})}}});
    const FigurePage page = make_page(recipe, {});
    QVERIFY(empty_parts(recipe, page).empty());
    QVERIFY2(page.caption.find("Measured on a processor") != std::string::npos && page.caption.find("seed") == std::string::npos,
             page.caption.c_str());
    const FigureRecipe speeds = load_recipe(find_recipe("speed"));
    QVERIFY(parse_recipe(to_json(speeds).dump(), "again", speeds.name) == speeds);
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_recipe(R"({"panels": [{"chart": "loss", "relative": "tpp"}]})", "r", "r"));
    recipe.bench = {"missing.json"};
    QVERIFY_THROWS_EXCEPTION(DataError, make_page(recipe, {}));
  }

  /// Speeds over speeds, so that above 1 is faster whatever is measured.
  void ratiosOfResults() {
    Json result{
        {"steps", {step("a", "A", 512, 20), step("b", "B", 512, 10), step("b", "B", 1024, 10), without_times(step("a", "A", 1024, 1))}}};
    add_relative(result, "a");
    QCOMPARE(result["steps"][0]["relative"].get<double>(), 1.0);
    QCOMPARE(result["steps"][1]["relative"].get<double>(), 2.0);
    QVERIFY(!result["steps"][2].contains("relative") && !result["steps"][3].contains("relative"));
    result = {{"decoding", {model("a", "A", Json::array({prompt(64, 20, 4)})), model("b", "B", Json::array({prompt(64, 5, 8)}))}}};
    add_relative(result, "a");
    const Json& point = result["decoding"][1]["points"][0];
    QCOMPARE(point["relative"].get<double>(), 4.0);
    QCOMPARE(point["relative_token"].get<double>(), 4.0);
    QCOMPARE(point["batches"][0]["relative"].get<double>(), 0.5);
    QCOMPARE(point["batches"][0]["whole_relative"].get<double>(), 0.5);
  }

  /// What the plan finds too large is never begun.
  void whatDoesNotFitIsSaid() {
    BenchmarkOptions options;
    options.warmup = 0, options.repeats = 1;
    const StepPreset huge{"huge", "llama", "attention", 32000, 4096, 48, 32, 8192, 1 << 20, 1};
    const StepBenchmark refused = benchmark_step_if_it_fits(step_work(huge, options), options);
    QVERIFY2(refused.refusal.find("MiB are free") != std::string::npos, refused.refusal.c_str());
    const Json json = to_json(refused);
    QVERIFY(json.contains("refusal") && !json.contains("ms") && json["sequence_length"] == 1 << 20);
    const StepPreset small{"small", "llama", "attention", 64, 16, 1, 2, 16, 16, 2};
    const StepBenchmark measured = benchmark_step_if_it_fits(step_work(small, options), options);
    QVERIFY2(measured.refusal.empty() && measured.step.median > 0 && measured.peak_bytes > 0, measured.refusal.c_str());
  }

  void stepsAreOfWholeSequences() {
    QCOMPARE(whole_sequences(100'000, 2048), int64_t{49 * 2048});
    QCOMPARE(whole_sequences(100'000, 8192), int64_t{12 * 8192});
    QCOMPARE(whole_sequences(100'000, 102'400), int64_t{102'400});
    QCOMPARE(whole_sequences(1000, 4096, 8), int64_t{8 * 4096});
  }
};

QTEST_APPLESS_MAIN(BenchFiguresTest)
#include "bench_figures_test.moc"
