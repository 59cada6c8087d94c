#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "program.h"

namespace saccade::test {

/// Training as a person at a terminal drives it: train, signals, resume, stop, what is printed where.
class TrainCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
  }

  void prints_data_on_stdout_and_progress_on_stderr() {
    const auto result = program_.run({"--json", "train", program_.path("config.json"), "--out", program_.path("first")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json();
    QCOMPARE(json["state"].get<std::string>(), "finished");
    QCOMPARE(json["step"].get<int>(), 12);
    QVERIFY(json["train_loss"].get<double>() > 1 && json["ood_loss"].get<double>() > 1);
    QVERIFY(json["ood_loss_standard_error"].get<double>() > 0);
    QVERIFY(result.err.contains("checkpoint at step 4") && result.err.contains("tiny: 100 %"));
    for (const char* file : {"run.json", "journal.jsonl", "results.h5", "log.txt", "checkpoints/step-12.h5", "captures/step-12.h5"})
      QVERIFY2(QFile::exists(program_.path("first/") + file), file);

    const auto quiet = program_.run({"train", program_.path("config.json"), "--out", program_.path("quiet"), "-q"});
    QVERIFY(quiet.code == 0 && quiet.err.isEmpty() && quiet.out.contains("quiet: finished at step 12 of 12"));
  }

  /// A preset goes by its name, one that the user saved likewise; a file so called comes first.
  void presets_go_by_their_names() {
    const auto parameters = [&](const QString& config, int width) {
      const auto plan = program_.run({"--json", "plan", config, "--set", QStringLiteral("architecture.width=%1").arg(width)});
      return plan.code == 0 ? plan.json()["parameters"].get<int64_t>() : -1;
    };
    const QString shipped = qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/resources/presets/mqar-tiny.json";
    QVERIFY(parameters(shipped, 32) > 0);
    QCOMPARE(parameters("mqar-tiny", 32), parameters(shipped, 32));
    QVERIFY(QDir().mkpath(program_.path("data/presets")));
    program_.write("data/presets/own.json", R"({"architecture": {"layers": 1}, "data": {"task": "mqar"}})");
    QVERIFY(parameters("own", 16) > 0 && parameters("own", 16) < parameters("own", 32));
  }

  /// Of documents that are left out for their length each domain's number is told, and kept with the run.
  void documents_left_out_are_told() {
    const auto run = [&](const char* name, const QStringList& more) {
      return program_.run(QStringList{"train", program_.path("config.json"), "--out", program_.path(name), "--set", "data.packing=packed"} +
                          more);
    };
    const auto result = run("long", {"--set", "data.min_document_tokens=346"});  // those whose number has two digits
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QFile file(program_.path("long/run.json"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const nlohmann::json taken = nlohmann::json::parse(file.readAll().toStdString())["provenance"]["documents_taken"];
    const int documents = taken["prose"]["documents"], of = taken["prose"]["of"];
    QVERIFY2(taken.size() == 1 && documents > 0 && documents < of && of < 60, taken.dump().c_str());
    QVERIFY2(result.err.contains(QStringLiteral("domain prose: %1 of %2 documents have a length").arg(documents).arg(of)),
             qPrintable(result.err));
    QVERIFY(!run("any", {}).err.contains("documents have a length"));
  }

  void a_run_is_never_overwritten() {
    const QByteArray before = program_.contents("first");
    const auto again = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("first")});
    QVERIFY2(again.code == 2 && is_one_error(again) && again.err.contains("already holds a run; resume it"), qPrintable(again.err));
    const auto resumed = program_.run({"resume", program_.path("first")});
    QVERIFY2(resumed.code == 0 && resumed.err.contains("had finished before"), qPrintable(resumed.err));
    QCOMPARE(program_.contents("first"), before);
  }

  void config_from_standard_input() {
    auto process = program_.start({"-q", "--json", "plan", "-"});
    process->write(QByteArray::fromStdString(Program::config().dump()));
    process->closeWriteChannel();
    const auto result = Program::finish(*process);
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QCOMPARE(result.json()["parameters"].get<int64_t>(), Run(program_.path("first").toStdString()).info().parameters);
  }

  /// What a run of the config would do a step, with all its accumulations, on the device that bench is given.
  void bench_times_a_config() {
    const auto parts = [&](const char* accumulate) {
      const auto result = program_.run({"-q", "--json", "bench", "--config", program_.path("config.json"), "--set",
                                        "training.batch_tokens=128", "--set", accumulate, "--set", "device=cuda:7", "--repeats", "1"});
      if (result.code != 0) qWarning("%s", qPrintable(result.err));
      return result.json()["steps"][0];
    };
    const nlohmann::json one = parts("training.gradient_accumulation=1"), two = parts("training.gradient_accumulation=2");
    QCOMPARE(one["batch_tokens"].get<int>(), 128);
    QCOMPARE(one["device"].get<std::string>(), "cpu");
    QCOMPARE(one["parameters"].get<int64_t>(), Run(program_.path("first").toStdString()).info().parameters);
    QCOMPARE(one["tokens_per_s"].get<double>(), 128 / (one["ms"].get<double>() / 1e3));
    QVERIFY(two["peak_bytes"].get<double>() < one["peak_bytes"].get<double>());
    QVERIFY(two["flops"].get<double>() > 0.9 * one["flops"].get<double>());
    const auto missing = program_.run({"bench", "--config", program_.path("none.json")});
    QVERIFY2(missing.code == 2 && is_one_error(missing), qPrintable(missing.err));
  }

  void bench_times_single_ops() {
    const QStringList arguments{"-q", "bench", "--ops", "--no-steps", "--preset", "2m-cpu", "--repeats", "1", "--warmup", "0"};
    const auto result = program_.run(QStringList{"--json"} + arguments);
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json(), ops = json["ops"];
    QVERIFY(json["steps"].empty());
    std::set<std::string> names;
    for (const nlohmann::json& op : ops) {
      QVERIFY2(op["ms"] > 0 && op["bytes"] > 0 && op["flops"] > 0 && op["preset"] == "2m-cpu", op.dump().c_str());
      names.insert(op["name"].get<std::string>());
    }
    QVERIFY(names.size() == ops.size() && names.contains("attention") && names.contains("top1_chunk exact"));
    const auto text = program_.run(arguments);
    QVERIFY2(text.code == 0 && text.out.contains("2m-cpu: top1_element"), qPrintable(text.out + text.err));
  }

  /// Prompts, one sequence and several side by side; a prompt beyond the model's positions is a point that says so.
  void bench_times_decoding() {
    QStringList arguments{"-q", "bench", "--decode", "--config", program_.path("config.json"), "--lengths", "8,16", "--batch", "1,2"};
    arguments << "--tokens"
              << "2"
              << "--repeats"
              << "1"
              << "--profile";
    const auto result = program_.run(QStringList{"--json"} + arguments);
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json decoding = result.json()["decoding"][0], points = decoding["points"];
    QCOMPARE(decoding["parameters"].get<int64_t>(), Run(program_.path("first").toStdString()).info().parameters);
    QCOMPARE(points.size(), 2u);
    for (const nlohmann::json& point : points) {
      const int length = point["length"];
      QVERIFY(point["prompt"]["ms"] > 0 && point["token"]["ms"] > 0 && !point["profile"].empty());
      QCOMPARE(point["batches"].size(), 2u);
      for (const nlohmann::json& b : point["batches"]) {
        const double sequences = b["batch"], step = b["step"]["ms"], prefill = b["prefill_ms"];
        QVERIFY(std::abs(b["tokens_per_s"].get<double>() / (sequences / step * 1e3) - 1) < 1e-9);
        // the prompts and the tokens that were timed, over the time of both
        const double rate = sequences * (length + 2) / (prefill + 2 * step) * 1e3;
        QVERIFY2(std::abs(b["whole_tokens_per_s"].get<double>() / rate - 1) < 1e-9, b.dump().c_str());
      }
    }
    QVERIFY(points[1]["state_bytes"].get<double>() > points[0]["state_bytes"].get<double>());
    QVERIFY(points[1]["prompt"]["flops"].get<double>() > 1.5 * points[0]["prompt"]["flops"].get<double>());
    const auto text = program_.run(arguments);
    QVERIFY2(text.code == 0 && text.out.contains("tokens/s") && text.out.contains("prompt of 16"), qPrintable(text.out + text.err));

    const auto beyond = program_.run({"-q", "--json", "bench", "--decode", "--config",
                                      qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/resources/presets/gpt-tiny.json", "--lengths",
                                      "16,100000", "--batch", "1", "--tokens", "2", "--repeats", "1"});
    QVERIFY2(beyond.code == 0, qPrintable(beyond.err));
    const nlohmann::json both = beyond.json()["decoding"][0]["points"];
    QVERIFY2(!both[0].contains("refusal") && both[1].contains("refusal"), both.dump().c_str());
  }

  /// Stopped by three signals on the way, the run ends with the very numbers of one that was left alone.
  void stopped_and_resumed_equals_uninterrupted() {
    const QStringList overrides{"training.steps=600", "training.checkpoint_every=100", "training.evaluate_every=50",
                                "training.probe_every=60"};
    program_.train("whole", overrides);
    QStringList arguments{"-q", "--json", "train", program_.path("config.json"), "--out", program_.path("parts")};
    for (const QString& o : overrides) arguments << "--set" << o;
    int interrupted = 0;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, 0}) {
      auto process = program_.start(arguments);
      if (signal) {
        QVERIFY(program_.wait_for_records("parts", 1 + 60 * (interrupted + 1)));
        // `timeout` and batch systems signal a process and its group: the same wish, twice.
        for (int times = 0; times < 2; ++times, QTest::qSleep(5)) ::kill(static_cast<pid_t>(process->processId()), signal);
      }
      const auto result = Program::finish(*process);
      QVERIFY2(result.code == 130 || result.code == 0, qPrintable(result.err));
      interrupted += result.code == 130;
      if (result.code == 130) QCOMPARE(result.json()["state"].get<std::string>(), "stopped");
      if (result.code == 0) break;
      arguments = {"-q", "--json", "resume", program_.path("parts")};
    }
    QVERIFY2(interrupted > 0, "the run ended before it could be stopped");
    compare_series("results.h5", [&](const QString& run) { return read_results_series(program_.path(run + "/results.h5").toStdString()); });
    compare_series("journal", [&](const QString& run) { return Run(program_.path(run).toStdString()).series(); });
    compare_weights();
  }

  /// With decay 0.1 a matrix grows ninefold every step: (1 - 100 * 0.1).
  void a_divergence_is_an_error() {
    const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("diverged"), "--set",
                                      "training.learning_rate=100", "--set", "training.max_grad_norm=0", "--set", "training.steps=3000",
                                      "--set", "training.warmup_steps=0"});
    QCOMPARE(result.code, 1);
    QVERIFY2(result.err.startsWith("saccade: ") && result.err.contains("diverged") && result.err.count('\n') == 1, qPrintable(result.err));
    QVERIFY(result.out.contains("diverged at step"));
  }

  /// Nobody reads what is printed: the run goes on to its end all the same.
  void a_pipe_that_closes_does_not_end_a_run() {
    const auto unread = [] {
      int ends[2];
      if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(99);
      ::close(ends[0]);
      ::close(ends[1]);
    };
    const auto result =
        program_.run({"train", program_.path("config.json"), "--out", program_.path("unread"), "--set", "training.steps=60"}, unread);
    QCOMPARE(result.code, 0);
    QVERIFY(Run(program_.path("unread").toStdString()).info().state == RunState::finished);
  }

  /// The stacks of the threads take what memory there is, and the last ones cannot be started: the run trains, or says so.
  void threads_that_cannot_be_started_hang_nothing() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    QSKIP("a sanitizer takes more memory than that");
