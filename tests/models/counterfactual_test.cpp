#include <QtTest>
#include <cmath>
#include <numeric>

#include "kernels/engine/transfer.h"
#include "models/architectures/registry.h"

namespace saccade::test {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

/// What is changed in a forward pass, against references that are written out by hand in double.
class CounterfactualTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLength = 24, kWidth = 8, kHeads = 2, kVocabulary = 7, kChunk = 4;

  /// A model in double on the CPU.
  struct Small {
    Arena arena{Device::cpu()};
    std::unique_ptr<Model> model;

    explicit Small(nlohmann::json architecture) {
      architecture.update({{"width", kWidth}, {"layers", 2}});
      model = make_model(resolve_architecture(architecture, kLength), kVocabulary, kLength, arena, DType::f64, 1, false);
      for (const Parameter& p : model->parameters())  // large enough that what is read matters
        for (int64_t i = 0; i < p.value.size() && p.value.dtype() == DType::f64; ++i)
          if (p.value.rank() == 2) p.value.data<double>()[i] += 0.3 * std::sin(static_cast<double>(3 * i + 1));
    }
    static int32_t token(int64_t t) { return static_cast<int32_t>((t * t + t / 3) % kVocabulary); }

    /// [T, D]
    Rows hidden(ProbeRecord* probe = nullptr) {
      const Tensor tokens = arena.allocate({1, kLength}, DType::i32);
      for (int64_t t = 0; t < kLength; ++t) tokens.data<int32_t>()[t] = token(t);
      Tape tape(arena, false);
      const std::vector<double> all = to_doubles(model->hidden(tape, tokens, probe));
      Rows rows;
      for (int64_t t = 0; t < kLength; ++t) rows.emplace_back(all.begin() + t * kWidth, all.begin() + (t + 1) * kWidth);
      return rows;
    }
    Rows changed(const Counterfactual& change) {
      ProbeRecord probe;
      probe.statistics_wanted = false;
      probe.counterfactual = change;
      Rows rows = hidden(&probe);
      if (probe.counterfactual) throw std::logic_error("nobody took the counterfactual");
      return rows;
    }
    const double* values(const std::string& name) { return model->parameter(name).value.data<double>(); }
    int64_t outputs(const std::string& name) { return model->parameter(name).value.dim(0); }

    /// W x
    Row product(const std::string& name, const Row& x) {
      Row y(static_cast<size_t>(outputs(name)));
      for (size_t o = 0; o < y.size(); ++o)
        for (size_t i = 0; i < x.size(); ++i) y[o] += values(name)[o * x.size() + i] * x[i];
      return y;
    }
    Row norm(const std::string& name, const Row& x) {
      double square = 0;
      for (const double v : x) square += v * v / static_cast<double>(x.size());
      Row y = x;
      for (size_t i = 0; i < x.size(); ++i) y[i] *= values(name)[i] / std::sqrt(square + 1e-5);
      return y;
    }

    /// Which positions a query of a layer's head reads.
    using Reads = std::function<std::vector<int64_t>(int64_t layer, int64_t head, int64_t query)>;
    /// Transformer++ by its equations, each query with a softmax over the positions that it reads.
    Rows reference(const Reads& reads) {
      Rows x;
      for (int64_t t = 0; t < kLength; ++t) {
        const double* row = values("embedding") + token(t) * kWidth;
        x.emplace_back(row, row + kWidth);
      }
      for (int64_t l = 0; l < 2; ++l) layer("layer" + std::to_string(l) + ".", l, reads, x);
      for (Row& row : x) row = norm("final_norm", row);
      return x;
    }
    void layer(const std::string& name, int64_t l, const Reads& reads, Rows& x) {
      Rows q, k, v;
      for (const Row& row : x) {
        const Row u = norm(name + "attention_norm", row);
        q.push_back(product(name + "query", u)), k.push_back(product(name + "key", u)), v.push_back(product(name + "value", u));
      }
      constexpr size_t d = kWidth / kHeads;
      for (int64_t t = 0; t < kLength; ++t) {
        Row o(kWidth);
        for (size_t h = 0; h < kHeads; ++h) {
          const std::vector<int64_t> seen = reads(l, static_cast<int64_t>(h), t);
          Row mass;
          for (const int64_t j : seen) {
            double dot = 0;
            for (size_t i = h * d; i < (h + 1) * d; ++i) dot += q[static_cast<size_t>(t)][i] * k[static_cast<size_t>(j)][i];
            mass.push_back(std::exp(dot / std::sqrt(static_cast<double>(d))));
          }
          const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
          for (size_t n = 0; n < seen.size(); ++n)
            for (size_t i = h * d; i < (h + 1) * d; ++i) o[i] += mass[n] / total * v[static_cast<size_t>(seen[n])][i];
        }
        Row& row = x[static_cast<size_t>(t)];
        add(row, product(name + "output", o));
        const Row u = norm(name + "mlp_norm", row), up = product(name + "up", u);
        Row gate = product(name + "gate", u);
        for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
        add(row, product(name + "down", gate));
      }
    }
    static void add(Row& x, const Row& y) {
      for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    }
  };

