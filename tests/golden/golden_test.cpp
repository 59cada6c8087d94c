#include <QDir>
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "kernels/engine/cuda_runtime.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

/// Where and in what a case runs, and how far from the largest element of the truth it may be.
struct Precision {
  const char* name;
  DType dtype;
  bool on_gpu;
  double outputs, gradients;
};
constexpr Precision kPrecisions[] = {{"double", DType::f64, false, 1e-9, 1e-9},
                                     {"float", DType::f32, false, 2e-5, 2e-5},
                                     {"cuda f32", DType::f32, true, 2e-5, 2e-5},
                                     {"cuda bf16", DType::bf16, true, 1e-2, 2e-2}};

/// Limits of the stateful architectures, whose cases are those without an op.
double recurrent_output_limit(const GoldenCase& c, const Precision& p) {
  if (p.dtype != DType::bf16) return p.outputs;
  return c.name.ends_with("similar_keys") ? 6e-2 : 2e-2;
}
double recurrent_gradient_limit(const GoldenCase& c, const Precision& p, const std::string& input) {
  if (p.dtype == DType::f32) return 5e-5;
  if (p.dtype != DType::bf16) return p.gradients;
  if (input == "w_raw") return c.name.ends_with("strong_decay") ? 0.3 : 6e-2;
  return c.name.ends_with("similar_keys") ? 6e-2 : 3e-2;
}
double output_limit(const GoldenCase& c, const Precision& p) { return c.op.empty() ? recurrent_output_limit(c, p) : p.outputs; }
double gradient_limit(const GoldenCase& c, const Precision& p, const std::string& input) {
  return c.op.empty() ? recurrent_gradient_limit(c, p, input) : p.gradients;
}

/// How many times further off a mixer or a whole model in bf16 may be, where the roundings of all its activations meet. The same in
/// double with nothing rounded to bf16 but outputs of ops, copies of matrices and gradients of outputs, 12 draws of the parameters
/// within 2 %, are off by this much of the largest element (mean and most of the draws, worst case of the file):
///                                  logits            worst gradient
///   avey                           1.0e-2, 1.7e-2    2.1e-2, 3.2e-2
///   transformer_pp                 1.6e-2, 2.3e-2    4.0e-2, 5.4e-2
///   with its residual stream f32   1.4e-2, 2.1e-2    3.3e-2, 6.6e-2
///   only its norms rounded         1.0e-2, 1.8e-2    2.7e-2, 6.2e-2
/// and with the parameters of the file, worst of the output or logits and of the gradients:
///   layers: mamba1 3.0e-2, 3.0e-2; rwkv7 1.9e-2, 4.3e-2; gated_deltanet 8e-3, 8.5e-2; others 1.1e-2, 3.6e-2
///   models: rwkv5 5.4e-2, 4.3e-1; others 2.1e-2, 1.7e-1
struct Slack {
  double logits, gradients;
};
bool made_of_parts(const GoldenCase& c) { return c.inputs.contains("tokens") || c.file == "layers"; }
Slack slack_in_bf16(const GoldenCase& c) {
  if (c.op == "avey") return {2, 2};
  if (c.file == "layers") return {2, 4};
  if (c.file == "models") return {4, c.name == "rwkv5" ? 20.0 : 8.0};
  return {c.op == "transformer_pp" ? 2.5 : 4, 4};
}

GoldenResult run(const GoldenCase& c, DType dtype, Device device) {
  Arena arena(device);
  return (*find_golden_runner(c))(c, dtype, arena);
}

/// Queries that chose otherwise than the truth, by their index in `selected`. A query may when the two scores differ by
/// rounding alone; `problem` tells when they do not.
std::set<size_t> other_choices(const GoldenResult& got, const GoldenResult& truth, const std::string& selected, double rounding,
                               QString& problem) {
  const std::vector<double>&ours = got.outputs.at(selected).values, &theirs = truth.outputs.at(selected).values;
  const Array& scores = truth.scores.at(selected);
  const auto candidates = static_cast<size_t>(scores.shape[-1]);
  double largest = 0;
  for (double s : scores.values)
    if (std::isfinite(s)) largest = std::max(largest, std::abs(s));
  std::set<size_t> queries;
  for (size_t i = 0; i < theirs.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    queries.insert(i);
    const auto score = [&](double choice) { return choice < 0 ? NAN : scores.values[i * candidates + static_cast<size_t>(choice)]; };
    const double margin = std::abs(score(theirs[i]) - score(ours[i]));
    if (!(margin <= rounding * largest) && problem.isEmpty())
      problem =
          QString("query %1 chose %2, expected %3, which is ahead by %4 of %5").arg(i).arg(ours[i]).arg(theirs[i]).arg(margin).arg(largest);
  }
  return queries;
}