#endif
    const auto limit = [] {
      const rlimit data{400 << 20, 400 << 20};
      if (::setrlimit(RLIMIT_DATA, &data) != 0) ::_exit(99);
    };
    qputenv("SACCADE_THREADS", "200");
    const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("few")}, limit);
    qunsetenv("SACCADE_THREADS");
    QVERIFY2(result.code == 0 || (result.code > 0 && is_one_error(result)), qPrintable(QString::number(result.code) + ": " + result.err));
  }

  void compare_follows_a_live_run() {
    auto process =
        program_.start({"-q", "train", program_.path("config.json"), "--out", program_.path("live"), "--set", "training.steps=1000000"});
    QVERIFY(program_.wait_for_records("live", 30));
    const auto result = program_.run({"--json", "compare", program_.path("live"), program_.path("first")});
    QCOMPARE(process->state(), QProcess::Running);
    process->terminate();
    QCOMPARE(Program::finish(*process).code, 130);
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json();
    QCOMPARE(json["rows"].size(), size_t(2));
    QVERIFY(json["rows"][0]["pretraining_loss"].get<double>() > 1);
    QVERIFY(json["warnings"].dump().find("not finished (running)") != std::string::npos);
  }

  void evaluate_repeats_the_last_evaluation() {
    const auto result = program_.run({"-q", "--json", "evaluate", program_.path("first")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const Run run(program_.path("first").toStdString());
    const nlohmann::json json = result.json();
    for (const auto& loss : json.at("losses")) {
      const bool ood = loss["ood"];
      const Series* series = run.find((ood ? "ood/loss/" : "validation/loss/") + loss["domain"].get<std::string>());
      QVERIFY(series);
      QCOMPARE(loss["loss"].get<double>(), series->value.back());
      QCOMPARE(loss["standard_error"].get<double>(), series->error.back());
    }
    const auto missing = program_.run({"-q", "evaluate", program_.path("first"), "--checkpoint", "5"});
    QVERIFY2(missing.code == 2 && is_one_error(missing) && missing.err.contains("checkpoints of step 8 or 12"), qPrintable(missing.err));
  }

 private:
  template <class Read>
  void compare_series(const char* where, Read read) {
    const std::vector<Series> whole = read("whole"), parts = read("parts");
    QCOMPARE(parts.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::string what = std::string(where) + ": " + whole[i].name;
      QCOMPARE(parts[i].name, whole[i].name);
      if (whole[i].name == "tokens_per_second" || whole[i].name == "process_memory") continue;  // of the process, not of the run
      const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
        return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
      };
      QVERIFY2(!whole[i].value.empty() && same(parts[i].value, whole[i].value), what.c_str());
      QVERIFY2(same(parts[i].step, whole[i].step) && same(parts[i].tokens, whole[i].tokens) && same(parts[i].flops, whole[i].flops),
               what.c_str());
    }
  }

  void compare_weights() {
    const Checkpoint whole = read_checkpoint(program_.path("whole/checkpoints/step-600.h5").toStdString()),
                     parts = read_checkpoint(program_.path("parts/checkpoints/step-600.h5").toStdString());
    QCOMPARE(whole.state.optimizer.size(), size_t{2});
    QCOMPARE(parts.state.optimizer.size(), size_t{2});
    for (const size_t group : {0, 1, 2}) {
      const auto& a = group == 0 ? whole.state.weights : whole.state.optimizer[group - 1].tensors;
      const auto& b = group == 0 ? parts.state.weights : parts.state.optimizer[group - 1].tensors;
      QCOMPARE(b.size(), a.size());
      for (size_t i = 0; i < a.size(); ++i)
        QVERIFY2(std::memcmp(a[i].tensor.raw(), b[i].tensor.raw(), static_cast<size_t>(a[i].tensor.bytes())) == 0, a[i].name.c_str());
    }
  }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TrainCliTest)
#include "train_cli_test.moc"