  static nlohmann::json llama(nlohmann::json mixer) {
    mixer.update({{"block", "llama"}, {"heads", kHeads}, {"position", "none"}, {"activation", "silu"}, {"qk_norm", "none"}});
    return mixer;
  }
  static std::vector<int64_t> all_before(int64_t query) {
    std::vector<int64_t> all(static_cast<size_t>(query + 1));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  static double largest_difference(const Rows& a, const Rows& b, int64_t first = 0, int64_t end = kLength) {
    double most = 0;
    for (size_t t = static_cast<size_t>(first); t < static_cast<size_t>(end); ++t)
      for (size_t i = 0; i < a[t].size(); ++i) most = std::max(most, std::abs(a[t][i] - b[t][i]));
    return most;
  }
  /// What the model itself chose, best first.
  static int64_t chosen(Small& small, MapKind kind, int64_t layer, int64_t at) {
    ProbeRecord probe;
    probe.statistics_wanted = false, probe.maps_wanted = true;
    small.hidden(&probe);
    for (const CapturedMap& map : probe.maps)
      if (map.kind == kind && map.layer == layer) return static_cast<int64_t>(map.values.at(static_cast<size_t>(at)));
    throw std::logic_error("no such map");
  }

  /// Avey by its equations (arXiv:2506.11305, section 2), split by split: MaxSim, choice and weights, contexts with their zero rows, then
  /// in every layer enricher, contextualizer and fuser. `take` is what a split chooses in place of its least chosen one, `leave` what the
  /// own tokens of a split do not take in, in layer 0.
  struct AveyReference {
    static constexpr int64_t S = 4, k = 2, N = kLength / S;
    Small& small;
    std::optional<std::array<int64_t, 2>> take, leave;  ///< split and earlier split

    Rows embedded() const {
      Rows x;
      for (int64_t t = 0; t < kLength; ++t) {
        const double* row = small.values("embedding") + Small::token(t) * kWidth;
        x.emplace_back(row, row + kWidth);
      }
      return x;
    }
    static double dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
    static double cosine(const Row& a, const Row& b) { return dot(a, b) / ((std::sqrt(dot(a, a)) + 1e-8) * (std::sqrt(dot(b, b)) + 1e-8)); }
    static double maxsim(const Rows& x, int64_t i, int64_t p) {
      double sum = 0;
      for (int64_t a = i * S; a < (i + 1) * S; ++a) {
        double most = -2;
        for (int64_t b = p * S; b < (p + 1) * S; ++b) most = std::max(most, cosine(x[static_cast<size_t>(a)], x[static_cast<size_t>(b)]));
        sum += most;
      }
      return sum;
    }
    /// Chosen splits of split i in sequence order with their weights.
    std::vector<std::pair<int64_t, double>> chosen(const Rows& x, int64_t i) const {
      std::vector<int64_t> all(static_cast<size_t>(i));
      std::iota(all.begin(), all.end(), 0);
      std::stable_sort(all.begin(), all.end(), [&](int64_t a, int64_t b) { return maxsim(x, i, a) > maxsim(x, i, b); });
      all.resize(static_cast<size_t>(std::min(i, k)));
      if (take && (*take)[0] == i && std::find(all.begin(), all.end(), (*take)[1]) == all.end()) all.back() = (*take)[1];
      double best = 0;
      for (const int64_t p : all) best = std::max(best, maxsim(x, i, p));
      std::sort(all.begin(), all.end());
      std::vector<std::pair<int64_t, double>> weighted;
      for (const int64_t p : all) weighted.emplace_back(p, maxsim(x, i, p) / (best + 1e-8));
      return weighted;
    }
    /// One layer over the rows of a context; rows from `own` on do not take in rows [hidden, hidden + S) of it; −1: they do.
    void layer(const std::string& name, Rows& h, size_t own, int64_t hidden) const {
      const size_t m = static_cast<size_t>(small.outputs(name + "enricher.weight"));
      const double *b = small.values(name + "enricher.bias"), *A = small.values(name + "contextualizer"),
                   *c = small.values(name + "fuser.bias");
      const size_t C = h.size(), r = m - static_cast<size_t>(small.model->parameter(name + "fuser.weight").value.dim(1));
      Rows z;
      for (const Row& row : h) {
        double square = 0;
        for (const double v : row) square += v * v / kWidth;
        Row u = row;
        for (size_t d = 0; d < u.size(); ++d) u[d] *= small.values(name + "norm")[d] / std::sqrt(square + 1e-10);
        Row e = small.product(name + "enricher.weight", u);
        for (size_t d = 0; d < m; ++d) e[d] = std::pow(std::max(0.0, e[d] + b[d]), 2);
        z.push_back(e);
      }
      const auto tail = [&](size_t t) { return Row(z[t].begin(), z[t].begin() + static_cast<std::ptrdiff_t>(r)); };
      for (size_t t = 0; t < C; ++t) {
        Row y(r);
        for (size_t j = 0; j <= t; ++j) {
          const bool left = hidden >= 0 && t >= own && static_cast<int64_t>(j) >= hidden && static_cast<int64_t>(j) < hidden + S;
          if (left) continue;
          const Row a = tail(t), v = tail(j);
          const double weight = A[t * C + j] * dot(a, v) / std::sqrt((dot(a, a) + 1e-8) * (dot(v, v) + 1e-8));
          for (size_t d = 0; d < r; ++d) y[d] += weight * v[d];
        }
        Row fused;
        for (size_t d = 0; d < r; ++d) fused.push_back(y[d] * z[t][r + d]);
        fused.insert(fused.end(), z[t].begin() + static_cast<std::ptrdiff_t>(2 * r), z[t].end());
        const Row out = small.product(name + "fuser.weight", fused);
        for (size_t d = 0; d < out.size(); ++d) h[t][d] += out[d] + c[d];
      }
    }
    Rows hidden() const {
      const Rows x = embedded();
      Rows all;
      for (int64_t i = 0; i < N; ++i) {
        const auto splits = chosen(x, i);
        Rows h(static_cast<size_t>(S * (k - static_cast<int64_t>(splits.size()))), Row(kWidth));
        int64_t hidden_row = -1;
        for (const auto& [p, weight] : splits) {
          if (leave && (*leave)[0] == i && (*leave)[1] == p) hidden_row = static_cast<int64_t>(h.size());
          for (int64_t t = p * S; t < (p + 1) * S; ++t) {
            h.push_back(x[static_cast<size_t>(t)]);
            for (double& v : h.back()) v *= weight;
          }
        }
        const size_t own = h.size();
        for (int64_t t = i * S; t < (i + 1) * S; ++t) h.push_back(x[static_cast<size_t>(t)]);
        layer("layer0.", h, own, hidden_row);
        layer("layer1.", h, own, -1);
        for (size_t t = own; t < h.size(); ++t) {
          double square = 0;
          for (const double v : h[t]) square += v * v / kWidth;
          Row u = h[t];
          for (size_t d = 0; d < u.size(); ++d) u[d] *= small.values("final_norm")[d] / std::sqrt(square + 1e-10);
          all.push_back(u);
        }
      }
      return all;
    }
  };
  static nlohmann::json avey() { return {{"block", "avey"}, {"split", AveyReference::S}, {"top_k", AveyReference::k}}; }

 private Q_SLOTS:
  void maskedSourceIsTheSoftmaxWithoutIt() {
    Small small(llama({{"mixer", "attention"}}));
    QVERIFY(largest_difference(small.hidden(), small.reference([](int64_t, int64_t, int64_t t) { return all_before(t); })) < 1e-10);
    const Rows masked = small.changed({Counterfactual::Kind::mask, 0, 1, 15, 6});
    const Rows expected = small.reference([](int64_t l, int64_t h, int64_t t) {
      std::vector<int64_t> seen = all_before(t);
      if (l == 0 && h == 1 && t == 15) seen.erase(seen.begin() + 6);
      return seen;
    });
    QVERIFY(largest_difference(masked, expected) < 1e-10);
    QVERIFY(largest_difference(masked, small.hidden(), 15, 16) > 1e-4);
    QCOMPARE(largest_difference(masked, small.hidden(), 0, 15), 0.0);
  }

  void forcedElementIsRead() {
    Small small(llama({{"mixer", "top1_element"}}));
    const auto own = [&](int64_t l, int64_t h, int64_t t) { return chosen(small, MapKind::selected, l, h * kLength + t); };
    const int64_t query = 17, other = own(0, 0, query) == 3 ? 4 : 3;
    // Only layer 0's choices are the model's own: those of layer 1 follow from what was forced.
    ProbeRecord probe;
    probe.statistics_wanted = false, probe.maps_wanted = true;
    probe.counterfactual = Counterfactual{Counterfactual::Kind::force, 0, 0, query, other};
    const Rows forced = small.hidden(&probe);
    const Rows expected = small.reference([&](int64_t l, int64_t h, int64_t t) {
      for (const CapturedMap& map : probe.maps)
        if (map.kind == MapKind::selected && map.layer == l)
          return std::vector<int64_t>{
              l == 0 && h == 0 && t == query ? other : static_cast<int64_t>(map.values[static_cast<size_t>(h * kLength + t)])};
      return std::vector<int64_t>{};
    });
    QVERIFY(largest_difference(forced, expected) < 1e-10);
    QVERIFY(largest_difference(forced, small.hidden()) > 1e-4);
    QCOMPARE(own(0, 0, query) == other, false);
  }

  void forcedChunkIsRead_data() {
    QTest::addColumn<int>("chunk");
    for (const int c : {-1, 0, 1, 2, 3}) QTest::addRow("%d", c) << c;
  }
  void forcedChunkIsRead() {
    QFETCH(int, chunk);
    Small small(llama({{"mixer", "top1_chunk"}, {"chunk", kChunk}}));
    const int64_t query = 18;  // in chunk 4
    ProbeRecord probe;
    probe.statistics_wanted = false, probe.maps_wanted = true;
    probe.counterfactual = Counterfactual{Counterfactual::Kind::force, 0, 1, query, chunk};
    const Rows forced = small.hidden(&probe);
    const Rows expected = small.reference([&](int64_t l, int64_t h, int64_t t) {
      int64_t remote = -1;
      for (const CapturedMap& map : probe.maps)
        if (map.kind == MapKind::selected && map.layer == l)
          remote = static_cast<int64_t>(map.values[static_cast<size_t>(h * kLength + t)]);
      if (l == 0 && h == 1 && t == query) remote = chunk;
      std::vector<int64_t> seen;
      for (int64_t j = 0; j <= t; ++j)
        if (j / kChunk == remote || j / kChunk == t / kChunk) seen.push_back(j);
      return seen;
    });
    QVERIFY(largest_difference(forced, expected) < 1e-10);
    QVERIFY(chosen(small, MapKind::selected, 0, kLength + query) == chunk || largest_difference(forced, small.hidden()) > 1e-5);
  }

  void forcingWhatWasChosenChangesNothing_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("kind");
    QTest::newRow("top1_element") << R"({"mixer": "top1_element", "heads": 2})" << static_cast<int>(MapKind::selected);
    QTest::newRow("top1_chunk exact") << R"({"mixer": "top1_chunk", "heads": 2, "chunk": 4})" << static_cast<int>(MapKind::selected);
    QTest::newRow("top1_chunk approx") << R"({"mixer": "top1_chunk", "heads": 2, "chunk": 4, "selection": "approx"})"
                                       << static_cast<int>(MapKind::selected);
    QTest::newRow("avey") << R"({"block": "avey", "split": 4, "top_k": 1})" << static_cast<int>(MapKind::chosen);
  }
  void forcingWhatWasChosenChangesNothing() {
    QFETCH(QString, settings);
    QFETCH(int, kind);
    Small small(nlohmann::json::parse(settings.toStdString()));
    const Rows plain = small.hidden();
    const bool avey = static_cast<MapKind>(kind) == MapKind::chosen;
    for (int64_t q = 8; q < kLength; q += 5) {
      const int64_t query = avey ? q / 4 : q, layer = avey ? -1 : 1;
      const int64_t own = chosen(small, static_cast<MapKind>(kind), layer, query);
      QCOMPARE(largest_difference(small.changed({Counterfactual::Kind::force, layer, 0, query, own}), plain), 0.0);
      const int64_t other = own == 0 ? 1 : 0;
      QVERIFY(largest_difference(small.changed({Counterfactual::Kind::force, layer, 0, query, other}), plain) > 1e-6);
    }
  }

