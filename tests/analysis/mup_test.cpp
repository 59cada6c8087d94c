#include <QtTest>
#include <cmath>

#include "analysis/training/coordinates.h"
#include "kernels/engine/transfer.h"
#include "models/training/training_step.h"
#include "tests/analysis/trained_run.h"
#include "tests/support/message.h"

namespace saccade::test {

/// µP (arXiv:2203.03466): at its base width the published model, and from there activations that keep their size.
class MupTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kBase = 32;

  static nlohmann::json architecture_of(const QString& name) {
    if (name == "transformer++") return {{"block", "llama"}, {"mixer", "attention"}, {"heads", 4}};
    if (name == "transformer++, own output") return {{"block", "llama"}, {"mixer", "attention"}, {"heads", 4}, {"tied", false}};
    if (name == "top-1 chunk") return {{"block", "llama"}, {"mixer", "top1_chunk"}, {"heads", 4}, {"chunk", 16}};
    if (name == "top-1 element") return {{"block", "llama"}, {"mixer", "top1_element"}, {"heads", 4}};
    if (name == "mamba-2") return {{"block", "mamba"}, {"mixer", "mamba2"}, {"heads", 4}, {"state", 16}};
    if (name == "gated deltanet") return {{"block", "llama"}, {"mixer", "gated_deltanet"}, {"heads", 4}};
    return {{"block", "rwkv"}, {"mixer", "rwkv7"}, {"heads", 4}};
  }
  static RunConfig config(const QString& name, const std::string& initialisation, int64_t width = kBase) {
    nlohmann::json object = tiny_run("tiny"), architecture = architecture_of(name);
    architecture.update({{"width", width}, {"layers", 2}});
    object["architecture"] = architecture;
    object["training"].update({{"learning_rate", 0.01}, {"warmup_steps", 0}, {"batch_tokens", 256}, {"evaluation_tokens", 64}});
    object["training"]["initialisation"] = initialisation;
    if (initialisation == "mup") object["training"]["mup_base_width"] = kBase;
    return resolve_config(object, "mup");
  }
  static void five() {
    QTest::addColumn<QString>("name");
    for (const char* name :
         {"transformer++", "transformer++, own output", "top-1 chunk", "top-1 element", "mamba-2", "gated deltanet", "rwkv-7"})
      QTest::newRow(name) << name;
  }
  static std::vector<std::vector<double>> weights_of(const RunConfig& config) {
    TrainingStep step(config, 257, Device::cpu());
    std::vector<std::vector<double>> all;
    for (const Parameter& p : step.model().parameters()) all.push_back(to_doubles(p.value));
    return all;
  }
  static double rms(const std::vector<double>& values) {
    double squares = 0;
    for (const double v : values) squares += v * v;
    return std::sqrt(squares / static_cast<double>(values.size()));
  }

  TinyCorpus corpus_;

 private Q_SLOTS:
  void at_the_base_width_nothing_changes_data() { five(); }
  void at_the_base_width_nothing_changes() {
    QFETCH(QString, name);
    QVERIFY(weights_of(config(name, "mup")) == weights_of(config(name, "published")));
    const TrainingStep planned(config(name, "mup"), 257, Device::plan());
    for (const AdamWSlot& slot : planned.slots()) QCOMPARE(slot.rate, 1.0);
  }

  /// Table 3, tensor by tensor, of a Transformer whose output is its embedding (table 8), and of one with an output matrix.
  void rates_and_deviations_are_those_of_the_tables() {
    for (const bool tied : {true, false}) {
      const QString name = tied ? "transformer++" : "transformer++, own output";
      RunConfig wide = config(name, "mup", 4 * kBase);
      const TrainingStep step(wide, 257, Device::cpu()), base(config(name, "published"), 257, Device::cpu());
      for (size_t i = 0; i < step.slots().size(); ++i) {
        const Parameter &p = step.model().parameters()[i], &b = base.model().parameters()[i];
        QCOMPARE(p.name, b.name);
        const double ratio = rms(to_doubles(p.value)) / rms(to_doubles(b.value)), rate = step.slots()[i].rate;
        double wanted_rate = 0.25, wanted_ratio = 0.5;  // hidden: 1 / r, 1 / √r
        if (p.name.find("norm") != std::string::npos || p.name == "embedding") wanted_rate = 1, wanted_ratio = 1;
        if (p.name.find("down") != std::string::npos) {  // the MLP's width grows from 128 to 384, not fourfold
          wanted_rate = 1 / 3.0, wanted_ratio = 1 / std::sqrt(3.0);
        }
        if (p.name.find(".query") != std::string::npos) wanted_rate /= 2, wanted_ratio /= 2;  // 1/d for 1/√d
        if (p.name == "output" || (tied && p.name == "final_norm")) wanted_rate = 0.25, wanted_ratio = 0.25;
        QVERIFY2(std::abs(rate - wanted_rate) < 1e-12, qPrintable(QString::fromStdString(p.name) + ": " + QString::number(rate)));
        QVERIFY2(std::abs(ratio / wanted_ratio - 1) < 0.03, qPrintable(QString::fromStdString(p.name) + ": " + QString::number(ratio)));
      }
    }
  }

