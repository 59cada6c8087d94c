#include <QtTest>
#include <cmath>
#include <limits>
#include <random>

#include "analysis/inspection/base64.h"
#include "analysis/inspection/head_order.h"
#include "analysis/inspection/service.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

using Json = nlohmann::json;

class InspectionTest : public QObject {
  Q_OBJECT

  std::unique_ptr<TinyCorpus> corpus_;
  QTemporaryDir folder_;

  std::string run_of(const QString& mixer) {
    const std::string directory = folder_.filePath(mixer).toStdString();
    if (!std::filesystem::exists(directory)) work_on(directory, tiny_config(mixer.toStdString()));
    return directory;
  }
  static Json ask(InspectionService& service, const std::string& method, const Json& parameters) {
    const std::string line = service.answer(Json{{"id", 3}, {"method", method}, {"parameters", parameters}}.dump());
    if (line.find('\n') != std::string::npos) throw std::logic_error("more than a line");
    Json reply = Json::parse(line);
    if (reply.at("id") != 3) throw std::logic_error("another id");
    return reply;
  }
  static Json result(InspectionService& service, const std::string& method, const Json& parameters) {
    Json reply = ask(service, method, parameters);
    if (reply.contains("error")) throw std::runtime_error(reply["error"]["message"].get<std::string>());
    return reply.at("result");
  }
  static std::string problem(InspectionService& service, const std::string& method, const Json& parameters) {
    return ask(service, method, parameters).at("error").at("message");
  }

 private Q_SLOTS:
  void initTestCase() { corpus_ = std::make_unique<TinyCorpus>(); }