  void aveyIsItsEquations() {
    Small small(avey());
    QVERIFY(largest_difference(small.hidden(), AveyReference{small, {}, {}}.hidden()) < 1e-10);
  }

  /// The split's weights are made of the new choice; later splits choose as before.
  void forcedSplitIsRead_data() {
    QTest::addColumn<int>("split");
    for (const int p : {0, 1, 2, 3}) QTest::addRow("%d", p) << p;
  }
  void forcedSplitIsRead() {
    QFETCH(int, split);
    Small small(avey());
    constexpr int64_t i = 4;
    const Rows plain = small.hidden(), forced = small.changed({Counterfactual::Kind::force, -1, 0, i, split});
    const Rows expected = AveyReference{small, std::array<int64_t, 2>{i, split}, {}}.hidden();
    QVERIFY(largest_difference(forced, expected) < 1e-10);
    const int64_t first = chosen(small, MapKind::chosen, -1, i * AveyReference::k),
                  second = chosen(small, MapKind::chosen, -1, i * AveyReference::k + 1);
    QCOMPARE(largest_difference(forced, plain) > 1e-6, split != first && split != second);
    QCOMPARE(largest_difference(forced, plain, 0, i * AveyReference::S), 0.0);
    QCOMPARE(largest_difference(forced, plain, (i + 1) * AveyReference::S), 0.0);
  }

