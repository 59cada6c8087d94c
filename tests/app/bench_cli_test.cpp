// What `saccade bench` keeps in files, and figures make of them.
#include "tests/app/program.h"

namespace saccade::test {

class BenchCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Whole sequences of about as many tokens at every length; what does not fit is a point that says so; kept for figures, which read it.
  void bench_over_lengths() {
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
    nlohmann::json twin = Program::config();
    twin["name"] = "twin";
    program_.write("twin.json", QByteArray::fromStdString(twin.dump()));
    const std::string name = Program::config().at("name");
    QStringList arguments{"-q", "--json", "bench", "--config", program_.path("config.json"), "--config", program_.path("twin.json")};
    const auto result = program_.run(arguments + QStringList{"--lengths", "16,64,4194304", "--step-tokens", "256", "--repeats", "1",
                                                             "--relative", name.c_str(), "--out", program_.path("steps.json")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const nlohmann::json json = result.json(), steps = json["steps"];
    QCOMPARE(steps.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const nlohmann::json& step = steps[i];
      const bool fits = i % 3 < 2;
      QCOMPARE(step.contains("refusal"), !fits);
      QVERIFY2(step["preset"] == (i < 3 ? name : "twin") && step["batch_tokens"] == (fits ? 256 : 4194304), step.dump().c_str());
      if (!fits) continue;
      const double ratio = step["tokens_per_s"].get<double>() / steps[i % 3]["tokens_per_s"].get<double>();
      QVERIFY(step["peak_bytes"] > 0 && std::abs(step["relative"].get<double>() / ratio - 1) < 1e-9);
    }
    const nlohmann::json kept = nlohmann::json::parse(std::ifstream(program_.path("steps.json").toStdString()));
    QVERIFY2(kept["steps"] == steps && kept["saccade_bench"] == 1 && kept["made"].is_string() && kept["versions"].is_object(),
             kept.dump().c_str());
    const auto unknown = program_.run(arguments + QStringList{"--lengths", "16", "--relative", "twins"});
    QVERIFY2(unknown.code == 2 && is_one_error(unknown) && unknown.err.contains("twin"), qPrintable(unknown.err));

    const auto prompts =
        program_.run(arguments + QStringList{"--decode", "--lengths", "8,16", "--batch", "1,2", "--tokens", "2", "--repeats", "1",
                                             "--relative", "twin", "--out", program_.path("new/prompts.json")});
    QVERIFY2(prompts.code == 0, qPrintable(prompts.err));
    const nlohmann::json point = prompts.json()["decoding"][0]["points"][1];
    QVERIFY2(point["peak_bytes"] > point["state_bytes"] && point["relative"] > 0 && point["batches"][1]["relative"] > 0,
             point.dump().c_str());
    const QStringList figure{
        "-q", "export", "--recipe", "speed", "--bench", program_.path("steps.json"), program_.path("new/prompts.json")};
    const auto drawn = program_.run(figure + QStringList{"--out", program_.path("speed.csv")});
    QVERIFY2(drawn.code == 0, qPrintable(drawn.err));
    QFile csv(program_.path("speed.csv"));
    QVERIFY(csv.open(QIODevice::ReadOnly));
    QVERIFY(csv.readAll().contains("twin,sequence (tokens),training (tokens/s),16,"));
    const auto nothing = program_.run({"-q", "export", "--recipe", "speed", "--out", program_.path("none.csv")});
    QVERIFY2(nothing.code == 3 && is_one_error(nothing), qPrintable(nothing.err));
  }

 private:
  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BenchCliTest)
#include "bench_cli_test.moc"
