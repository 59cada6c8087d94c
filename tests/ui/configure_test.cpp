#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTextDocument>
#include <QToolButton>
#include <QTreeWidget>

#include "analysis/studies/equal.h"
#include "kernels/engine/error.h"
#include "models/config/old_names.h"
#include "models/corpus/vocabulary.h"
#include "models/tasks/symbol_task.h"
#include "models/training/run_cost.h"
#include "tests/analysis/fixture.h"
#include "tests/ui/configure_page_fixture.h"
#include "ui/configure/config_draft.h"
#include "ui/configure/configure_page.h"
#include "ui/configure/first_batch.h"
#include "ui/configure/json_position.h"
#include "ui/configure/json_text.h"
#include "ui/configure/memory_bar.h"
#include "ui/configure/plan_view.h"
#include "ui/configure/preset_picker.h"
#include "ui/configure/presets.h"
#include "ui/configure/problem_label.h"
#include "ui/configure/setting_editor.h"
#include "ui/configure/settings_form.h"
#include "ui/configure/size_solver.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"

/// QCOMPARE instantiates conversions that nlohmann::json cannot do.
#define COMPARE_JSON(actual, expected) \
  QVERIFY2((actual) == (expected),     \
           qPrintable(QString::fromStdString(saccade::test::Json(actual).dump() + " is not " + saccade::test::Json(expected).dump())))

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class ConfigureTest : public QObject {
  Q_OBJECT

  static FormField field(const ConfigDraft& draft, const std::string& pointer) {
    for (const FormField& each : draft.fields())
      if (each.pointer == pointer) return each;
    throw UsageError("no field " + pointer);
  }
  /// Types into the field's line as a person does.
  static void type(const SettingsForm& form, const std::string& pointer, const QString& text) {
    auto* line = form.editor(pointer)->findChild<QLineEdit*>();
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
  }

 private Q_SLOTS:
  void initTestCase() {
    qputenv("SACCADE_DATA", data_.path().toUtf8());
    qputenv("XDG_CACHE_HOME", data_.path().toUtf8());
  }

  void a_draft_survives_a_restart() {
    const QTemporaryDir folder, state;
    const QString file = state.filePath(QStringLiteral("workbench.ini"));
    {
      QSettings settings(file, QSettings::IniFormat);
      Session session(folder.path());
      session.remember(&settings);
      const ConfigurePage page(session);
      type(*page.form(), "/training/steps", QStringLiteral("777"));
    }
    QSettings settings(file, QSettings::IniFormat);
    Session session(folder.path());
    session.remember(&settings);
    const ConfigurePage page(session);
    COMPARE_JSON(page.draft().json().at("training").at("steps"), 777);
    QCOMPARE(page.draft().changes(), 1);
  }

  /// Tab goes as one reads: preset, settings, Start last.
  void start_comes_after_the_settings() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    const auto order = [&] {
      QWidgetList stops;
      for (QWidget* at = page.nextInFocusChain(); at != &page; at = at->nextInFocusChain())
        if (page.isAncestorOf(at) && at->focusPolicy() & Qt::TabFocus) stops << at;
      return stops;
    };
    const auto named = [&](const QString& name) -> QWidget* {
      for (QWidget* widget : page.findChildren<QWidget*>())
        if (widget->accessibleName() == name && widget->focusPolicy() & Qt::TabFocus) return widget;
      return nullptr;
    };
    for (const char* mixer : {"attention", "top1_chunk"}) {  // which makes other fields
      type(*page.form(), "/training/steps", QStringLiteral("50"));
      ConfigDraft draft = page.draft();
      draft.replace({{"architecture", {{"mixer", mixer}}}});
      page.form()->setDraft(draft);
      const QWidgetList stops = order();
      const qsizetype start = stops.indexOf(named(QStringLiteral("Start run"))), preset = stops.indexOf(named(QStringLiteral("Preset")));
      QVERIFY(start >= 0 && preset >= 0);
      const auto turn = [&](QWidget* stop) { return (stops.indexOf(stop) - preset + stops.size()) % stops.size(); };
      for (QWidget* stop : page.form()->stops()) {
        QVERIFY(stops.contains(stop));
        QVERIFY2(turn(stop) < turn(stops[start]), qPrintable(stop->accessibleName()));
      }
    }
  }

  void a_failed_start_stays_on_the_page() {
    Session session(QStringLiteral("/proc/no-folder-can-be-made-here"));
    ConfigurePage page(session);
    QSignalSpy pages(&session, &Session::pageRequested), failed(&session, &Session::failed);
    for (QPushButton* button : page.findChildren<QPushButton*>())
      if (button->accessibleName() == QStringLiteral("Start run")) button->click();
    QCOMPARE(failed.size(), 1);
    QCOMPARE(pages.size(), 0);
  }

  void the_memory_legend_is_never_cut() {
    MemoryBar bar;
    Plan plan;
    plan.weight_bytes = plan.gradient_bytes = 13'100'000, plan.optimizer_bytes = 26'200'000, plan.activation_bytes = 712'000'000;
    bar.setPlan(plan, int64_t{1} << 34);
    QCOMPARE(bar.columns(600), 2);
    QCOMPARE(bar.columns(180), 1);
    QVERIFY(bar.heightForWidth(180) > bar.heightForWidth(600));
    QVERIFY(bar.sizePolicy().hasHeightForWidth());
  }

  void a_setting_is_found_from_elsewhere() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.resize(900, 600);
    page.show();
    QVERIFY(QTest::qWaitForWindowActive(&page));
    session.showSetting(QStringLiteral("/training/weight_decay"));
    const SettingEditor* editor = page.form()->editor("/training/weight_decay");
    QVERIFY(!editor || (editor->isVisible() && editor->isAncestorOf(QApplication::focusWidget())));
    session.showSetting(QStringLiteral("/training/checkpoint_every"));  // in a folded group
    editor = page.form()->editor("/training/checkpoint_every");
    QVERIFY(editor && editor->isVisible());
    QVERIFY(editor->isAncestorOf(QApplication::focusWidget()));
  }

  void every_setting_has_a_field() {
    ConfigDraft draft;
    const Json resolved = to_json(resolve_config(Json::object(), "defaults"));
    const std::vector<FormField> fields = draft.fields();
    const Json flat = resolved.flatten();
    size_t leaves = 0;
    for (const auto& [pointer, value] : flat.items()) leaves += pointer.find("/train/0") == std::string::npos ? 1 : 0;
    for (const FormField& each : fields)
      if (each.pointer != "/name") COMPARE_JSON(draft.value(each), resolved.at(Json::json_pointer(each.pointer)));
    QVERIFY(fields.size() + 1 >= leaves);
  }

  /// Help, range where there is one, and the paper where the setting comes from one, at the field and for screen readers.
  void every_field_says_what_it_is() {
    const QTemporaryDir folder;
    Session session(folder.path());
    const ConfigurePage page(session);
    int papers = 0, ranges = 0;
    for (const char* mixer : {"attention", "top1_chunk", "rwkv7"}) {
      ConfigDraft draft;
      draft.replace({{"architecture", {{"mixer", mixer}}}});
      page.form()->setDraft(draft);
      for (const FormField& each : draft.fields()) {
        const SettingEditor* editor = page.form()->editor(each.pointer);
        QVERIFY2(editor, each.pointer.c_str());
        const Setting& setting = each.setting;
        QVERIFY2(setting.help.size() > 5, each.pointer.c_str());
        const QString tip = editor->toolTip();
        QTextDocument words;
        words.setHtml(tip);
        const QString told = words.toPlainText().simplified();
        QVERIFY2(told.contains(QString::fromStdString(setting.help).simplified()), qPrintable(told));
        if (setting.source.empty()) continue;
        ++papers;
        QVERIFY2(told.contains(QString::fromStdString(setting.source).simplified()), qPrintable(told));
      }
      for (const QLabel* label : page.form()->findChildren<QLabel*>()) ranges += label->text().contains(QStringLiteral(" … ")) ? 1 : 0;
    }
    QVERIFY2(papers > 30 && ranges > 30, qPrintable(QStringLiteral("%1 papers, %2 ranges").arg(papers).arg(ranges)));
  }

  /// All that the plan tells before a run, and its time by what was measured, evaluation counted; of a changed step it is not known.
  void the_plan_is_whole() {
    QTemporaryDir programs;
    const RunPace pace{.step = 0.25, .evaluated_sequence = 0.125, .probed_sequence = 0.5, .captured_sample = 0.75};
    QFile program(programs.filePath(QStringLiteral("program")));
    QVERIFY(program.open(QIODevice::WriteOnly));
    program.write(QByteArray("#!/bin/sh\ncat > /dev/null\necho '") + QByteArray::fromStdString(to_json(pace).dump()) + "'\n");
    program.close();
    QVERIFY(program.setPermissions(QFile::ReadOwner | QFile::ExeOwner));
    const QByteArray before = qgetenv("SACCADE_BINARY");
    qputenv("SACCADE_BINARY", program.fileName().toUtf8());
    PlanView view;
    view.show();
    const auto value = [&](const QString& title) {
      const QList<QLabel*> labels = view.findChildren<QLabel*>();
      for (qsizetype i = 0; i + 1 < labels.size(); ++i)
        if (labels[i]->text() == title) return labels[i + 1]->text();
      return QString();
    };
    RunConfig config = resolve_config({{"architecture", {{"width", 64}, {"layers", 2}, {"heads", 2}}},
                                       {"data", {{"sequence_length", 64}, {"ood", {"code"}}}},
                                       {"training", {{"steps", 600}, {"batch_tokens", 512}}},
                                       {"device", "cpu"}},
                                      "test");
    const Plan plan = make_plan(config, vocabulary_of("bytes"));
    view.setConfig(config);
    QTRY_COMPARE(value("parameters"), formatCount(static_cast<double>(plan.parameters)));
    QCOMPARE(value("non-embedding"), formatCount(static_cast<double>(plan.parameters - count_embedding_parameters(config))));
    QCOMPARE(value("tokens"), QStringLiteral("%1 in 600 steps").arg(formatCount(600 * 512.0)));
    QVERIFY(value("memory at peak").startsWith(formatBytes(static_cast<double>(plan.device_bytes())) + " of "));
    const auto several = [](int64_t bytes, int64_t count) {
      return QStringLiteral("%1 × %2").arg(formatBytes(static_cast<double>(bytes))).arg(count);
    };
    QCOMPARE(value("checkpoint"), several(checkpoint_bytes(plan), checkpoints_kept(config.training)));
    QCOMPARE(value("captures"), several(plan.capture_bytes, captures_kept(config.training)));
    for (const char* title : {"FLOPs", "cache / state", "device"}) QVERIFY2(value(title).size() > 1, title);
    QCOMPARE(value("time"), QStringLiteral("–"));
    auto* measure = view.findChild<QPushButton*>();
    QCOMPARE(measure->text(), QStringLiteral("Measure speed"));
    measure->click();
    const double seconds = run_seconds(config, plan, pace);
    QVERIFY(seconds > 600 * pace.step + 12 * 2 * 256 * pace.evaluated_sequence);  // twelve evaluations of 16384 tokens of two domains
    QTRY_COMPARE(value("time"), QStringLiteral("about %1").arg(formatDuration(seconds)));
    QCOMPARE(value("speed"), formatCount(512 / pace.step) + QStringLiteral("tok/s"));
    config.training.steps = 300;  // the same step
    view.setConfig(config);
    QTRY_COMPARE(value("time"),
                 QStringLiteral("about %1").arg(formatDuration(run_seconds(config, make_plan(config, vocabulary_of("bytes")), pace))));
    config.training.batch_tokens = 1024;
    view.setConfig(config);
    QTRY_COMPARE(value("tokens"), QStringLiteral("%1 in 300 steps").arg(formatCount(300 * 1024.0)));
    QCOMPARE(value("time"), QStringLiteral("–"));
    qputenv("SACCADE_BINARY", before);
  }

  void form_to_json_and_back() {
    ConfigDraft draft;
    draft.set(field(draft, "/architecture/mixer"), "top1_chunk");
    draft.set(field(draft, "/architecture/chunk"), 32);
    draft.set(field(draft, "/training/steps"), 777);
    draft.set(field(draft, "/data/ood"), Json::array({"c", "python"}));
    ConfigProblem problem;
    const auto config = resolve(draft, &problem);
    QVERIFY2(config.has_value(), problem.message.c_str());
    ConfigDraft again;
    again.replace(Json::parse(draft.json().dump()));
    COMPARE_JSON(to_json(*resolve(again, &problem)), to_json(*config));
    for (const FormField& each : again.fields()) COMPARE_JSON(again.value(each), draft.value(each));
    QCOMPARE(draft.changes(), 4);
  }

  void only_what_was_set_is_written_and_reset_takes_it_back() {
    ConfigDraft draft;
    const FormField steps = field(draft, "/training/steps");
    draft.set(steps, 5);
    COMPARE_JSON(draft.json(), (Json{{"training", {{"steps", 5}}}}));
    QVERIFY(draft.changed(steps));
    draft.reset(steps);
    COMPARE_JSON(draft.json(), Json::object());
    draft.start({{"training", {{"steps", 40}}}});
    draft.set(steps, 1000);
    draft.reset(steps);
    COMPARE_JSON(draft.value(steps), Json(40));
  }

  void settings_of_another_mixer_are_put_aside_and_come_back() {
    ConfigDraft draft;
    draft.set(field(draft, "/architecture/mixer"), "top1_chunk");
    draft.set(field(draft, "/architecture/chunk"), 32);
    draft.set(field(draft, "/architecture/mixer"), "attention");
    ConfigProblem problem;
    QVERIFY2(resolve(draft, &problem).has_value(), problem.message.c_str());
    draft.set(field(draft, "/architecture/mixer"), "top1_chunk");
    COMPARE_JSON(draft.value(field(draft, "/architecture/chunk")), Json(32));
    draft.set(field(draft, "/architecture/mixer"), "top1_chunk");
    COMPARE_JSON(draft.value(field(draft, "/architecture/mixer")), Json("top1_chunk"));
  }

  /// A task has no corpus beside it, and brings domains, symbols and a length; text has its own back once there is none.
  void a_task_takes_the_place_of_text() {
    ConfigDraft draft;
    draft.start({{"data", {{"corpus", "mine"}, {"train", {"prose"}}, {"ood", {"law"}}, {"sequence_length", 128}}},
                 {"training", {{"batch_tokens", 5120}}}});
    const Json before = draft.json();
    const auto has = [&](const std::string& pointer) {
      const auto fields = draft.fields();
      return std::any_of(fields.begin(), fields.end(), [&](const FormField& each) { return each.pointer == pointer; });
    };
    QVERIFY(has("/data/corpus"));
    draft.set(field(draft, "/data/task"), "mqa");  // half typed: the form does not change under the hand
    QVERIFY(has("/data/corpus"));
    draft.set(field(draft, "/data/task"), "mqar");
    QVERIFY(!has("/data/corpus") && !has("/data/packing") && has("/data/train"));
    ConfigProblem problem;
    const auto config = resolve(draft, &problem);
    QVERIFY2(config.has_value(), problem.message.c_str());
    for (const char* name : {"train", "ood", "tokenizer", "sequence_length"})
      COMPARE_JSON(draft.value(field(draft, std::string("/data/") + name)), to_json(*config).at("data").at(name));

    draft.set(field(draft, "/data/train"), Json{"length-64-pairs-4"});
    const Json longer = draft.value(field(draft, "/data/sequence_length"));
    draft.set(field(draft, "/data/sequence_length"), 512);
    COMPARE_JSON(draft.value(field(draft, "/data/sequence_length")), Json(512));
    draft.set(field(draft, "/data/sequence_length"), longer);
    COMPARE_JSON(draft.value(field(draft, "/data/sequence_length")), longer);
    const Json own = draft.json();
    for (const char* typed : {"m", "mq", "mqa", "mqar"}) draft.set(field(draft, "/data/task"), typed);  // over the same
    COMPARE_JSON(draft.json(), own);
    draft.set(field(draft, "/data/train"), Json{"length-"});
    QVERIFY(!has("/data/corpus"));
    QVERIFY(!resolve(draft, &problem));
    QCOMPARE(problem.pointer, std::string("/data/train"));

    draft.set(field(draft, "/data/task"), "parity");
    QVERIFY2(resolve(draft, &problem).has_value(), problem.message.c_str());
    draft.set(field(draft, "/data/task"), "");
    COMPARE_JSON(draft.json(), before);
  }

  /// Typed into the form, and the fields of text are gone, the task stands among the eight; the line is kept while the form is built anew.
  void a_task_is_chosen_in_the_form() {
    const QTemporaryDir folder;
    ShownConfigure shown(folder.path());
    QVERIFY(QTest::qWaitForWindowActive(shown.page.get()));
    SettingsForm* form = shown.page->form();
    form->showAll(true);
    const auto press = [&](Qt::Key key, const QString& text) {
      QTest::sendKeyEvent(QTest::Click, shown.page->focusWidget(), key, text, Qt::NoModifier);
      QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    };
    form->editor("/data/task")->findChild<QLineEdit*>()->setFocus();
    for (const QChar c : QStringLiteral("mqar")) press(Qt::Key_unknown, c);
    COMPARE_JSON(shown.page->draft().json(), (Json{{"data", {{"task", "mqar"}}}}));
    QVERIFY(!form->editor("/data/corpus"));
    const auto proposed = [&](const std::string& pointer) {
      QStringList names;
      if (const auto* menu = form->editor(pointer)->findChild<QMenu*>())
        for (const QAction* action : menu->actions()) names << action->text();
      return names;
    };
    QVERIFY(proposed("/data/task").contains(QStringLiteral("parity")));
    const SymbolTask& task = symbol_task("mqar");
    for (const char* pointer : {"/data/train", "/data/ood"})
      for (const auto& names : {task.train, task.test})
        for (const std::string& name : names) QVERIFY(proposed(pointer).contains(QString::fromStdString(name)));
    QCOMPARE(proposed("/data/tokenizer"), QStringList());
    form->showAll(false);
    QVERIFY(form->editor("/data/task")->isVisible());
    for (int i = 0; i < 4; ++i) press(Qt::Key_Backspace, {});
    COMPARE_JSON(shown.page->draft().json(), Json::object());
    QVERIFY(form->editor("/data/corpus") && form->editor("/data/corpus")->isVisible());
    QVERIFY(proposed("/data/tokenizer").contains(QStringLiteral("bpe:4096")));
    QVERIFY(!proposed("/data/train").contains(QString::fromStdString(task.train.front())));
  }

  /// What the form shows is what the config resolves to.
  void mixers_bring_their_usual_block() {
    ConfigDraft draft;
    draft.set(field(draft, "/architecture/mixer"), "rwkv5");
    COMPARE_JSON(draft.value(field(draft, "/architecture/block")), Json("rwkv"));
    COMPARE_JSON(draft.value(field(draft, "/architecture/channel_mix")), Json("5"));
    draft.set(field(draft, "/architecture/block"), "llama");
    ConfigProblem problem;
    const auto config = resolve(draft, &problem);
    QVERIFY2(config.has_value(), problem.message.c_str());
    COMPARE_JSON(config->architecture.at("block"), Json("llama"));
  }

  void hybrid_stacks_are_written_as_text() {
    ConfigDraft draft;
    draft.set(field(draft, "/architecture/mixer"), "top1_chunk");
    draft.set(field(draft, "/architecture/chunk"), 32);
    const std::string text = "3 gated_deltanet, 1 attention(window=64)";
    draft.set(field(draft, "/architecture/layers"), text);
    COMPARE_JSON(draft.value(field(draft, "/architecture/depth")), Json(4));
    draft.set(field(draft, "/architecture/depth"), 8);
    for (const char* gone : {"/architecture/mixer", "/architecture/chunk", "/architecture/activation"})
      QVERIFY_THROWS_EXCEPTION(UsageError, field(draft, gone));
    ConfigProblem problem;
    const auto config = resolve(draft, &problem);
    QVERIFY2(config.has_value(), problem.message.c_str());
    QCOMPARE(config->architecture.at("depth").get<int>(), 8);

    ConfigDraft again;  // from a run's resolved config, whose groups hold every setting
    again.start(to_json(*config));
    // The architecture's norm_epsilon is then the stem's, which these groups had from their mixers.
    const Json shown = again.value(field(again, "/architecture/layers"));
    COMPARE_JSON(shown, Json("3 gated_deltanet, 1 attention(norm_epsilon=1e-05, window=64)"));
    QCOMPARE(again.changes(), 0);
    again.set(field(again, "/architecture/layers"), shown);
    COMPARE_JSON(resolve(again, &problem)->architecture, config->architecture);

    draft.set(field(draft, "/architecture/layers"), "3 gated_deltanet, 1 atention");
    QVERIFY(!resolve(draft, &problem));
    QCOMPARE(problem.pointer, std::string("/architecture/layers"));
    QVERIFY2(problem.message.find("did you mean \"attention\"?") != std::string::npos, problem.message.c_str());
    draft.set(field(draft, "/architecture/layers"), 6);
    QVERIFY2(resolve(draft, &problem).has_value(), problem.message.c_str());
    COMPARE_JSON(draft.value(field(draft, "/architecture/chunk")), Json(32));
  }

  void typing_groups_of_layers_keeps_the_line() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    QVERIFY(QTest::qWaitForWindowActive(&page));
    auto* line = page.form()->editor("/architecture/layers")->findChild<QLineEdit*>();
    line->setFocus();
    line->selectAll();
    for (const QChar c : QStringLiteral("2 mamba2, attention(window=9)")) {  // the form is built anew on the way
      QTest::keyClick(page.focusWidget(), c.toLatin1());
      QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    }
    COMPARE_JSON(page.draft().json(), (Json{{"architecture", {{"layers", "2 mamba2, attention(window=9)"}}}}));
    QVERIFY(page.form()->editor("/architecture/depth") && !page.form()->editor("/architecture/mixer"));
  }

  void errors_name_their_field() {
    ConfigDraft draft;
    draft.set(field(draft, "/architecture/heads"), 3);
    ConfigProblem problem;
    QVERIFY(!resolve(draft, &problem));
    QCOMPARE(problem.pointer, std::string("/architecture/heads"));
    draft.start(Json::object());
    draft.set(field(draft, "/training/steps"), "many");
    QVERIFY(!resolve(draft, &problem));
    QCOMPARE(problem.pointer, std::string("/training/steps"));
    QCOMPARE(pointer_in("the disk is full", draft.fields()), std::string());
  }

  void vocabularies_are_known_without_the_corpus() {
    QVERIFY(vocabulary_of("bytes") >= 256);
    QCOMPARE(vocabulary_of("bpe:4096"), int64_t{4096});
    QVERIFY_THROWS_EXCEPTION(UsageError, vocabulary_of("bpe:many"));
  }

  void typing_changes_the_config_and_shows_mistakes_at_the_field() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    type(*page.form(), "/training/steps", QStringLiteral("12"));
    COMPARE_JSON(page.draft().json(), (Json{{"training", {{"steps", 12}}}}));
    type(*page.form(), "/training/steps", QStringLiteral("-1"));
    const auto labels = page.form()->editor("/training/steps")->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
                        [](const QLabel* label) { return label->isVisible() && label->text().contains(QStringLiteral("-1")); }));
  }

  void the_selected_run_can_be_started_from() {
    const QTemporaryDir folder;
    const FixtureOptions options{.mixer = "top1_chunk"};
    write_fixture(folder.filePath(QStringLiteral("run")).toStdString(), options);
    Session session(folder.path());
    QVERIFY(QSignalSpy(session.runs(), &RunList::loaded).wait());
    ConfigurePage page(session);
    page.show();
    auto* presets = page.findChild<PresetPicker*>();
    const auto choose = [&] {
      QTest::mouseClick(presets, Qt::LeftButton);
      auto* search = presets->findChild<QLineEdit*>();
      QTest::keyClicks(search, QStringLiteral("selected"));
      QTest::keyClick(search, Qt::Key_Return);
    };
    choose();
    nlohmann::json config = fixture_info(options).config;
    fill_old_defaults(config);  // settings that came after the run was made
    COMPARE_JSON(page.draft().json(), config);
    session.setCurrentRun({});
    QSignalSpy failed(&session, &Session::failed);
    choose();
    QCOMPARE(failed.size(), 1);
  }

  /// A tree of architectures, each with its scales; what a preset would change is told before it is chosen.
  void presets_stand_in_a_tree() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    auto* presets = page.findChild<PresetPicker*>();
    QTest::mouseClick(presets, Qt::LeftButton);
    auto* tree = presets->findChild<QTreeWidget*>();
    const QList<QTreeWidgetItem*> heads = tree->findItems(QStringLiteral("Avey"), Qt::MatchExactly);
    QCOMPARE(heads.size(), 1);
    QStringList scales;
    for (int i = 0; i < heads.first()->childCount(); ++i) scales << heads.first()->child(i)->text(0);
    QVERIFY2(scales.contains(QStringLiteral("tiny")) && scales.contains(QStringLiteral("paper small")),
             qPrintable(scales.join(QLatin1Char(' '))));
    QStringList titles;
    for (int i = 0; i < tree->topLevelItemCount(); ++i) titles << tree->topLevelItem(i)->text(0);
    QCOMPARE(titles.removeDuplicates(), 0);
    QVERIFY(titles.contains(QStringLiteral("Task mqar")) && titles.indexOf(QStringLiteral("Task mqar")) > titles.indexOf("Mamba-2"));
    auto* search = presets->findChild<QLineEdit*>();
    QTest::keyClicks(search, QStringLiteral("hybrid-mamba2-tiny"));  // as the command line calls it
    QVERIFY(tree->currentItem() && tree->currentItem()->toolTip(0) == QStringLiteral("hybrid mamba2 tiny"));
    search->setText(QStringLiteral("no such thing"));
    QVERIFY(!tree->currentItem());
    const auto told = presets->findChildren<QLabel*>();
    QVERIFY(std::any_of(told.begin(), told.end(), [](const QLabel* label) { return label->text() == "No preset has these words."; }));
    search->clear();
    QTest::keyClicks(search, QStringLiteral("avey tiny"));
    QVERIFY(tree->currentItem() && tree->currentItem()->text(0) == QStringLiteral("tiny"));
    const auto labels = presets->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
                        [](const QLabel* label) { return label->text().contains(QStringLiteral("block \"llama\" → \"avey\"")); }));
    QTest::keyClick(search, Qt::Key_Return);
    COMPARE_JSON(page.draft().json().at("architecture").at("block"), Json("avey"));
    QCOMPARE(page.draft().changes(), 0);
  }

  /// What is wrong is read where it is, without scrolling, as long as the page has room.
  void a_problem_makes_its_own_room() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.resize(1100, 900);
    page.show();
    const auto* scroll = page.form()->findChild<QScrollArea*>();
    QTRY_VERIFY(scroll->viewport()->height() >= scroll->widget()->height());
    type(*page.form(), "/architecture/layers", QStringLiteral("3 attention, 1 mamab2"));
    const QLabel* problem = nullptr;
    QTRY_VERIFY((problem = page.form()->editor("/architecture/layers")->findChild<ProblemLabel*>())->isVisible());
    QTRY_VERIFY(scroll->widget()->height() <= scroll->viewport()->height() && !scroll->verticalScrollBar()->isVisible());
    QVERIFY(problem->height() >= problem->heightForWidth(problem->width()));
  }

  /// The eight that a first run needs, whatever the architecture; the rest behind one button, or by a search.
  void eight_settings_come_first() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    const auto seen = [&] {
      int count = 0;
      for (const SettingEditor* editor : page.form()->findChildren<SettingEditor*>()) count += editor->isVisible() ? 1 : 0;
      return count;
    };
    for (const Json& architecture : {Json::object(), Json{{"block", "avey"}}, Json{{"layers", "1 mamba2, 1 attention"}}}) {
      ConfigDraft draft;
      draft.replace({{"architecture", architecture}});
      page.form()->setDraft(draft);
      QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
      QCOMPARE(seen(), 8);
    }
    for (QToolButton* button : page.form()->findChildren<QToolButton*>())
      if (button->accessibleName() == QStringLiteral("All settings")) QTest::mouseClick(button, Qt::LeftButton);
    QVERIFY(seen() > 40);
    page.form()->showAll(false);
    auto* search = page.form()->findChild<QLineEdit*>();
    QTest::keyClicks(search, QStringLiteral("optimizer"));  // the title of a group: all of it
    QVERIFY(page.form()->editor("/training/beta2")->isVisible() && page.form()->editor("/training/weight_decay")->isVisible());
    search->clear();
    QTest::keyClicks(search, QStringLiteral("checkpoint every"));
    QVERIFY(page.form()->editor("/training/checkpoint_every")->isVisible() && !page.form()->editor("/training/steps")->isVisible());
  }

  /// What the form leaves of the page is the first batch's, until all settings are wanted; and views that are not seen ask for no width.
  void the_first_batch_has_what_the_form_leaves() {
    const QTemporaryDir folder;
    ShownConfigure shown(folder.path(), nullptr, {1400, 1100});
    const auto* batch = shown.page->findChild<FirstBatch*>();
    QTRY_VERIFY2(batch->height() > 500, qPrintable(QString::number(batch->height())));
    shown.page->form()->showAll(true);
    QTRY_VERIFY2(batch->height() < 350, qPrintable(QString::number(batch->height())));
    QVERIFY(shown.page->minimumSizeHint().width() < 600);
  }

  void the_fault_is_marked_in_the_text() {
    const std::string text = "{\n  \"training\": {\"steps\": 3,\n    \"seed\": [1, \"}\"]},\n  \"name\": \"a\\\"b\"\n}";
    QCOMPARE(text.substr(*json_position(text, "/training/seed"), 6), std::string("\"seed\""));
    QCOMPARE(text.substr(*json_position(text, "/training/seed/1"), 3), std::string("\"}\""));
    QCOMPARE(text.substr(*json_position(text, "/name"), 6), std::string("\"name\""));
    QVERIFY(!json_position(text, "/training/nothing"));
    QCOMPARE(*fault_position(text, "config:3:5: unexpected"), text.find("\"seed\""));
    QCOMPARE(*fault_position(text, "/training/warmup_steps is 100; expected at most /training/steps"), text.find("\"steps\""));
    QCOMPARE(*fault_position(text, "/training/warmup_steps is 100"), text.find("\"training\""));
    QVERIFY(!fault_position(text, "the disk is full"));
    QVERIFY(!fault_position(text, "config:99999999999999999999:1: /nothing"));
    QCOMPARE(*fault_position(text, "config:99:1: unexpected"), text.size());

    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    auto* view = page.findChild<JsonText*>();
    view->setPlainText(QStringLiteral("{\n \"training\": {\n  \"steps\": -4\n }\n}"));
    QCOMPARE(view->faultyLine(), 2);
    view->setPlainText(QStringLiteral("{\n \"training\": {\n  \"steps\": 400\n }\n}"));
    QCOMPARE(view->faultyLine(), -1);
    view->setPlainText(QStringLiteral("{\n \"training\": {,\n  \"steps\": 400\n }\n}"));
    QCOMPARE(view->faultyLine(), 1);
    const QString longName(100000, QLatin1Char('a'));
    view->setPlainText(QStringLiteral("{\n \"%1\": 1,\n \"%1\": 2\n}").arg(longName));  // which the message names as a pointer
  }

  void widths_are_solved_for_a_number_of_parameters() {
    QCOMPARE(*count_from(QStringLiteral("12.7 M")), int64_t{12'700'000});
    QCOMPARE(*count_from(QStringLiteral("1,234")), int64_t{1234});
    QVERIFY(!count_from(QStringLiteral("many")) && !count_from(QStringLiteral("0")));
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    page.findChild<JsonText*>()->setPlainText(QStringLiteral("{\"architecture\": {\"width\": 64, \"layers\": 2, \"heads\": 2}}"));
    auto* solver = page.findChild<SizeSolver*>();
    auto* goal = solver->findChild<QLineEdit*>();
    QTest::keyClicks(goal, QStringLiteral("200 k"));
    QTest::keyClick(goal, Qt::Key_Return);
    QTRY_VERIFY(page.draft().json().at("architecture").contains("mlp_width"));
    ConfigProblem problem;
    const auto parameters = static_cast<double>(count_parameters(*resolve(page.draft(), &problem)));
    QVERIFY2(std::abs(parameters / 200e3 - 1) <= 0.005, qPrintable(QString::number(parameters)));
    goal->clear();
    QTest::keyClicks(goal, QStringLiteral("7"));
    QTest::keyClick(goal, Qt::Key_Return);
    const auto says = [&] {
      const auto labels = solver->findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(),
                         [](const QLabel* label) { return label->text().contains(QStringLiteral("comes no nearer")); });
    };
    QTRY_VERIFY(says());
  }

  void old_names_of_settings_become_todays() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    page.findChild<QPlainTextEdit*>()->setPlainText(QStringLiteral(R"({"training": {"clip": 0.5}})"));
    COMPARE_JSON(page.draft().json(), (Json{{"training", {{"max_grad_norm", 0.5}}}}));
    COMPARE_JSON(page.draft().value(field(page.draft(), "/training/max_grad_norm")), Json(0.5));

    const QString path = folder.filePath(QStringLiteral("old.json"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(R"({"architecture": {"host": "gpt"}})") > 0);
    file.close();
    QString note;
    COMPARE_JSON(read_preset(path, &note), (Json{{"architecture", {{"block", "gpt"}}}}));
    QCOMPARE(note, path + QStringLiteral(": architecture.host is now architecture.block"));
  }

  void choosing_a_mixer_shows_its_settings() {
    const QTemporaryDir folder;
    Session session(folder.path());
    ConfigurePage page(session);
    page.show();
    QVERIFY(!page.form()->editor("/architecture/chunk"));
    auto* mixers = page.form()->editor("/architecture/mixer")->findChild<QComboBox*>();
    mixers->setCurrentIndex(mixers->findData(QStringLiteral("top1_chunk")));
    Q_EMIT mixers->activated(mixers->currentIndex());
    QVERIFY(page.form()->editor("/architecture/chunk"));
  }

 private:
  QTemporaryDir data_;
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::ConfigureTest)
#include "configure_test.moc"