/// Sets what belongs to some queries to zero: o is [B, T, H, d], everything else begins with [B, H, T] as `selected` does.
void silence(Arrays& arrays, const Shape& selected, const std::set<size_t>& queries) {
  const auto H = static_cast<size_t>(selected[1]), T = static_cast<size_t>(selected[2]);
  for (auto& [name, array] : arrays) {
    const size_t width = array.values.size() / static_cast<size_t>(selected.size());
    for (size_t q : queries) {
      const size_t row = name == "o" ? (q / (H * T) * T + q % T) * H + q / T % H : q;
      std::fill_n(array.values.begin() + static_cast<std::ptrdiff_t>(row * width), width, 0.0);
    }
  }
}

}  // namespace

/// Runs every .h5 of SACCADE_GOLDEN_DIR (default: the copy in the repository), a row per case and precision. Which op it is
/// and its settings stand in each group's attributes or follow from its name (find_golden_runner), so other vectors of the same
/// form need no change here. What is zero by mathematics is compared absolutely. Integers (selections) are equal; on a GPU one
/// may differ where the scores differ by rounding alone: that query then takes no part, forward and backward.
class GoldenTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void golden_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<int>("precision");
    QString folder = qEnvironmentVariable("SACCADE_GOLDEN_DIR");
    if (folder.isEmpty()) folder = qEnvironmentVariable("SACCADE_GOLDEN_DEFAULT");
    const QStringList files = QDir(folder).entryList({"*.h5"}, QDir::Files, QDir::Name);
    QVERIFY2(!files.isEmpty(), qPrintable("no .h5 file in " + folder));
    for (const QString& file : files)
      for (GoldenCase& c : read_golden_file(QDir(folder).filePath(file).toStdString())) {
        const QString row = QString("%1/%2").arg(QFileInfo(file).completeBaseName(), QString::fromStdString(c.name));
        cases_.push_back(std::move(c));
        for (size_t p = 0; p < std::size(kPrecisions); ++p)
          QTest::newRow(qPrintable(row + " " + kPrecisions[p].name)) << static_cast<int>(cases_.size() - 1) << static_cast<int>(p);
      }
  }

  void golden() {
    QFETCH(int, index);
    QFETCH(int, precision);
    const Precision& p = kPrecisions[precision];
    std::string why_none;
    const std::vector<cuda::Gpu> gpus = p.on_gpu ? cuda::gpus(&why_none) : std::vector<cuda::Gpu>();
    if (p.on_gpu && gpus.empty()) QSKIP(("no GPU to test on: " + why_none).c_str());
    const Device device = p.on_gpu ? Device::cuda(gpus[0].index) : Device::cpu();
    QVERIFY2(find_golden_runner(cases_[static_cast<size_t>(index)]), "no runner is registered for it");
    try {
      check(cases_[static_cast<size_t>(index)], p, device);
    } catch (const std::exception& error) {
      if (QString(error.what()).contains("has no CUDA kernel")) QSKIP(error.what());
      QFAIL(error.what());
    }
  }

 private:
  static void check(GoldenCase c, const Precision& p, Device device) {
    Arena::set_poison(true);
    GoldenResult result = run(c, p.dtype, device);
    if (p.on_gpu && c.outputs.contains("o") && c.outputs.contains("selected")) {
      const Shape selected = c.outputs.at("selected").shape;
      QString problem;
      const std::set<size_t> others = other_choices(result, run(c, DType::f64, Device::cpu()), "selected", p.outputs, problem);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
      if (!others.empty()) {
        silence(c.grad_outputs, selected, others);
        c.grads = run(c, DType::f64, Device::cpu()).grads;
        result = run(c, p.dtype, device);
        silence(c.outputs, selected, others);
        silence(result.outputs, selected, others);
      }
    }
    const Slack slack = p.dtype == DType::bf16 && made_of_parts(c) ? slack_in_bf16(c) : Slack{1, 1};
    for (const auto& [name, expected] : c.outputs) {
      QVERIFY2(result.outputs.contains(name), qPrintable("no output " + QString::fromStdString(name)));
      COMPARE_CLOSE(result.outputs.at(name), expected,
                    expected.integer ? 0.0 : (name == "logits" || name == "y" ? slack.logits : 1) * output_limit(c, p),
                    QString::fromStdString(name));
    }
    for (const auto& [name, expected] : c.grads) {
      QVERIFY2(result.grads.contains(name), qPrintable("no gradient of " + QString::fromStdString(name)));
      const QString what = "gradient of " + QString::fromStdString(name);
      if (zero_by_mathematics(expected))
        COMPARE_CLOSE(result.grads.at(name), zeros(expected.shape), p.dtype == DType::bf16 ? 1e-2 : 1e-6, what);
      else
        COMPARE_CLOSE(result.grads.at(name), expected, slack.gradients * gradient_limit(c, p, name), what);
    }
  }

  static bool zero_by_mathematics(const Array& x) {
    return std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::abs(v) < 1e-10; });
  }
  static Array zeros(const Shape& shape) { return {shape, std::vector<double>(static_cast<size_t>(shape.size())), false}; }

  std::vector<GoldenCase> cases_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GoldenTest)
#include "golden_test.moc"