  /// The contextualizer of layer 0 without a split, for the tokens of split 4: what was not chosen is not missed.
  void maskedSplitIsNotTakenIn_data() {
    QTest::addColumn<int>("split");
    for (const int p : {0, 1, 2, 3}) QTest::addRow("%d", p) << p;
  }
  void maskedSplitIsNotTakenIn() {
    QFETCH(int, split);
    Small small(avey());
    constexpr int64_t i = 4;
    const Rows plain = small.hidden(), masked = small.changed({Counterfactual::Kind::mask, 0, 0, i, split});
    const Rows expected = AveyReference{small, {}, std::array<int64_t, 2>{i, split}}.hidden();
    QVERIFY(largest_difference(masked, expected) < 1e-10);
    const int64_t first = chosen(small, MapKind::chosen, -1, i * AveyReference::k),
                  second = chosen(small, MapKind::chosen, -1, i * AveyReference::k + 1);
    if (split == first || split == second)
      QVERIFY(largest_difference(masked, plain) > 1e-6);
    else
      QCOMPARE(largest_difference(masked, plain), 0.0);
    QCOMPARE(largest_difference(masked, plain, 0, i * AveyReference::S), 0.0);
    QCOMPARE(largest_difference(masked, plain, (i + 1) * AveyReference::S), 0.0);
  }
  void maskedSplitInTheLastLayer() {  // whose contextualizer works on the own rows alone
    Small small(avey());
    const int64_t own = chosen(small, MapKind::chosen, -1, 5 * AveyReference::k);
    const Rows plain = small.hidden(), masked = small.changed({Counterfactual::Kind::mask, 1, 0, 5, own});
    QVERIFY(largest_difference(masked, plain, 5 * AveyReference::S) > 1e-6);
    QCOMPARE(largest_difference(masked, plain, 0, 5 * AveyReference::S), 0.0);
    QVERIFY_THROWS_EXCEPTION(UsageError, small.changed({Counterfactual::Kind::mask, 1, 0, 5, 5}));
  }