  void captured_text_gives_what_was_captured_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_chunk", "avey", "hybrid"}) QTest::newRow(mixer) << mixer;
  }
  void captured_text_gives_what_was_captured() {
    QFETCH(QString, mixer);
    const std::string directory = run_of(mixer);
    const Run run(directory);
    const Capture captured = run.captures(run.capture_steps().back()).front();
    InspectionService service(directory, 0);
    const Json text = result(service, "text", {{"source", "captured"}, {"sample", 0}});
    QCOMPARE(text["tokens"].get<std::vector<int32_t>>(), captured.tokens);
    QCOMPARE(text["pieces"].get<std::vector<std::string>>(), captured.pieces);
    for (size_t t = 0; t + 1 < captured.tokens.size(); ++t)
      QVERIFY(std::abs(text["losses"][t].get<double>() - static_cast<double>(captured.token_losses[t])) < 1e-4);
    QCOMPARE(text["maps"].size(), captured.maps.size());
    for (const CapturedMap& map : captured.maps) {
      if (is_of_model(map.kind)) continue;
      const int64_t head = map.shape[0] - 1;
      const std::vector<float> values = floats_of_base64(
          result(service, "map", {{"kind", to_string(map.kind)}, {"layer", map.layer}, {"head", head}})["values"].get<std::string>());
      QCOMPARE(values.size(), map.values.size() / static_cast<size_t>(map.shape[0]));
      for (size_t i = 0; i < values.size(); ++i) {
        const float expected = map.values[static_cast<size_t>(head) * values.size() + i];
        QVERIFY(values[i] == expected || std::abs(values[i] - expected) < 1e-4f || (std::isnan(values[i]) && std::isnan(expected)));
      }
    }
    const int64_t layer = head_scores(captured).front().layer;
    const Json rows = result(service, "map", {{"kind", "weights"}, {"layer", layer}, {"head", 0}, {"first", 3}, {"rows", 2}});
    QCOMPARE(floats_of_base64(rows["values"].get<std::string>()).size(), 2 * captured.tokens.size());
  }

  void predictions_are_those_of_the_loss() {
    InspectionService service(run_of("attention"), 0);
    const Json text = result(service, "text", {{"source", "typed"}, {"text", "the cat sat on the mat"}});
    QCOMPARE(text["tokens"].size(), size_t(22));
    QCOMPARE(text["losses"].size(), size_t(21));
    const Json p = result(service, "predictions", {{"query", 5}});
    QCOMPARE(p["top"].size(), size_t(10));
    for (size_t i = 1; i < 10; ++i) QVERIFY(p["top"][i]["logit"] <= p["top"][i - 1]["logit"]);
    QVERIFY(std::abs(-std::log(p["target"]["probability"].get<double>()) - text["losses"][5].get<double>()) < 1e-4);
    QCOMPARE(p["target"]["piece"].get<std::string>(), std::string("t"));
    QVERIFY(result(service, "predictions", {{"query", 21}})["target"].is_null());
  }

  void known_answers_are_found_in_tokens() {
    InspectionService service(run_of("attention"), 0);
    const Json text = result(service, "text", {{"source", "task"}, {"task", "task-copy"}, {"length", 40}, {"seed", 2}});
    const std::string document = text["text"];
    QCOMPARE(text["answers"].size(), size_t(1));
    const size_t query = text["answers"][0]["query"], source = text["answers"][0]["source"], size = text["answers"][0]["size"];
    QCOMPARE(document.substr(query + 1, size), document.substr(source, size));
    QCOMPARE(query + 1, document.find(" = ") + 3);
    QCOMPARE(result(service, "text", {{"source", "task"}, {"task", "task-copy"}, {"length", 40}, {"seed", 2}}), text);
  }

  void counterfactuals_change_the_loss_of_the_query() {
    InspectionService service(run_of("top1_chunk"), 0);
    const Json text = result(service, "text", {{"source", "captured"}});
    const auto before = text["losses"].get<std::vector<double>>();
    const int64_t query = 40;  // two candidates
    const std::vector<float> selected =
        floats_of_base64(result(service, "map", {{"kind", "selected"}, {"layer", 1}, {"head", 0}})["values"].get<std::string>());
    const auto own = static_cast<int64_t>(selected[static_cast<size_t>(query)]);
    const Json change = {{"kind", "force"}, {"layer", 1}, {"head", 0}, {"query", query}, {"source", own}};
    const Json same = result(service, "change", change);
    QCOMPARE(same["changed_from"], -1);
    QCOMPARE(same["before"], same["after"]);
    Json other = change;
    other["source"] = 1 - own;
    const Json changed = result(service, "change", other);
    QCOMPARE(changed["changed_from"], query);
    QVERIFY(changed["before"]["target"]["logit"] != changed["after"]["target"]["logit"]);
    QCOMPARE(changed["before"]["top"].size(), changed["after"]["top"].size());
    const double after = changed["losses"][static_cast<size_t>(query)];
    QVERIFY(std::abs(-std::log(changed["after"]["target"]["probability"].get<double>()) - after) < 1e-4);
    QVERIFY(after != before[static_cast<size_t>(query)]);
    other["kind"] = "mask";
    QCOMPARE(problem(service, "change", other), std::string("layer 1, head 0 has no source to mask"));
  }

  void avey_takes_the_split_of_a_query() {
    InspectionService service(run_of("avey"), 0);
    result(service, "text", {{"source", "captured"}});
    const auto chosen = floats_of_base64(result(service, "map", {{"kind", "chosen"}})["values"].get<std::string>());
    QCOMPARE(chosen.size(), size_t(3 * 2));
    const Json same =
        result(service, "change", {{"kind", "force"}, {"layer", 0}, {"head", 0}, {"query", 40}, {"source", std::lround(chosen[4])}});
    QCOMPARE(same["changed_from"], -1);
    QVERIFY(!problem(service, "change", {{"kind", "force"}, {"layer", 0}, {"head", 0}, {"query", 40}, {"source", 2}}).empty());
    const Json without =
        result(service, "change", {{"kind", "mask"}, {"layer", 1}, {"head", 0}, {"query", 40}, {"source", std::lround(chosen[4])}});
    QCOMPARE(without["changed_from"], 32);  // the first token of its split
  }

  void bad_requests_are_told_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("expected");
    QTest::newRow("no JSON") << "{"
                             << "the request is no JSON object";
    QTest::newRow("list") << "[1]"
                          << "the request is no JSON object";
    QTest::newRow("no method") << R"({"id": 1})"
                               << "the request has no method";
    QTest::newRow("method") << R"({"method": "fly"})"
                            << "unknown method \"fly\", expected hello, text, map, predictions or change";
    QTest::newRow("source") << R"({"method": "text", "parameters": {"source": "web"}})"
                            << "source is \"web\", expected typed, file, captured, task or item";
    QTest::newRow("parameter") << R"({"method": "predictions", "parameters": {"query": 0, "row": 1}})"
                               << "unknown parameter \"row\", expected query or count";
    QTest::newRow("parameters") << R"({"method": "predictions", "parameters": [1]})"
                                << "parameters are no object";
    QTest::newRow("query") << R"({"method": "predictions", "parameters": {"query": 99}})"
                           << "query is 99; expected 0 to 2";
    QTest::newRow("huge") << R"({"method": "predictions", "parameters": {"query": 18446744073709551615}})"
                          << "query is 18446744073709551615; expected 0 to 1099511627776";
    QTest::newRow("map") << R"({"method": "map", "parameters": {"kind": "score", "layer": 0}})"
                         << "layer 0 has no map \"score\"";
    QTest::newRow("head") << R"({"method": "map", "parameters": {"kind": "weights", "layer": 0, "head": 9}})"
                          << "head is 9; expected 0 to 1";
    QTest::newRow("no text") << R"({"method": "text", "parameters": {"source": "typed", "text": ""}})"
                             << "the text has no token";
    QTest::newRow("no file") << R"({"method": "text", "parameters": {"source": "file", "path": "/"}})"
                             << "/ is no file";
  }
  void bad_requests_are_told() {
    QFETCH(QString, line);
    QFETCH(QString, expected);
    InspectionService service(run_of("attention"), 0);
    result(service, "text", {{"source", "typed"}, {"text", "abc"}});
    const Json reply = Json::parse(service.answer(line.toStdString()));
    QCOMPARE(QString::fromStdString(reply.at("error").at("message")), expected);
  }

  void what_is_not_there_is_told() {
    InspectionService none(folder_.filePath("none").toStdString(), 0), step(run_of("attention"), 999), fresh(run_of("attention"), 0);
    QVERIFY(!problem(none, "hello", Json::object()).empty());
    QVERIFY(!problem(step, "hello", Json::object()).empty());
    QCOMPARE(problem(fresh, "predictions", {{"query", 0}}), std::string("no text yet"));
    const Json huge = Json::parse(fresh.answer(std::string(size_t(3) << 20, 'a')));
    QCOMPARE(huge.at("error").at("code").get<int>(), 2);
  }

  void induction_is_the_weight_behind_earlier_copies() {
    Capture capture;
    capture.tokens = {1, 2, 3, 1, 2};
    CapturedMap map{MapKind::weights, 0, {2, 5, 5}, std::vector<float>(50, 0)};
    const auto at = [&](size_t head, size_t t, size_t j) -> float& { return map.values[(head * 5 + t) * 5 + j]; };
    for (size_t t = 0; t < 5; ++t) at(0, t, t) = 1;  // head 0 looks at itself
    for (size_t t = 0; t < 3; ++t) at(1, t, 0) = 1;
    at(1, 3, 1) = 0.5f, at(1, 3, 0) = -0.5f, at(1, 4, 2) = 1;  // head 1 behind the copies
    capture.maps = {map};
    const std::vector<HeadScores> scores = head_scores(capture);
    QCOMPARE(scores.size(), size_t(1));
    QCOMPARE(scores[0].induction, (std::vector<double>{0, 0.75}));
    QCOMPARE(scores[0].distance, (std::vector<double>{0, (0 + 1 + 2 + 2.5 + 2) / 5}));
    QCOMPARE(scores[0].entropy, (std::vector<double>{0, std::log(2.0) / std::log(4.0) / 4}));
  }

  void heads_are_sorted_and_clustered() {
    const double none = std::numeric_limits<double>::quiet_NaN();
    // Two kinds of heads: near and sure, far and spread; one says nothing.
    const std::vector<HeadScores> scores{{0, {0.1, 0.9, none}, {2, 80, none}, {0, 0.3, none}}, {2, {0.8, 0.2}, {70, 3}, {0.4, 0.1}}};
    using Places = std::vector<HeadPlace>;
    QCOMPARE(order_of_heads(scores, HeadMeasure::entropy, HeadOrder::place), (Places{{0, 0}, {0, 1}, {0, 2}, {2, 0}, {2, 1}}));
    QCOMPARE(order_of_heads(scores, HeadMeasure::entropy, HeadOrder::value), (Places{{0, 1}, {2, 0}, {2, 1}, {0, 0}, {0, 2}}));
    QCOMPARE(order_of_heads(scores, HeadMeasure::induction, HeadOrder::value).front(), (HeadPlace{2, 0}));
    const Places alike = order_of_heads(scores, HeadMeasure::entropy, HeadOrder::similarity);
    const auto at = [&](const HeadPlace& head) { return std::find(alike.begin(), alike.end(), head) - alike.begin(); };
    QCOMPARE(alike.size(), size_t(5));
    QCOMPARE(std::abs(at({0, 0}) - at({2, 1})), 1);
    QCOMPARE(std::abs(at({0, 1}) - at({2, 0})), 1);
    for (const HeadOrder order : {HeadOrder::place, HeadOrder::value, HeadOrder::similarity}) {
      const Places heads = order_of_heads(scores, HeadMeasure::distance, order);
      const Figure figure = head_scores_figure(scores, heads, HeadMeasure::distance, order, {});
      QCOMPARE(figure.map->rows, order == HeadOrder::place ? 3 : 2);
      for (const HeadPlace& head : heads) {
        const auto [row, column] = cell_of_head(heads, *figure.map, order, head);
        QCOMPARE(head_at(heads, *figure.map, order, row, column), head);
        const auto value = static_cast<double>(figure.map->values[static_cast<size_t>(row * figure.map->columns + column)]);
        const double expected = scores[head.layer == 0 ? 0 : 1].distance[static_cast<size_t>(head.head)];
        QVERIFY(value == expected || (std::isnan(value) && std::isnan(expected)));
      }
      QCOMPARE(head_at(heads, *figure.map, order, 1, 2).layer, int64_t(-1));
    }
  }

  /// Joining the two groups of the least mean distance, over and over, as one would by hand.
  static std::vector<size_t> joined_by_hand(const std::vector<std::array<double, 3>>& points) {
    std::vector<std::vector<size_t>> groups;
    for (size_t i = 0; i < points.size(); ++i) groups.push_back({i});
    const auto apart = [&](const auto& a, const auto& b) {
      double sum = 0;
      for (const size_t i : a)
        for (const size_t j : b) sum += std::hypot(points[i][0] - points[j][0], points[i][1] - points[j][1], points[i][2] - points[j][2]);
      return sum / static_cast<double>(a.size() * b.size());
    };
    while (groups.size() > 1) {
      size_t a = 0, b = 1;
      for (size_t i = 0; i < groups.size(); ++i)
        for (size_t j = i + 1; j < groups.size(); ++j)
          if (apart(groups[i], groups[j]) < apart(groups[a], groups[b])) a = i, b = j;
      groups[a].insert(groups[a].end(), groups[b].begin(), groups[b].end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
    }
    return groups.front();
  }

  void chains_of_neighbours_give_the_same_tree() {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(0.05, 0.95);
    for (size_t heads = 1; heads < 24; ++heads) {
      HeadScores scores{0, {}, {}, {}};
      for (size_t h = 0; h < heads; ++h) {
        scores.entropy.push_back(uniform(random));
        scores.distance.push_back(200 * uniform(random));
        scores.induction.push_back(uniform(random));
      }
      std::vector<std::array<double, 3>> points(heads);  // every number over its deviation
      for (size_t f = 0; f < 3; ++f) {
        const auto value = [&](size_t h) {
          return f == 0 ? scores.entropy[h] : f == 1 ? std::log1p(scores.distance[h]) : scores.induction[h];
        };
        double mean = 0, square = 0;
        for (size_t h = 0; h < heads; ++h) mean += value(h) / static_cast<double>(heads);
        for (size_t h = 0; h < heads; ++h) square += (value(h) - mean) * (value(h) - mean) / static_cast<double>(heads);
        for (size_t h = 0; h < heads; ++h) points[h][f] = square > 0 ? (value(h) - mean) / std::sqrt(square) : 0;
      }
      std::vector<HeadPlace> expected;
      for (const size_t h : joined_by_hand(points)) expected.push_back({0, static_cast<int64_t>(h)});
      QCOMPARE(order_of_heads({scores}, HeadMeasure::entropy, HeadOrder::similarity), expected);
    }
  }

  void floats_go_through_base64() {
    const std::vector<float> values{0, -1.5f, 3e38f, -std::numeric_limits<float>::infinity(), 1e-40f};
    for (size_t n = 0; n <= values.size(); ++n) {
      const std::vector<float> some(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
      QCOMPARE(floats_of_base64(base64_of_floats(some)), some);
    }
    QCOMPARE(base64_of_floats(std::vector<float>{1}), std::string("AACAPw=="));
    for (const char* bad : {"AAA", "AACAP*==", "AA=="}) QVERIFY_THROWS_EXCEPTION(DataError, floats_of_base64(bad));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::InspectionTest)
#include "inspection_test.moc"
