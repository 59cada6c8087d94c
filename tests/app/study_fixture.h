#pragma once
#include <map>

#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "tests/app/program.h"

namespace saccade::test {

/// Two widths, two rates of which the better one is found by one of two seeds.
inline nlohmann::json small_study(const nlohmann::json& base) {
  using Json = nlohmann::json;
  return {{"question", "Which width?"},
          {"base", base},
          {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
          {"seeds", {1, 2}},
          {"tuning", {{"setting", "training.learning_rate"}, {"values", {0.0001, 0.01}}}}};
}

/// Studies of the real program, in its folders.
class StudyTest : public QObject {
 protected:
  using Json = nlohmann::json;
  Program program_;

  void write_study(const QString& name, const Json& file) const { program_.write(name, QByteArray::fromStdString(file.dump())); }
  std::filesystem::path folder(const QString& name) const { return program_.path(name).toStdString(); }

  /// Trains small_study() in widths, whole.
  void train_widths() const {
    write_study("widths.json", small_study(Program::config()));
    const auto started = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    QVERIFY(at_rest());
  }

  /// This process has the program's queues too.
  void share_queues() const {
    for (const char* name : {"data", "cache", "runs"})
      qputenv(("SACCADE_" + QByteArray(name).toUpper()).constData(), program_.path(name).toUtf8());
  }

  Json status(const QString& study) const { return program_.run({"--json", "study", "status", program_.path(study)}).json(); }

  /// The device's queue has no worker and no entry.
  bool at_rest() const {
    return QTest::qWaitFor(
        [&] {
          const Json queues = program_.run({"--json", "queue", "list"}).json();
          for (const Json& queue : queues)
            if (!queue["worker"].is_null() || (!queue["entries"].empty() && queue["paused"] == false)) return false;
          return true;
        },
        120000);
  }

  /// Contents of every run that has finished, by folder: nothing may touch it afterwards.
  std::map<std::string, std::string> finished(const QString& study) const {
    std::map<std::string, std::string> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder(study) / "runs", none)) {
      if (!holds_run(entry.path()) || read_run_info(entry.path()).state != RunState::finished) continue;
      for (const char* name : {"run.json", "journal.jsonl"}) {
        std::ifstream file(entry.path() / name, std::ios::binary);
        files[entry.path().filename().string() + "/" + name] = std::string(std::istreambuf_iterator<char>(file), {});
      }
    }
    return files;
  }
};

}  // namespace saccade::test