  /// What a masked write changes is what the map of reads says of that token: in the last layer nothing before it, and all heads but one
  /// stay as they are.
  void maskedWriteIsNotRead_data() {
    QTest::addColumn<QString>("settings");
    for (const char* mixer : {"mamba1", "mamba2", "deltanet", "gated_deltanet", "rwkv5", "rwkv6", "rwkv7"}) {
      const QString heads = QString(mixer) == "mamba1" ? "" : R"(, "heads": 2)";
      QTest::newRow(mixer) << QStringLiteral(R"({"mixer": "%1"%2})").arg(QString::fromLatin1(mixer), heads);
    }
    QTest::newRow("based linear") << R"({"mixer": "based", "heads": 2, "layout": ["linear"], "feature_width": 4})";
    QTest::newRow("parallel, second part") << R"({"mixer": "parallel", "heads": 2, "first": "top1_element", "second": "mamba2"})";
  }
  void maskedWriteIsNotRead() {
    QFETCH(QString, settings);
    Small small(nlohmann::json::parse(settings.toStdString()));
    const Rows plain = small.hidden();
    const int64_t head = settings.contains("parallel") ? 3 : settings.contains("mamba1") ? 0 : 1, token = 9;
    ProbeRecord probe;  // heads of a part are known once the parts before it have reported
    probe.maps_wanted = true;
    probe.counterfactual = Counterfactual{Counterfactual::Kind::mask, 1, head, 0, token};
    const Rows masked = small.hidden(&probe);
    QVERIFY2(!probe.counterfactual, "nobody took the counterfactual");
    QCOMPARE(largest_difference(masked, plain, 0, token), 0.0);
    QVERIFY(largest_difference(masked, plain, token + 1) > 1e-9);
  }

