#include <QDir>
#include <QtTest>

#include "models/architectures/registry.h"
#include "models/training/plan.h"
#include "models/training/run_pace.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

class PlanTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Six FLOPs per parameter and token, and attention's share on top, tell whether the count is of the right size.
  void a_paper_model_is_planned_without_its_memory() {
    const RunConfig config = resolve_config({{"architecture", {{"width", 768}, {"layers", 12}, {"heads", 12}}},
                                             {"data", {{"sequence_length", 2048}}},
                                             {"training", {{"batch_tokens", 16384}, {"gradient_accumulation", 4}}}},
                                            "test");
    const Plan plan = make_plan(config, 32000);
    QCOMPARE(plan.parameters, 109529856);
    QCOMPARE(plan.weight_bytes, 4 * plan.parameters);
    QCOMPARE(plan.gradient_bytes, plan.weight_bytes);
    QCOMPARE(plan.optimizer_bytes, 2 * plan.weight_bytes);
    const double plain = 6.0 * 109529856 * 16384;
    QVERIFY2(plan.flops_per_step > plain && plan.flops_per_step < 1.5 * plain, qPrintable(QString::number(plan.flops_per_step / plain)));
    QVERIFY(plan.flops_per_evaluation > 0 && plan.total_flops() == 1000 * plan.flops_per_step);
    QCOMPARE(plan.state_bytes_per_token, 2 * 12 * 768 * 4);
  }

  void micro_batches_save_memory_and_cost_the_same() {
    const Plan whole = make_plan(small_run({{"heads", 2}}), 257),
               pieces = make_plan(small_run({{"heads", 2}}, {{"gradient_accumulation", 4}}), 257);
    QVERIFY(pieces.activation_bytes < whole.activation_bytes);
    QVERIFY(std::abs(pieces.flops_per_step / whole.flops_per_step - 1) < 0.1);
  }

  /// A third more at most: every block runs forward twice, the rest once.
  void recomputing_saves_memory_and_costs_a_third() {
    const auto plan = [](bool recompute) {
      return make_plan(small_run({{"heads", 2}, {"layers", 12}}, {{"activation_checkpointing", recompute}}), 257);
    };
    const Plan kept = plan(false), again = plan(true);
    QVERIFY2(again.activation_bytes < kept.activation_bytes / 3,
             qPrintable(QString("%1 of %2 bytes").arg(again.activation_bytes).arg(kept.activation_bytes)));
    const double more = again.flops_per_step / kept.flops_per_step;
    QVERIFY2(more > 1.1 && more < 1.34, qPrintable(QString::number(more)));
  }

  void state_per_token_knows_the_mixer() {
    const auto state = [](const nlohmann::json& a) { return make_plan(small_run(a, {}, "f64"), 257).state_bytes_per_token; };
    QCOMPARE(state({{"heads", 2}}), 2 * 2 * 16 * 8);
    QCOMPARE(state({{"heads", 2}, {"window", 6}}), 2 * 2 * 16 * 8 / 4);
    QCOMPARE(state({{"heads", 2}, {"relation", "constant-both"}}), 2 * 16 * 8);
    QCOMPARE(state({{"heads", 2}, {"mixer", "top1_chunk"}, {"chunk", 8}, {"selection", "approx"}}), 2 * (2 * 16 + 2) * 8);
  }

  void a_gpu_needs_memory_besides_tensors() {
    RunConfig config = small_run({{"heads", 2}}, {}, "auto");
    QCOMPARE(make_plan(config, 257).runtime_bytes, 0);
    config.device = "cuda:7";  // need not be there
    const Plan plan = make_plan(config, 257);
    QVERIFY(plan.runtime_bytes > 0 && plan.device_bytes() == plan.peak_bytes + plan.runtime_bytes);
    QCOMPARE(QString::fromStdString(plan.device), "cuda:7");
  }

  /// Which engine a plan stands for, where it is for, and how often a step was planned for that.
  void a_plan_is_made_once_for_its_device() {
    RunConfig config = small_run({{"heads", 2}});
    const auto planned = [&](const char* device, const char* precision) {
      config.device = device, config.precision = precision;
      const int64_t before = plans_made();
      const Plan plan = make_plan(config, 257);
      return std::pair(plan, plans_made() - before);
    };
    const auto [cpu, once] = planned("cpu", "f64");
    QVERIFY(cpu.where == Device::cpu() && cpu.vocabulary == 257 && once == 1);
    const auto [missing, once_too] = planned("cuda:7", "bf16");
    QVERIFY(!missing.where && once_too == 1 && missing.runtime_bytes > 0);
    QVERIFY_THROWS_EXCEPTION(DeviceError, require_device(config, missing));
    QVERIFY_THROWS_EXCEPTION(DeviceError, require_precision(config));
    if (const auto [any, plans] = planned("auto", "f64"); find_device("auto") != Device::cpu())
      QVERIFY(any.where == Device::cpu() && plans == 1 && QString::fromStdString(any.why_not_gpu).contains("f64"));
    else
      QVERIFY(any.where == Device::cpu() && plans == 1 && any.why_not_gpu.empty());
    config.device = "cpu";
    const int64_t before = plans_made();
    QVERIFY(run_device(config, 257) == Device::cpu() && plans_made() == before);
    QVERIFY_THROWS_EXCEPTION(UsageError, planned("cpu", "bf16"));
    QVERIFY_THROWS_EXCEPTION(UsageError, planned("cuda:7", "f64"));
  }

  /// What the CUDA engine cannot run is told before anything is allocated, with the op's name.
  void an_op_that_an_engine_lacks_is_named() {
    RunConfig config = small_run({{"host", "rwkv"}, {"mixer", "rwkv6"}, {"width", 512}, {"heads", 1}}, {}, "auto", "cuda:7");
    try {
      make_plan(config, 257);
      QFAIL("heads of 512 are planned");
    } catch (const DeviceError& error) {
      QCOMPARE(QString(error.what()), QString("[wkv] heads are 512 wide, a GPU takes at most 256"));
    }
    QVERIFY_THROWS_EXCEPTION(DeviceError, planned_evaluation_bytes(config, 257, Engine::cuda, 24));
    config.device = "cpu";
    QVERIFY(make_plan(config, 257).where == Device::cpu());
  }

  /// Sizes that no kernel for tensor cores takes are told, once each.
  void slow_sizes_on_a_gpu_are_named() {
    const auto slow = [](const nlohmann::json& architecture, const std::string& precision = "bf16") {
      RunConfig config = small_run(architecture, {}, precision, "cuda:7");
      return make_plan(config, 257).without_tensor_cores;
    };
    QVERIFY(slow({{"mixer", "attention"}, {"width", 128}, {"heads", 2}}).empty());
    QCOMPARE(slow({{"mixer", "attention"}, {"width", 96}, {"heads", 2}}),
             (std::vector<std::string>{"[attention] heads of 48; those of 16, 32, 64 and 128 have one"}));
    QVERIFY(slow({{"mixer", "attention"}, {"width", 96}, {"heads", 2}}, "f32").empty());
    const auto delta = slow({{"mixer", "gated_deltanet"}, {"width", 96}, {"heads", 2}, {"key_width", 48}});
    QCOMPARE(delta.size(), size_t{1});
    QVERIFY2(delta[0].starts_with("[delta_rule] keys of 48 and values of "), delta[0].c_str());
    QCOMPARE(slow({{"host", "rwkv"}, {"mixer", "rwkv6"}, {"width", 96}, {"heads", 2}}).size(), size_t{1});
    QVERIFY(slow({{"host", "rwkv"}, {"mixer", "rwkv6"}, {"width", 128}, {"heads", 2}}).empty());
    QVERIFY(!slow({{"mixer", "mamba2"}, {"width", 96}, {"heads", 4}}).empty());
  }

  void steps_are_really_timed() {
    const RunConfig config = small_run({{"heads", 2}});
    const RunPace pace = measure_pace(config, make_plan(config, 257));
    const nlohmann::json parts = to_json(pace);
    for (const auto& [name, seconds] : parts.items()) QVERIFY2(seconds.get<double>() > 0, name.c_str());
    QVERIFY(to_json(pace_from(parts)) == parts);
    QCOMPARE(to_json(make_plan(small_run({{"heads", 2}}), 257)).at("tokens_per_step").get<int>(), 96);
  }

  /// Statistics and captures of every architecture, on the plan of a GPU too.
  void looking_is_planned_for_a_gpu() {
    const QDir folder(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/resources/presets");
    const QStringList files = folder.entryList({"*-tiny.json"}, QDir::Files, QDir::Name);
    QVERIFY(files.size() >= 20);
    for (const QString& file : files) {
      RunConfig config = load_config(folder.filePath(file).toStdString());
      config.device = "cuda:7";
      const Plan plan = make_plan(config, 257);
      QVERIFY2(plan.probe_bytes > plan.weight_bytes && plan.capture_bytes > 0 && plan.host_bytes() >= plan.capture_bytes, qPrintable(file));
      QCOMPARE(plan.device_bytes(), std::max(plan.peak_bytes, plan.probe_bytes) + plan.runtime_bytes);
    }
  }

  /// Domains of a generated task are evaluated at their own lengths: they count in memory and FLOPs, on the arena that holds the weights,
  /// gradients and moments of the training, and what does not fit is refused before the start.
  void evaluation_beyond_the_trained_length_is_planned() {
    const auto config = [](const std::string& longest, const std::string& block = "llama", int64_t width = 32) {
      return resolve_config({{"architecture", {{"block", block}, {"width", width}, {"layers", 2}, {"heads", 2}}},
                             {"data", {{"task", "parity"}, {"train", {"length-16"}}, {"ood", {longest}}}},
                             {"training", {{"batch_tokens", 64}, {"evaluation_tokens", 64}}},
                             {"device", "cpu"}},
                            "test");
    };
    const auto planned = [&](const std::string& longest) { return make_plan(config(longest), 5); };
    const Plan same = planned("length-16-least-8"), longer = planned("length-8192");
    QVERIFY(same.evaluation_bytes < same.peak_bytes && longer.evaluation_bytes == longer.peak_bytes);
    const int64_t state = longer.weight_bytes + longer.gradient_bytes + longer.optimizer_bytes;
    QVERIFY(longer.peak_bytes > state + 4 * 32 * 8192 && longer.device_bytes() > same.device_bytes());
    QVERIFY(longer.device_bytes() >= longer.evaluation_bytes);
    QCOMPARE(longer.flops_per_step, same.flops_per_step);
    QVERIFY(longer.flops_per_evaluation > 256 * same.flops_per_evaluation);  // 4 sequences each, 512 times as long, one domain of two
    const RunConfig huge = config("length-1000000", "llama", 8192);
    const Plan terabyte = make_plan(huge, 5);
    QVERIFY(terabyte.device_bytes() > int64_t{100} << 30);
    try {
      require_device(huge, terabyte);
      QVERIFY2(terabyte.device_bytes() <= terabyte.memory.available, "more is granted than there is");
    } catch (const DeviceError& error) {
      QVERIFY2(QString(error.what()).startsWith("evaluating the domains of the run needs") &&
                   QString(error.what()).contains("name shorter domains in /data/ood"),
               error.what());
    }
    try {
      make_plan(config("length-32", "gpt"), 5);
      QFAIL("a table of 16 positions reads 32");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).startsWith("/data/ood names \"length-32\", but the model ends at 16 tokens"), error.what());
    }
  }

  /// Maps of 65 536² in 64 heads are a tebibyte; the steps themselves fit.
  void captures_that_do_not_fit_are_refused_before_the_start() {
    const int64_t length = 65536;
    const nlohmann::json object{{"architecture", {{"width", 128}, {"layers", 1}, {"heads", 64}}},
                                {"data", {{"sequence_length", length}, {"tokenizer", "bytes"}}},
                                {"training", {{"batch_tokens", length}, {"capture_tokens", length}}},
                                {"device", "cpu"}};
    const RunConfig config = resolve_config(object, "test");
    const Plan plan = make_plan(config, 257);
    QVERIFY(plan.capture_bytes >= int64_t{64} * length * length * 4 && plan.peak_bytes < plan.memory.available);
    try {
      require_device(config, plan);
      QFAIL("a tebibyte is granted");
    } catch (const DeviceError& error) {
      QVERIFY2(QString(error.what()).contains("reduce /training/capture_tokens"), error.what());
    }
    nlohmann::json fewer = object;
    fewer["training"]["capture_tokens"] = 256;
    const RunConfig fits = resolve_config(fewer, "test");
    require_device(fits, make_plan(fits, 257));
  }

  void presets_are_whole_configs_of_the_size_they_claim() {
    const QDir folder(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/resources/presets");
    const QStringList files = folder.entryList({"*.json"}, QDir::Files, QDir::Name);
    QVERIFY(files.size() >= 90);
    for (const QString& file : files) {
      const RunConfig config = load_config(folder.filePath(file).toStdString());
      QCOMPARE(QString::fromStdString(config.name), QFileInfo(file).completeBaseName());
      const std::string& tokenizer = config.data.tokenizer;
      const size_t colon = tokenizer.find(':');
      const int64_t parameters = make_plan(config, colon == std::string::npos ? 257 : std::stoll(tokenizer.substr(colon + 1))).parameters;
      const auto [low, high] = file.contains("tiny")     ? std::pair(5e4, 4e5)
                               : file.contains("demo")   ? std::pair(1e6, 2.2e6)
                               : file.contains("10m")    ? std::pair(9e6, 12e6)
                               : file.contains("large")  ? std::pair(1.25e9, 1.6e9)
                               : file.contains("medium") ? std::pair(480e6, 510e6)
                                                         : std::pair(105e6, 170e6);
      QVERIFY2(static_cast<double>(parameters) > low && static_cast<double>(parameters) < high,
               qPrintable(QString("%1: %2 parameters").arg(file).arg(parameters)));
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::PlanTest)
#include "plan_test.moc"
