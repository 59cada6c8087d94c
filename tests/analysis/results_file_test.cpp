#include "analysis/runs/results_file.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <fstream>

#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// results.h5 holds what the journal says, and other people's tools plot it on opening.
class ResultsFileTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    directory_ = folder_.filePath("run").toStdString();
    FixtureOptions options;
    RunWriter writer = RunWriter::create(directory_, fixture_info(options));
    writer.set_state(RunState::running, 0);
    for (int64_t step = 1; step <= 60; ++step) {
      StepRecord record = fixture_step(options, step);
      if (step == 7) record.loss = std::nan("");
      writer.add(record);
      if (step % 20 == 0) writer.add(fixture_evaluation(options, step));
      if (step % 30 == 0) writer.add(fixture_statistics(options, step));
    }
    writer.write_results();
  }

  void holdsEverySeries() {
    const Run run(directory_);
    const auto series = read_results_series(directory_ / "results.h5");
    QCOMPARE(series.size(), run.series().size());
    for (size_t i = 0; i < series.size(); ++i) QVERIFY2(same(series[i], run.series()[i]), series[i].name.c_str());
  }

  void h5pySeesLayoutAndFilters() {
    run_python("import h5py", R"(
import h5py, json, math, sys
f = h5py.File(sys.argv[1], 'r')
def text(v): return v.decode() if isinstance(v, bytes) else v
assert text(f.attrs['NX_class']) == 'NXroot' and text(f.attrs['default']) == 'run'
assert text(f['run'].attrs['default']) == 'losses' and text(f['run/losses'].attrs['signal']) == 'validation.loss'
loss = f['run/series/train.loss/value']
assert loss.shape == (60,) and math.isnan(loss[6]) and loss.attrs['units'] in ('nats', b'nats')
assert json.loads(f['run/config'][0])['training']['seed'] == 1
entropy = f['run/statistics/entropy']
assert entropy['value'].shape == (2, 3, 4)
assert [text(a) for a in entropy.attrs['axes']] == ['step', 'layer', 'head'] and list(entropy['layer']) == [0, 1, 2]
assert text(entropy['value'].attrs['long_name']) == 'entropy (nats)' and text(entropy.attrs['description']).startswith('entropy of what')
for axis in ('step', 'layer', 'head'): assert entropy[axis].attrs['units'] and entropy[axis].attrs['long_name']
assert 'heads' not in entropy.attrs
errors = f['run/series/ood.loss.c/value_errors']
assert list(errors) == [0.02] * 3 and text(errors.attrs['units']) == 'nats'
assert text(errors.attrs['long_name']).startswith('standard error of ood/loss/c')
assert 'value_errors' not in f['run/series/train.loss'] and f['run/losses/validation.loss_errors'].shape == (3,)
def check(name, o):
    if not isinstance(o, h5py.Dataset): return
    assert o.chunks and o.shuffle and o.compression == 'gzip' and o.fletcher32, name
    assert o.dtype.kind != 'O', name + ' is of variable length'
f.visititems(check)
)");
  }

  /// Items of a task with choices, of which one has fewer, and of one that is answered; a result of other data is left out.
  void h5pySeesTheItemsOfTasks() {
    const fs::path directory = folder_.filePath("tasks").toStdString();
    RunWriter writer = RunWriter::create(directory, fixture_info({}));
    using Json = nlohmann::json;
    const auto add = [&](const std::string& task, const std::string& metric, const std::string& data, const Json& items) {
      writer.add(TaskScoreRecord{20, task, metric, 0.25, "data", "checkpoint", {{metric, 0.5, 0.1, 2}}});
      fs::create_directories(directory / "tasks");
      const Json key{{"data_hash", data}, {"checkpoint_hash", "checkpoint"}};
      write_sealed_json(directory / "tasks" / (task + "-step-20.json"), {{"key", key}, {"items", items}});
    };
    const auto choices = [](const std::vector<double>& ll, int chosen, int gold) {
      const std::vector<int64_t> lengths(ll.size(), 4);
      return Json{{"log_likelihoods", ll}, {"chosen", 0}, {"chosen_norm", chosen}, {"chosen_bytes", 0},
                  {"gold", gold},          {"group", ""}, {"characters", lengths}, {"tokens", lengths}};
    };
    const auto answer = [](const char* text, double right, const Json& depth) {
      return Json{{"answer", text}, {"target", "17"}, {"right", right}, {"group", ""}, {"prompt_tokens", 90}, {"depth", depth}};
    };
    add("arc-easy", "acc_norm", "data", {choices({-1.5, -2, -3}, 1, 1), choices({-4, -1}, 0, 1)});
    add("passkey-267", "exact", "data", {answer("17", 1, 0.25), answer("é", 0, nullptr)});
    add("piqa", "acc_norm", "other data", {choices({-1, -2}, 0, 0)});
    writer.write_results();
    run_python("import h5py", R"(
import h5py, math, sys
f = h5py.File(sys.argv[1], 'r')['run/evaluation']
items = f['arc-easy/items/step-20']
ll = items['log_likelihoods']
assert ll.shape == (2, 3) and list(ll[0]) == [-1.5, -2, -3] and list(ll[1][:2]) == [-4, -1] and math.isnan(ll[1][2])
assert ll.attrs['units'] in ('nats', b'nats') and list(items['characters'][0]) == [4, 4, 4] and items['tokens'].shape == (2, 3)
assert list(items['right']) == [1, 0] and list(items['chosen_norm']) == [1, 0] and list(items['gold']) == [1, 1]
written = f['passkey-267/items/step-20']
assert list(written['right']) == [1, 0] and list(written['prompt_tokens']) == [90, 90]
assert written['depth'][0] == 0.25 and math.isnan(written['depth'][1])
assert [a.decode() for a in written['answer']] == ['17', 'é'] and [t.decode() for t in written['target']] == ['17', '17']
assert 'items' not in f['piqa'] and f['piqa/acc_norm'][0] == 0.5
)",
               directory);
  }

  void silxPlotsTheLosses() {
    run_python("import silx.io.nxdata", R"(
import sys, silx.io
from silx.io.nxdata import get_default
f = silx.io.open(sys.argv[1])
plot = get_default(f, validate=True)
assert plot is not None and plot.is_valid and plot.is_curve, 'no default curve'
assert 'validation/loss' in plot.signal_name, plot.signal_name
assert 'training tokens' in str(plot.axes_names), plot.axes_names
assert len(plot.auxiliary_signals_names) == 2, plot.auxiliary_signals_names
assert len(plot.signal) == 3
assert plot.errors is not None and len(plot.errors) == 3
)");
  }

  void aFileWithoutAnyRecordIsComplete() {
    const fs::path directory = folder_.filePath("empty").toStdString();
    RunWriter::create(directory, fixture_info({})).write_results();
    QVERIFY(read_results_series(directory / "results.h5").empty());
  }

  /// As files before had none.
  void aFileWithoutStandardErrorsIsRead() {
    const fs::path directory = folder_.filePath("old").toStdString();
    EvaluationRecord evaluation = fixture_evaluation({}, 20);
    for (DomainLoss& loss : evaluation.losses) loss.standard_error = std::nan("");
    RunWriter writer = RunWriter::create(directory, fixture_info({}));
    writer.add(evaluation);
    writer.write_results();
    const auto series = read_results_series(directory / "results.h5");
    QVERIFY(!series.empty());
    for (const Series& s : series) QVERIFY(s.error.empty() && s.value.size() == 1);
  }

  void everyChangedByteIsNoticedOrHarmless() {
    const std::string good = read_text(directory_ / "results.h5");
    const auto expected = read_results_series(directory_ / "results.h5");
    const fs::path copy = folder_.filePath("copy.h5").toStdString();
    int noticed = 0;
    for (int i = 0; i < 500; ++i) {
      std::string bad = good;
      bad[static_cast<size_t>(i) * (bad.size() - 1) / 499] ^= static_cast<char>(1 << (i % 8));
      std::ofstream(copy, std::ios::binary) << bad;
      try {
        const auto series = read_results_series(copy);
        QCOMPARE(series.size(), expected.size());
        for (size_t s = 0; s < series.size(); ++s) QVERIFY(same(series[s], expected[s]));
      } catch (const DataError&) {
        ++noticed;
      }
    }
    QVERIFY2(noticed > 250, qPrintable(QString("%1 of 500 noticed").arg(noticed)));
  }

 private:
  static bool same(const Series& a, const Series& b) {
    const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    return a.name == b.name && a.unit == b.unit && a.step == b.step && a.tokens == b.tokens && a.flops == b.flops &&
           a.seconds == b.seconds && a.error == b.error &&
           std::equal(a.value.begin(), a.value.end(), b.value.begin(), b.value.end(), equal);
  }

  void run_python(const QString& needs, const char* program, fs::path directory = {}) {
    if (directory.empty()) directory = directory_;
    const QString python = "/usr/bin/python3";
    if (!QFile::exists(python) || QProcess::execute(python, {"-c", needs}) != 0)
      QSKIP(qPrintable("NOT TESTED: Debian's Python cannot " + needs));
    QProcess process;
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(python, {"-c", program, QString::fromStdString((directory / "results.h5").string())});
    QVERIFY(process.waitForFinished(60000));
    QVERIFY2(process.exitCode() == 0, process.readAll().constData());
  }

  QTemporaryDir folder_;
  fs::path directory_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ResultsFileTest)
#include "results_file_test.moc"