  /// Where steps are so small that nothing is written, a masked write changes nothing: the skip of the token itself stays.
  void maskedWriteKeepsTheSkip_data() {
    QTest::addColumn<QString>("mixer");
    QTest::newRow("mamba1") << "mamba1";
    QTest::newRow("mamba2") << "mamba2";
  }
  void maskedWriteKeepsTheSkip() {
    QFETCH(QString, mixer);
    nlohmann::json settings{{"mixer", mixer.toStdString()}};
    if (mixer == "mamba2") settings["heads"] = 2;
    Small small(settings);
    const Tensor& bias = small.model->parameter("layer1.dt_bias").value;
    std::fill_n(bias.data<double>(), bias.size(), -60.0);
    QVERIFY(largest_difference(small.changed({Counterfactual::Kind::mask, 1, 0, 9, 9}), small.hidden()) < 1e-12);
  }

  void nobodyTakesWhatCannotBeDone() {
    Small small(llama({{"mixer", "attention"}}));
    for (const Counterfactual& change :
         {Counterfactual{Counterfactual::Kind::force, 0, 0, 9, 3}, Counterfactual{Counterfactual::Kind::mask, 0, kHeads, 9, 3},
          Counterfactual{Counterfactual::Kind::mask, 2, 0, 9, 3}}) {
      ProbeRecord probe;
      probe.counterfactual = change;
      small.hidden(&probe);
      QVERIFY(probe.counterfactual);
    }
    QVERIFY_THROWS_EXCEPTION(UsageError, small.changed({Counterfactual::Kind::mask, 0, 0, 9, 10}));
    Small chunks(llama({{"mixer", "top1_chunk"}, {"chunk", kChunk}}));
    QVERIFY_THROWS_EXCEPTION(UsageError, chunks.changed({Counterfactual::Kind::force, 0, 0, 9, 2}));
    Small elements(llama({{"mixer", "top1_element"}}));
    QVERIFY_THROWS_EXCEPTION(UsageError, elements.changed({Counterfactual::Kind::force, 0, 0, 9, 10}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CounterfactualTest)
#include "counterfactual_test.moc"