  void sizes_stay_with_the_width_data() { five(); }
  void sizes_stay_with_the_width() {
    QFETCH(QString, name);
    const std::vector<int64_t> widths{32, 64, 128, 256};
    const auto sizes = [&](const std::string& initialisation) {
      std::vector<std::vector<double>> all;  // layers and logits, as they are and what changed in them
      for (const Coordinates& c : check_coordinates(config(name, initialisation), widths, 6)) {
        std::vector<double> one = c.layers;
        one.insert(one.end(), c.changes.begin(), c.changes.end());
        one.insert(one.end(), {c.logits, c.change});
        all.push_back(one);
      }
      return all;
    };
    const auto largest_growth = [&](const std::vector<std::vector<double>>& all) {
      double most = 0;
      for (size_t i = 0; i < all.front().size(); ++i) most = std::max(most, all.back()[i] / all.front()[i]);
      return most;
    };
    const auto carried = sizes("mup"), published = sizes("published");
    for (size_t i = 0; i < carried.front().size(); ++i) {
      double least = INFINITY, most = 0;
      for (const auto& of_width : carried) least = std::min(least, of_width[i]), most = std::max(most, of_width[i]);
      QVERIFY2(most / least < 3, qPrintable(QString("size %1: from %2 to %3").arg(i).arg(least).arg(most)));
    }
    QVERIFY2(largest_growth(published) > 2.5, qPrintable(QString::number(largest_growth(published))));
    QVERIFY2(largest_growth(published) > 1.5 * largest_growth(carried),
             qPrintable(QString("%1 and %2").arg(largest_growth(published)).arg(largest_growth(carried))));
  }

  void a_normal_start_has_one_deviation() {
    RunConfig normal = config("rwkv-7", "normal", 64);
    normal.training.initial_deviation = 0.03;
    const TrainingStep step(normal, 257, Device::cpu()), published(config("rwkv-7", "published", 64), 257, Device::cpu());
    int random = 0;
    for (size_t i = 0; i < step.slots().size(); ++i) {
      const Parameter &p = step.model().parameters()[i], &b = published.model().parameters()[i];
      QCOMPARE(step.slots()[i].rate, 1.0);
      if (b.deviation > 0 && b.value.rank() > 1) {
        QVERIFY2(std::abs(rms(to_doubles(p.value)) / 0.03 - 1) < 0.05, p.name.c_str());
        ++random;
      } else {
        QVERIFY2(to_doubles(p.value) == to_doubles(b.value), p.name.c_str());
      }
    }
    QVERIFY(random > 4);
  }

  void deviations_are_those_of_the_values() {
    for (const char* name : {"transformer++, own output", "mamba-2", "gated deltanet", "rwkv-7"}) {
      const TrainingStep step(config(name, "published", 128), 257, Device::cpu());
      for (const Parameter& p : step.model().parameters())
        if (p.deviation > 0 && p.value.size() > 2000)
          QVERIFY2(std::abs(rms(to_doubles(p.value)) / p.deviation - 1) < 0.05, (std::string(name) + " " + p.name).c_str());
    }
  }

  void refused() {
    const auto with = [](const nlohmann::json& change) {
      nlohmann::json object = to_json(config("transformer++", "mup", 64));
      object.merge_patch(change);
      return message_of<UsageError>([&] { resolve_config(object, "x"); });
    };
    QVERIFY(with({{"training", {{"mup_base_width", 0}}}}).contains("expected /training/mup_base_width above 0"));
    QVERIFY(with({{"training", {{"mup_base_width", 30}}}}).contains("a model of that width is refused"));
    nlohmann::json muon = to_json(config("transformer++", "published", 64));
    for (const char* name : {"weight_decay", "beta1", "beta2", "epsilon"}) muon["training"].erase(name);
    muon["training"].update({{"optimizer", "muon"}, {"initialisation", "mup"}, {"mup_base_width", 32}});
    QVERIFY(message_of<UsageError>([&] { resolve_config(muon, "x"); }).contains("/training/optimizer \"adamw\""));
    QVERIFY_THROWS_EXCEPTION(UsageError, check_coordinates(tiny_config("avey"), {16}, 1));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::MupTest)
#include "mup_test.moc"
