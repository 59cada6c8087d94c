#include <QtTest>
#include <fstream>
#include <map>

#include "analysis/tasks/task_items.h"
#include "kernels/engine/error.h"
#include "models/corpus/disk.h"
#include "models/json.h"
#include "tests/support/packed.h"

namespace saccade::test {

namespace fs = std::filesystem;
using nlohmann::json;

/// Three items of every task, in each form in which its data set is published and in each kind of file, against prompts and continuations
/// that tests/fixtures/tasks/make.py wrote by the evaluation harness's rules, byte for byte.
class TaskFilesTest : public QObject {
  Q_OBJECT

  static std::string json_lines(const json& rows) {
    std::string text;
    for (const json& row : rows) text += row.dump() + "\n";
    return text;
  }
  /// With the columns' names in the first row; empty where a field is more than a text or a number.
  static std::string separated(const json& rows, char separator) {
    std::string text;
    const auto add = [&](const std::string& field, bool last) {
      text += '"' + QString::fromStdString(field).replace("\"", "\"\"").toStdString() + '"' + (last ? '\n' : separator);
    };
    for (const auto& column : rows.at(0).items()) add(column.key(), column.key() == rows.at(0).rbegin().key());
    for (const json& row : rows)
      for (auto field = row.begin(); field != row.end(); ++field) {
        if (field->is_structured() || field->is_boolean()) return {};
        add(field->is_string() ? field->get<std::string>() : field->dump(), std::next(field) == row.end());
      }
    return text;
  }

  static QByteArray shown(const TaskItem& item) {
    QByteArray text;
    for (const TaskRequest& r : item.requests)
      text += "[" + QByteArray::fromStdString(r.context) + "][" + QByteArray::fromStdString(r.continuation) + "] ";
    return text + QByteArray::number(static_cast<qulonglong>(item.gold)) + QByteArray::fromStdString(item.target);
  }
  static bool is(const TaskItem& item, const json& expected) {
    if (expected.contains("target"))
      return item.requests.size() == 1 && item.requests[0].context == expected.at("context") && item.target == expected.at("target");
    json requests = json::array();
    for (const TaskRequest& request : item.requests) requests.push_back({request.context, request.continuation});
    return requests == expected.at("requests") && item.gold == expected.at("gold");
  }

 private Q_SLOTS:
  void items_are_those_of_the_fixture_data() {
    QTest::addColumn<QString>("task");
    QTest::addColumn<QString>("form");
    std::map<std::string, int> forms;
    for (const json& task : fixture())
      for (const auto& [form, content] : task.at("forms").items()) {
        const auto name = task.at("task").get<std::string>();
        QTest::addRow("%s, %s", name.c_str(), form.c_str()) << QString::fromStdString(name) << QString::fromStdString(form);
        ++forms[name];
      }
    for (const Task& task : shipped_tasks()) QVERIFY2(!task.generator.empty() || forms.contains(task.name), task.name.c_str());
  }
  void items_are_those_of_the_fixture() {
    QFETCH(QString, task);
    QFETCH(QString, form);
    const auto found = std::find_if(fixture().begin(), fixture().end(), [&](const json& t) { return t.at("task") == task.toStdString(); });
    const json& rows = found->at("forms").at(form.toStdString()).at("rows");
    QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    for (const auto& [name, labels] : found->at("forms").at(form.toStdString()).at("files").items()) {
      std::ofstream file(root / name);
      for (const json& label : labels) file << label << "\n";
    }
    std::map<std::string, std::string> files{{"items.jsonl", json_lines(rows)},
                                             {"items.jsonl.gz", gzip(json_lines(rows))},
                                             {"items.jsonl.zst", zstd(json_lines(rows))},
                                             {"items.json", rows.dump(1)}};
    if (const std::string commas = separated(rows, ','); !commas.empty() && task != "mmlu") {
      files["items.csv"] = commas;
      files["items.tsv"] = separated(rows, '\t');
    }
    for (const auto& [name, content] : files) {
      std::ofstream(root / name, std::ios::binary) << content;
      TaskItems read;
      try {
        read = read_task_items(find_task(task.toStdString()), root / name, {.shots = 0});
      } catch (const DataError& error) {
        if (QString(error.what()).contains("built without libcsv")) continue;
        QFAIL(error.what());
      }
      QCOMPARE(read.items.size(), size_t{3});
      for (size_t i = 0; i < 3; ++i)
        QVERIFY2(is(read.items[i], found->at("items").at(i)),
                 name.c_str() + (": " + shown(read.items[i])) + ", expected " + found->at("items").at(i).dump().c_str());
    }
  }

 private:
  static const json& fixture() {
    static const json made =
        json::parse(read_file(fs::path(qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString()) / "tests/fixtures/tasks/items.json"));
    return made;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TaskFilesTest)
#include "task_files_test.moc"
