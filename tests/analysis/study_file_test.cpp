// The study file: what it accepts, what it says of mistakes, and the runs that it stands for.
#include <QtTest>
#include <algorithm>

#include "analysis/comparison/tuning.h"
#include "analysis/studies/cells.h"
#include "analysis/studies/equal.h"
#include "analysis/studies/report/remarks.h"
#include "analysis/studies/same_data.h"
#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_plan.h"
#include "analysis/studies/study_progress.h"
#include "kernels/engine/error.h"
#include "models/training/branch_starts.h"
#include "models/training/run_cost.h"
#include "tests/support/tiny_run.h"

using namespace saccade;
using Json = nlohmann::json;

namespace {

Json small_study() {
  return {{"question", "Which window?"},
          {"base", test::tiny_run("mine")},
          {"axes", Json::array({{{"setting", "architecture.window"}, {"values", {8, 16}}}})},
          {"seeds", {1, 2}}};
}

Study parse(const Json& file) { return parse_study(file.dump(), "s.json", "s"); }

std::vector<std::string> names_of(const StudyView& view) {
  std::vector<std::string> names;
  for (const WantedRun& wanted : view.wanted) names.push_back(wanted.name);
  return names;
}

RunSummary ended(const StudyRun& run, double loss, RunState state = RunState::finished) {
  RunSummary summary;
  summary.name = run.name, summary.identity = run.identity, summary.state = state;
  summary.end.validation = loss;
  return summary;
}

}  // namespace

class StudyFileTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void mistakesAreNamed_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("message");
    QTest::newRow("key") << "/questoin"
                         << "\"?\""
                         << "the study has no setting \"questoin\"; did you mean \"question\"?";
    QTest::newRow("preset") << "/base"
                            << "\"transformer-p-tiny\""
                            << "there is no preset";
    QTest::newRow("section") << "/axes/0/setting"
                             << "\"architectur.window\""
                             << "did you mean \"architecture\"?";
    QTest::newRow("axis key") << "/axes/0/valeus"
                              << "[1]"
                              << "/axes/0 has no setting \"valeus\"; did you mean \"values\"?";
    QTest::newRow("twice") << "/axes/0/values"
                           << "[8, 8]"
                           << "/axes/0/values holds \"window-8\" twice";
    QTest::newRow("range") << "/axes/0"
                           << R"({"setting": "architecture.window", "log_range": {"from": 8, "to": 4, "count": 3}})"
                           << "/axes/0/log_range/to is 4; expected more than /axes/0/log_range/from, 8";
    QTest::newRow("seed") << "/set"
                          << R"({"training.seed": 3})"
                          << "/set sets training.seed; expected the seeds in /seeds";
    QTest::newRow("ood decides") << "/tuning"
                                 << R"({"setting": "training.learning_rate", "values": [1], "decides": "ood"})"
                                 << "/tuning/decides is \"ood\"; expected validation: OOD domains and the test split never choose";
    QTest::newRow("test decides") << "/tuning"
                                  << R"({"setting": "training.learning_rate", "values": [1], "decides": "test"})"
                                  << "/tuning/decides is \"test\"; expected validation";
    QTest::newRow("seeds twice") << "/tuning"
                                 << R"({"setting": "training.learning_rate", "values": [0.001], "seeds": [1, 1]})"
                                 << "/tuning/seeds is [1,1]; expected integers, each once";
    QTest::newRow("evaluated length") << "/evaluations"
                                      << R"({"tokens": 64, "length": 128})"
                                      << "/evaluations/length is 128; expected tokens of a sequence, from 2 to /evaluations/tokens";
    QTest::newRow("one setting on two axes") << "/axes/1"
                                             << R"({"name": "more", "cases": [{"name": "wide", "set": {"architecture.window": 64}}]})"
                                             << "/axes/0 and /axes/1 both set architecture.window; expected each setting on one axis";
    QTest::newRow("seed and seeds") << "/tuning"
                                    << R"({"setting": "training.learning_rate", "values": [0.001], "seed": 1, "seeds": [1, 2]})"
                                    << "/tuning has \"seed\" and \"seeds\"; expected one of them";
    QTest::newRow("tuned axis") << "/tuning"
                                << R"({"setting": "architecture.window", "values": [1]})"
                                << "/axes/0/setting is architecture.window, which /tuning searches";
    QTest::newRow("equal") << "/equal"
                           << R"({"what": "parameter"})"
                           << "did you mean \"parameters\"?";
    QTest::newRow("figure") << "/report"
                            << R"({"figures": ["tunning"]})"
                            << "did you mean \"tuning\"?";
    QTest::newRow("no recipe") << "/report"
                               << R"({"figures": ["tuning", "2505.18522-figure-3z"]})"
                               << "/report/figures/1 is \"2505.18522-figure-3z\"; did you mean \"2505.18522-figure-3";
    QTest::newRow("pre-training loss") << "/report"
                                       << R"({"pretraining": "training"})"
                                       << "/report/pretraining is \"training\"";
    QTest::newRow("window of validation") << "/report"
                                          << R"({"window": 1000})"
                                          << "/report/window goes with /report/pretraining \"train\"";
    QTest::newRow("no question") << "/question"
                                 << ""
                                 << "/question is missing";
  }
  void mistakesAreNamed() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, message);
    Json file = small_study();
    if (value.isEmpty())
      file.erase(pointer.mid(1).toStdString());
    else
      file[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
    try {
      parse(file);
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      const QString text = QString::fromUtf8(error.what());
      QVERIFY2(text.startsWith("s.json: ") && text.contains(message), error.what());
    }
  }

  /// The file and the place in it, whether a name or a value is wrong.
  void mistakesInSettingsNameTheirPlace_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("place");
    QTest::newRow("set, name") << "/set"
                               << R"({"training.stepz": 3})"
                               << "/set/training.stepz: ";
    QTest::newRow("set, value") << "/set"
                                << R"({"training.steps": -3})"
                                << "/set/training.steps: ";
    QTest::newRow("axis, value") << "/axes/0/values"
                                 << "[8, -1]"
                                 << "/axes/0/values/1: ";
    QTest::newRow("case") << "/axes/0"
                          << R"({"cases": [{"name": "a", "set": {"data.sequence_lenght": 8}}]})"
                          << "/axes/0/cases/0/set/data.sequence_lenght: ";
    QTest::newRow("tuning") << "/tuning"
                            << R"({"setting": "training.rate", "values": [0.1, 0.2]})"
                            << "/tuning/setting: ";
  }
  void mistakesInSettingsNameTheirPlace() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, place);
    Json file = small_study();
    file[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
    try {
      view_study(parse(file), {});
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      QVERIFY2(QString::fromUtf8(error.what()).startsWith("s.json: " + place), error.what());
    }
  }

  /// Before anything is trained for it.
  void aStudyThatWouldNotDoWhatItSaysIsNotStarted() {
    Json file = small_study();
    const StudyView without = view_study(parse(file), {});
    QCOMPARE(without.study.evaluation.tokens, StudyEvaluation::kAsErrorAsks);
    QCOMPARE(without.study.evaluation.paired_error, 0.005);
    require_startable(without);
    const int64_t length = without.wanted.front().run.config.data.sequence_length;
    file["evaluations"] = {{"tokens", length}};
    require_startable(view_study(parse(file), {}));
    file["evaluations"] = {{"tokens", length - 1}};
    try {
      require_startable(view_study(parse(file), {}));
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).startsWith("s.json: /evaluations/tokens is "), error.what());
    }
    file["evaluations"]["length"] = 2;
    require_startable(view_study(parse(file), {}));
    file["tuning"] = {{"setting", "training.learning_rate"}, {"values", {0.001}}, {"extend", true}};
    try {
      require_startable(view_study(parse(file), {}));
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("there is one value to try; expected two or more"), error.what());
    }
  }

  /// The text is the same, the sequences are not.
  void tokenizersDifferInOneGroup() {
    Json file = small_study();
    file["axes"].push_back({{"setting", "data.tokenizer"}, {"values", {"bytes", "bpe:300"}}});
    const std::vector<SameData> groups = same_data(view_study(parse(file), {}));
    QCOMPARE(groups.size(), size_t{1});
    QVERIFY(!groups[0].one_tokenizer);
    QVERIFY(same_data(view_study(parse(small_study()), {}))[0].one_tokenizer);
  }

  /// Steps, shares, tokens and losses: tokens are steps of each cell's own batches, and a plan counts what a loss may take at most.
  void branchesBeginAtTokensAndLosses() {
    Json file = small_study();
    file["set"] = {{"training.steps", 100}, {"training.warmup_steps", 5}};
    file["axes"] = Json::array({{{"setting", "training.batch_tokens"}, {"values", {128, 256}}}});
    file["branches"] = Json::array({0.2, 30, {{"tokens", 6401}}});
    const StudyView view = view_study(parse(file), {});
    QCOMPARE(cooldown_steps_of(view.wanted[0].run.config.training), (std::vector<int64_t>{20, 30, 51}));
    QCOMPARE(cooldown_steps_of(view.wanted[2].run.config.training), (std::vector<int64_t>{20, 26, 30}));
    file["branches"].push_back({{"loss", 3.4}});
    const TrainingConfig with = view_study(parse(file), {}).wanted[0].run.config.training;
    QCOMPARE(cooldown_losses(with), (std::vector<double>{3.4}));
    QCOMPARE(branch_steps(with) - branch_steps(view.wanted[0].run.config.training), int64_t{20});  // from step 80, a fifth of the whole
    const StudyPlan plan = plan_study(view_study(parse(file), {}), {.measure = false});
    QCOMPARE(plan.cells[0].note, std::string("branches at losses counted as the latest there can be"));
    const auto refused = [&](const Json& branch, const std::string& words) {
      file["branches"] = Json::array({branch});
      try {
        view_study(parse(file), {});
      } catch (const UsageError& error) {
        return std::string(error.what()).starts_with("s.json: " + words);
      }
      return false;
    };
    QVERIFY(refused({{"tokens", 1e9}}, "/branches: "));
    QVERIFY(refused({{"tokens", -1}}, "/branches/0 is "));
    QVERIFY(refused({{"steps", 10}}, "/branches/0 has no setting"));
    QVERIFY(refused(Json::object(), "/branches/0 is {}"));
  }

  /// What no study file can know is said by the config's own check, with the run's name.
  void mistakesInSettingsNameTheRun() {
    Json file = small_study();
    file["axes"][0]["setting"] = "architecture.windw";
    try {
      view_study(parse(file), {});
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      const std::string text = error.what();
      QVERIFY2(text.find("windw-8_seed-1") != std::string::npos && text.find("did you mean \"window\"?") != std::string::npos,
               error.what());
      QVERIFY2(text.starts_with("s.json: /axes/0/setting: "), error.what());
    }
  }

  /// The nearest names, and where all stand: not a hundred of them.
  void aStudyThatIsNotThereSuggestsNames() {
    const auto refusal = [](const std::string& name) -> std::string {
      try {
        return find_study(name).string();
      } catch (const UsageError& error) {
        return error.what();
      }
    };
    const std::string list = " saccade study list names those that come with the program";
    QCOMPARE(refusal("nope"), "there is no study \"nope\";" + list);
    QCOMPARE(refusal("tuned-tinny"), "there is no study \"tuned-tinny\"; did you mean \"tuned-tiny\"?" + list);
    const std::string many = refusal("figure");
    QVERIFY2(many.starts_with("there is no study \"figure\"; did you mean ") && many.ends_with("?" + list) && many.size() < 250,
             many.c_str());
  }

  void gridIsTheProductOfItsAxes() {
    Json file = small_study();
    file["axes"].push_back(
        {{"name", "norm"},
         {"cases", Json::array({{{"name", "plain"}}, {{"name", "qk norm"}, {"set", {{"architecture.qk_norm", "rms"}}}}})}});
    const StudyView view = view_study(parse(file), {});
    QCOMPARE(names_of(view), (std::vector<std::string>{"window-8_plain_seed-1", "window-8_plain_seed-2", "window-8_qk-norm_seed-1",
                                                       "window-8_qk-norm_seed-2", "window-16_plain_seed-1", "window-16_plain_seed-2",
                                                       "window-16_qk-norm_seed-1", "window-16_qk-norm_seed-2"}));
    QCOMPARE(view.wanted[3].run.config.architecture.at("window"), 8);
    QCOMPARE(view.wanted[3].run.config.architecture.at("qk_norm"), "rms");
    QCOMPARE(view.wanted[3].run.config.training.seed, 2);
  }

  void casesNamedByNumbersAreANumericAxis() {
    Json file = small_study();
    file["axes"] = Json::array({{{"name", "width"},
                                 {"cases", Json::array({{{"name", "32"}, {"set", {{"architecture.width", 32}, {"architecture.heads", 2}}}},
                                                        {{"name", "1e2"}},
                                                        {{"name", "8 heads"}, {"set", {{"architecture.heads", 8}}}}})}}});
    const Study study = parse(file);
    QCOMPARE(study.axes[0].values[0].number, std::optional<double>(32));
    QCOMPARE(study.axes[0].values[0].label, "width-32");
    QCOMPARE(study.axes[0].values[1].number, std::optional<double>(100));
    QVERIFY(!study.axes[0].values[2].number);
    QCOMPARE(study.axes[0].values[2].label, "8-heads");
  }

  void basesAreAnAxis() {
    Json file{{"question", "?"},
              {"base", "transformer-pp-tiny"},
              {"set", {{"training.steps", 30}}},
              {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "avey-tiny"}}}})}};
    const StudyView view = view_study(parse(file), {});
    QCOMPARE(names_of(view), (std::vector<std::string>{"transformer-pp-tiny_seed-1", "avey-tiny_seed-1"}));
    QCOMPARE(view.wanted[1].run.config.architecture.at("block"), "avey");
    QCOMPARE(view.wanted[1].run.config.training.steps, 30);
  }

  void logRange() {
    Json file = small_study();
    file["tuning"] = {{"setting", "training.learning_rate"}, {"log_range", {{"from", 0.001}, {"to", 0.008}, {"count", 4}}}};
    QCOMPARE(parse(file).tuning->values, (std::vector<double>{0.001, 0.002, 0.004, 0.008}));
  }

  /// A grid that is extended finds the runs it has, under whatever name, and the same config never stands twice in the list.
  void aRunIsItsConfig() {
    Json file = small_study();
    const StudyView before = view_study(parse(file), {});
    std::vector<RunSummary> runs;
    for (const WantedRun& wanted : before.wanted) runs.push_back(ended(wanted.run, 2));
    runs[0].name = "called-otherwise";
    file["axes"][0]["values"] = {4, 8, 16};
    file["axes"].push_back({{"setting", "architecture.width"}, {"values", {16, 32}}});  // 16 is the base's own
    const StudyView after = view_study(parse(file), runs);
    QCOMPARE(after.wanted.size(), size_t{12});
    QCOMPARE(after.ready().size(), size_t{8});
    QCOMPARE(after.wanted[4].name, std::string("called-otherwise"));
    for (const WantedRun* wanted : after.ready())
      QVERIFY(wanted->name.find("width-32") != std::string::npos || wanted->name.find("window-4") != std::string::npos);
    RunConfig renamed = before.wanted[0].run.config;
    renamed.name = "another", renamed.threads = 3;
    QCOMPARE(run_identity(renamed), before.wanted[0].run.identity);
    QCOMPARE(run_identity(to_json(renamed)), before.wanted[0].run.identity);
    renamed.training.final_evaluation_tokens = 4096;  // after the last step: no other run
    QCOMPARE(run_identity(renamed), before.wanted[0].run.identity);
    renamed.training.seed = 9;
    QVERIFY(run_identity(renamed) != before.wanted[0].run.identity);
  }

  void tuningComesFirstThenSeedsAtTheBest() {
    Json file = small_study();
    file["axes"] = Json::array();
    file["seeds"] = {1, 2, 3};
    file["tuning"] = {{"setting", "training.learning_rate"}, {"values", {0.001, 0.002, 0.004}}};
    const Study study = parse(file);
    StudyView view = view_study(study, {});
    QCOMPARE(view.wanted.size(), size_t{3});
    QCOMPARE(view.later, 2);
    std::vector<RunSummary> runs{ended(view.wanted[0].run, 3.0), ended(view.wanted[1].run, 2.0)};
    QCOMPARE(view_study(study, runs).views[0].tuning.state, Tuning::State::open);
    runs.push_back(ended(view.wanted[2].run, NAN, RunState::diverged));
    view = view_study(study, runs);
    QCOMPARE(view.views[0].tuning.state, Tuning::State::tuned);
    QCOMPARE(view.views[0].tuning.best.value(), 0.002);
    QCOMPARE(describe(view.views[0].tuning), std::string("tuned: 0.002 of 0.001, 0.002, 0.004"));
    QCOMPARE(view.ready().size(), size_t{2});
    QCOMPARE(view.ready()[0]->name, std::string("base_learning_rate-0.002_seed-2"));
    QVERIFY(!view.complete());
  }

  /// The mean over the seeds of the search decides, not the least of one.
  void severalSeedsTune() {
    Json file = small_study();
    file["axes"] = Json::array();
    file["seeds"] = {1, 2, 3};
    file["tuning"] = {{"setting", "training.learning_rate"}, {"values", {0.001, 0.002, 0.004}}, {"seeds", {1, 2}}};
    const Study study = parse(file);
    StudyView view = view_study(study, {});
    QCOMPARE(view.wanted.size(), size_t{6});
    QCOMPARE(view.later, 1);
    const std::vector<double> losses{1.0, 4.0, 2.0, 2.2, 0.5, NAN};
    std::vector<RunSummary> runs;
    for (size_t i = 0; i < losses.size(); ++i) {
      QCOMPARE(view_study(study, runs).views[0].tuning.state, Tuning::State::open);
      runs.push_back(ended(view.wanted[i].run, losses[i], std::isnan(losses[i]) ? RunState::diverged : RunState::finished));
    }
    view = view_study(study, runs);
    QCOMPARE(view.views[0].tuning.state, Tuning::State::tuned);
    QCOMPARE(view.views[0].tuning.best.value(), 0.002);
    QCOMPARE(view.views[0].tuning.tried[0].loss, 2.5);
    QVERIFY(std::isinf(view.views[0].tuning.tried[2].loss));
    QCOMPARE(view.ready().size(), size_t{1});
    QCOMPARE(view.ready()[0]->name, std::string("base_learning_rate-0.002_seed-3"));
  }

  void edgesAreToldOrExtended() {
    Json file = small_study();
    file["axes"] = Json::array();
    file["tuning"] = {{"setting", "training.learning_rate"}, {"values", {0.001, 0.002}}};
    const auto runs_of = [&](const std::vector<double>& losses, bool extend, double largest) {
      file["tuning"]["extend"] = extend;
      file["tuning"]["bound"] = {0.0001, largest};
      const Study study = parse(file);
      std::vector<RunSummary> runs;
      for (const double loss : losses) runs.push_back(ended(view_study(study, runs).wanted[runs.size()].run, loss));
      return view_study(study, runs);
    };
    StudyView view = runs_of({3, 2}, false, 1);
    QCOMPARE(describe(view.views[0].tuning), std::string("edge: 0.002 of 0.001, 0.002; extend with 0.004"));
    QCOMPARE(view.wanted.size(), size_t{3});  // the second seed at the edge
    view = runs_of({3, 2}, true, 1);
    QCOMPARE(view.ready().size(), size_t{1});
    QCOMPARE(view.ready()[0]->run.tuned.value(), 0.004);
    view = runs_of({3, 2, 2.5}, true, 1);
    QCOMPARE(view.views[0].tuning.state, Tuning::State::tuned);
    view = runs_of({3, 2}, true, 0.003);  // the bound ends the search at its edge
    QCOMPARE(view.views[0].tuning.state, Tuning::State::edge);
    file["tuning"]["values"] = {0.001};
    view = runs_of({3}, true, 1);
    QCOMPARE(describe(view.views[0].tuning), std::string("untuned: one rate only (0.001)"));
  }

  void budgetAndLimitEndWhatIsBegun() {
    const Study study = parse(small_study());
    StudyState state;
    state.most_runs = 3;
    StudyView view = view_study(study, {}, state);
    QCOMPARE(view.ready().size(), size_t{3});
    RunSummary run = ended(view.wanted[0].run, 2);
    run.seconds = 7200;
    state.most_runs.reset(), state.budget_hours = 1.5;
    view = view_study(study, {run}, state);
    QVERIFY(view.ready().empty());
    QCOMPARE(view.blocked(), std::string("the budget of 1.5 h is used up"));
    state.budget_hours = 3;
    QCOMPARE(view_study(study, {run}, state).ready().size(), size_t{3});
  }

  /// One of a thing is told as one.
  void oneIsNoPlural() {
    Json file = small_study();
    file["axes"][0]["values"] = {8};
    file["seeds"] = {1};
    const Study study = parse(file);
    StudyView view = view_study(study, {});
    QCOMPARE(view.wanted.size(), size_t{1});
    const std::string plan = to_text(plan_study(view, {.measure = false}), {});
    QVERIFY2(plan.find("\n1 run, 1 of them to do") != std::string::npos && plan.find(": 1 run of ") != std::string::npos, plan.c_str());
    StudyState state;
    state.gave_up = {{view.wanted[0].name, "it failed"}};
    view = view_study(study, {}, state);
    QCOMPARE(view.blocked(), std::string("1 run was given up; saccade study resume tries it again"));
    CellNumbers cell;
    cell.name = "window-8", cell.missing = 1;
    const std::vector<std::string> remarks = remarks_of(view, {cell}, {});
    QVERIFY(std::count(remarks.begin(), remarks.end(), "window-8: 1 seed is missing (not ended, or diverged).") == 1);
  }

  void branchesAreOfTheScheduleWsd() {
    Json file = small_study();
    file["base"]["training"]["schedule"] = "linear";
    file["base"]["training"]["min_lr_ratio"] = 0.1;
    file["branches"] = {0.5};
    const RunConfig config = view_study(parse(file), {}).wanted[0].run.config;
    QCOMPARE(config.training.schedule, std::string("wsd"));
    QCOMPARE(config.training.min_lr_ratio, 0.0);
    QCOMPARE(cooldown_steps_of(config.training), (std::vector<int64_t>{6}));
  }

  /// Branches would replace any other schedule, and its rows would say that it makes no difference.
  void branchesRefuseAnotherSchedule() {
    const auto refused = [](const Json& file) {
      try {
        parse(file);
      } catch (const UsageError& error) {
        return QString::fromUtf8(error.what());
      }
      return QString();
    };
    Json set = small_study(), axis = set, of_case = set, branch_points = set;
    set["set"] = {{"training.schedule", "cosine"}};
    axis["axes"].push_back({{"setting", "training.schedule"}, {"values", {"wsd", "linear"}}});
    of_case["axes"].push_back({{"name", "how"}, {"cases", {{{"name", "flat"}, {"set", {{"training.schedule", "constant"}}}}}}});
    branch_points["set"] = {{"training.cooldown_at", {0.25}}};
    for (Json* file : {&set, &axis, &of_case}) {
      QCOMPARE(refused(*file), QString());
      (*file)["branches"] = {0.5};
      QVERIFY2(refused(*file).contains("sets training.schedule, but /branches are cooldowns of the schedule wsd"),
               qPrintable(refused(*file)));
    }
    QVERIFY(refused(axis).startsWith("s.json: /axes/1 sets"));
    branch_points["branches"] = {0.5};
    QVERIFY(refused(branch_points).contains("/set sets training.cooldown_at"));
    set["set"]["training.schedule"] = "wsd";
    QCOMPARE(refused(set), QString());
  }

  void equalParametersWithinHalfAPercent() {
    Json file{
        {"question", "?"},
        {"base", "transformer-pp-tiny"},
        {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "gpt-tiny", "deltanet-tiny", "rwkv7-tiny"}}}})}};
    std::vector<int64_t> before;
    for (const WantedRun& wanted : view_study(parse(file), {}).wanted) before.push_back(count_parameters(wanted.run.config));
    file["equal"] = {{"what", "parameters"}, {"by", {"architecture.width", "architecture.mlp_width"}}};
    const auto goal = static_cast<double>(before.front());
    for (const WantedRun& wanted : view_study(parse(file), {}).wanted) {
      const int64_t parameters = count_parameters(wanted.run.config);
      qInfo("%s: %lld parameters, goal %.0f", wanted.name.c_str(), static_cast<long long>(parameters), goal);
      QVERIFY(std::abs(static_cast<double>(parameters) / goal - 1) <= 0.005);
    }
    QVERIFY(std::abs(static_cast<double>(before[3]) / goal - 1) > 0.005);  // as the presets are, they differ by more
  }

  void equalState() {
    Json file{{"question", "?"},
              {"base", "transformer-pp-tiny"},
              {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "mamba2-tiny", "deltanet-tiny"}}}})}};
    const auto states = [&] {
      std::vector<double> all;
      for (const WantedRun& wanted : view_study(parse(file), {}).wanted) all.push_back(count_state(wanted.run.config));
      return all;
    };
    const std::vector<double> before = states();
    file["equal"] = {{"what", "state"}, {"by", {"architecture.state", "architecture.width"}}};
    const std::vector<double> after = states();
    QCOMPARE(after[0], before[0]);
    for (const size_t i : {1, 2}) {
      QVERIFY(std::abs(before[i] / before[0] - 1) > 0.02);
      QVERIFY2(std::abs(after[i] / before[0] - 1) <= 0.02, qPrintable(QString("%1 of %2").arg(after[i]).arg(before[0])));
    }
  }

  /// Layers alone do not bring a recurrence to as much state: the nearest is taken, and both values are told.
  void unreachableStateIsTold() {
    const Json file{{"question", "?"},
                    {"base", "transformer-pp-tiny"},
                    {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "mamba2-tiny"}}}})},
                    {"equal", {{"what", "state"}, {"by", {"architecture.layers"}}}}};
    const StudyView view = view_study(parse(file), {});
    QVERIFY(view.cells[0].short_of.empty());
    const std::string state = std::to_string(std::llround(count_state(view.wanted[1].run.config))),
                      goal = std::to_string(std::llround(count_state(view.wanted[0].run.config)));
    QVERIFY2(view.cells[1].short_of.find("keeps " + state + " numbers of state per token of context, not " + goal) == 0,
             view.cells[1].short_of.c_str());
    PlanOptions options;
    options.measure = false;
    QVERIFY(to_text(plan_study(view, options), {}).find("warning: " + view.cells[1].short_of) != std::string::npos);
  }

  void timingEndsAtItsLimit() {
    const Json file{{"question", "?"},
                    {"base", "transformer-pp-tiny"},
                    {"axes", Json::array({{{"setting", "architecture.layers"}, {"values", {1, 2}}}})}};
    const StudyView view = view_study(parse(file), {});
    PlanOptions options;
    options.measure_seconds = 0;
    const StudyPlan none = plan_study(view, options);
    QVERIFY(std::isnan(none.seconds));
    QVERIFY2(none.cells[1].note.starts_with("not timed"), none.cells[1].note.c_str());
    const StudyPlan timed = plan_study(view, {});
    QVERIFY(timed.seconds > 0);
    QVERIFY(timed.cells[1].note.empty());
  }

  void unreachableParametersSayHowNear() {
    const Json file{{"question", "?"},
                    {"base", "transformer-pp-tiny"},
                    {"axes", Json::array({{{"setting", "base"}, {"values", {"transformer-pp-tiny", "mamba1-tiny"}}}})},
                    {"equal", {{"what", "parameters"}, {"by", {"architecture.layers", "architecture.no_such"}}}}};
    try {
      view_study(parse(file), {});
      QFAIL("it was reached");
    } catch (const UsageError& error) {
      const std::string text = error.what();
      QVERIFY2(text.find("mamba1-tiny comes no nearer than") != std::string::npos && text.find("architecture.layers=") != std::string::npos,
               error.what());
    }
  }

  /// Nothing is solved for: losses are read at the seconds of the run that took least.
  void equalSecondsChangeNoConfig() {
    Json file = small_study();
    const StudyView before = view_study(parse(file), {});
    file["equal"] = {{"what", "seconds"}};
    const StudyView after = view_study(parse(file), {});
    for (size_t i = 0; i < before.wanted.size(); ++i) QCOMPARE(after.wanted[i].run.identity, before.wanted[i].run.identity);
    file["equal"]["by"] = {"architecture.width"};
    try {
      parse(file);
      QFAIL("seconds are solved for by the width");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("/equal/by goes with what is solved for"), error.what());
    }
  }

  void equalTokensAndFlops() {
    Json file = small_study();
    file["axes"] = Json::array({{{"setting", "training.batch_tokens"}, {"values", {128, 256}}}});
    file["equal"] = {{"what", "tokens"}};
    QCOMPARE(view_study(parse(file), {}).wanted[2].run.config.training.steps, 6);
    file["axes"] = Json::array({{{"setting", "architecture.layers"}, {"values", {2, 4}}}});
    file["equal"] = {{"what", "flops"}};
    const int64_t steps = view_study(parse(file), {}).wanted[2].run.config.training.steps;
    QVERIFY2(steps < 12 && steps >= 6, qPrintable(QString::number(steps)));
  }

  /// Time left by the pace of the same cell, within the budget, shared by runs at a time.
  void progressAndTimeLeft() {
    const Study study = parse(small_study());  // two windows, two seeds
    const StudyView fresh = view_study(study, {});
    const double steps = static_cast<double>(fresh.wanted[0].run.config.training.steps);
    QVERIFY(std::isnan(progress_of(fresh).seconds_left));
    QCOMPARE(progress_of(fresh).share, 0.0);
    QCOMPARE(progress_of(fresh).runs, 4);
    RunSummary slow = ended(fresh.wanted[0].run, 3), quick = ended(fresh.wanted[2].run, 3);
    slow.step = quick.step = fresh.wanted[0].run.config.training.steps;
    slow.seconds = 30, quick.seconds = 10;
    StudyView half = view_study(study, {slow, quick});
    QCOMPARE(progress_of(half).share, 0.5);
    QCOMPARE(progress_of(half).finished, 2);
    QVERIFY(std::abs(progress_of(half).seconds_left - 40) < 1e-9);
    QVERIFY(std::abs(progress_of(half, 2).seconds_left - 20) < 1e-9);
    half.state.budget_hours = 1.0 / 60;  // a minute, of which 40 seconds are used
    half.seconds = 40;
    QVERIFY(std::abs(progress_of(half).seconds_left - 20) < 1e-9);
    RunSummary other = slow;
    other.name = "other", other.identity = fresh.wanted[1].run.identity, other.state = RunState::stopped;
    other.step = slow.step / 2, other.seconds = 15;
    const StudyView more = view_study(study, {slow, quick, other});
    QVERIFY(std::abs(progress_of(more).share - (2 + std::floor(steps / 2) / steps) / 4) < 1e-9);
    StudyView stopped = half;
    stopped.state.stopped = true;
    QVERIFY(std::isnan(progress_of(stopped).seconds_left));
  }
};

QTEST_GUILESS_MAIN(StudyFileTest)
#include "study_file_test.moc"
