#include <QDir>
#include <QFile>
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "kernels/engine/cuda_runtime.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

/// Where and in what a case runs, and how far from the largest element of the truth it may be; in bf16 Bf16Limits says that.
struct Precision {
  const char* name;
  DType dtype;
  bool on_gpu;
  double outputs, gradients, recurrent_gradients;  ///< the last of stateful architectures, whose cases are those without an op
};
constexpr Precision kPrecisions[] = {{"double", DType::f64, false, 1e-9, 1e-9, 1e-9},
                                     {"float", DType::f32, false, 2e-5, 2e-5, 5e-5},
                                     {"cuda f32", DType::f32, true, 2e-5, 2e-5, 5e-5},
                                     {"cuda bf16", DType::bf16, true, 0, 0, 0}};

/// Limits in bf16: twice what a computation in bf16 that is not ours reaches (bf16_reference.py writes the table), and never below what
/// storing a result in bf16, with its 8 significant bits, may cost: 2^-8 of it.
class Bf16Limits {
 public:
  Bf16Limits() = default;
  explicit Bf16Limits(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) throw std::runtime_error("cannot read " + path.toStdString());
    cases_ = nlohmann::json::parse(file.readAll().toStdString()).at("cases");
  }
  /// Whether the table has the case with the values of this file, not of another seed's.
  bool has(const GoldenCase& c) const { return cases_.contains(row(c)) && cases_.at(row(c)).at("seed") == c.attributes.at("seed"); }
  /// `kind`: outputs or gradients; the output "selected" is for the scores that a selection is made from. Throws where the table has
  /// neither the case nor another of its file with that name.
  double limit(const GoldenCase& c, const char* kind, const std::string& name) const {
    if (c.inputs.empty()) return kPrecisions[2].outputs;  // initial values of parameters, which are f32
    double found = -1;
    if (cases_.contains(row(c))) {
      found = cases_.at(row(c)).at(kind).at(name).at(has(c) ? 0 : 1).get<double>();
    } else {
      for (const auto& [key, other] : cases_.items())
        if (key.starts_with(c.file + "/") && other.at(kind).contains(name))
          found = std::max(found, other.at(kind).at(name).at(1).get<double>());
    }
    if (found < 0) throw std::runtime_error("bf16_reference.json has no limit for " + name + " of " + row(c));
    return std::max(std::ldexp(1.0, -8), 2 * found);
  }

 private:
  static std::string row(const GoldenCase& c) { return c.file + "/" + c.name; }
  nlohmann::json cases_;
};

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
/// form need no change here; a folder of them may have its own bf16_reference.json, else limits in bf16 are those that the table has for
/// other values. What is zero by mathematics is compared absolutely. Integers (selections) are equal; on a GPU one may differ where the
/// scores differ by rounding alone: that query then takes no part, forward and backward.
class GoldenTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    const QString shipped = qEnvironmentVariable("SACCADE_GOLDEN_DEFAULT"), table = "bf16_reference.json";
    QString folder = qEnvironmentVariable("SACCADE_GOLDEN_DIR");
    if (folder.isEmpty()) folder = shipped;
    const QStringList files = QDir(folder).entryList({"*.h5"}, QDir::Files, QDir::Name);
    QVERIFY2(!files.isEmpty(), qPrintable("no .h5 file in " + folder));
    table_of_folder_ = QDir(folder).exists(table);
    try {
      for (const QString& file : files)
        for (GoldenCase& c : read_golden_file(QDir(folder).filePath(file).toStdString())) cases_.push_back(std::move(c));
      limits_ = Bf16Limits(QDir(table_of_folder_ ? folder : shipped).filePath(table));
    } catch (const std::exception& error) {
      QFAIL(error.what());
    }
  }

  /// Without a GPU, too, the table is held to the files: it has every name, and beside the table the values that it was made of.
  void limits_in_bf16() {
    try {
      for (const GoldenCase& c : cases_) {
        QVERIFY2(!table_of_folder_ || c.inputs.empty() || limits_.has(c), (c.file + "/" + c.name + " is not in the table").c_str());
        for (const auto& [name, expected] : c.outputs)
          if (!expected.integer || (name == "selected" && c.outputs.contains("o"))) limits_.limit(c, "outputs", name);
        for (const auto& [name, expected] : c.grads) limits_.limit(c, "gradients", name);
      }
    } catch (const std::exception& error) {
      QFAIL(error.what());
    }
  }

  void golden_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<int>("precision");
    for (size_t i = 0; i < cases_.size(); ++i)
      for (size_t p = 0; p < std::size(kPrecisions); ++p)
        QTest::addRow("%s/%s %s", cases_[i].file.c_str(), cases_[i].name.c_str(), kPrecisions[p].name)
            << static_cast<int>(i) << static_cast<int>(p);
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
  double output_limit(const GoldenCase& c, const Precision& p, const std::string& name) const {
    return p.dtype == DType::bf16 ? limits_.limit(c, "outputs", name) : p.outputs;
  }
  double gradient_limit(const GoldenCase& c, const Precision& p, const std::string& name) const {
    if (p.dtype == DType::bf16) return limits_.limit(c, "gradients", name);
    return c.op.empty() ? p.recurrent_gradients : p.gradients;
  }

  void check(GoldenCase c, const Precision& p, Device device) const {
    Arena::set_poison(true);
    GoldenResult result = run(c, p.dtype, device);
    if (p.on_gpu && c.outputs.contains("o") && c.outputs.contains("selected")) {
      const Shape selected = c.outputs.at("selected").shape;
      QString problem;
      const std::set<size_t> others =
          other_choices(result, run(c, DType::f64, Device::cpu()), "selected", output_limit(c, p, "selected"), problem);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
      if (!others.empty()) {
        silence(c.grad_outputs, selected, others);
        c.grads = run(c, DType::f64, Device::cpu()).grads;
        result = run(c, p.dtype, device);
        silence(c.outputs, selected, others);
        silence(result.outputs, selected, others);
      }
    }
    for (const auto& [name, expected] : c.outputs) {
      QVERIFY2(result.outputs.contains(name), qPrintable("no output " + QString::fromStdString(name)));
      COMPARE_CLOSE(result.outputs.at(name), expected, expected.integer ? 0.0 : output_limit(c, p, name), QString::fromStdString(name));
    }
    for (const auto& [name, expected] : c.grads) {
      QVERIFY2(result.grads.contains(name), qPrintable("no gradient of " + QString::fromStdString(name)));
      const QString what = "gradient of " + QString::fromStdString(name);
      const double limit = gradient_limit(c, p, name);
      if (zero_by_mathematics(expected))
        COMPARE_CLOSE(result.grads.at(name), zeros(expected.shape), p.dtype == DType::bf16 ? limit : 1e-6, what);
      else
        COMPARE_CLOSE(result.grads.at(name), expected, limit, what);
    }
  }

  static bool zero_by_mathematics(const Array& x) {
    return std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::abs(v) < 1e-10; });
  }
  static Array zeros(const Shape& shape) { return {shape, std::vector<double>(static_cast<size_t>(shape.size())), false}; }

  std::vector<GoldenCase> cases_;
  Bf16Limits limits_;
  bool table_of_folder_ = false;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GoldenTest)
#include "golden_test.moc"
