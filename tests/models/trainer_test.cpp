#include <QtTest>
#include <algorithm>
#include <cmath>
#include <thread>

#include "kernels/engine/parallel.h"
#include "kernels/engine/transfer.h"
#include "models/tasks/symbol_task.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

class TrainerTest : public QObject {
  Q_OBJECT

  LinesCorpus corpus_;

  std::unique_ptr<Trainer> trainer(const RunConfig& config) const {
    return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config));
  }
  static nlohmann::json plain() { return {{"block", "llama"}, {"mixer", "attention"}, {"heads", 2}}; }
  static nlohmann::json chunks() { return {{"block", "gpt"}, {"mixer", "top1_chunk"}, {"heads", 2}, {"chunk", 5}}; }

  static double largest_logit(Trainer& trainer, const FrozenBatch& batch) {
    Tape tape(trainer.arena(), false);
    const Tensor tokens = tape.empty({batch.sequences, batch.length}, DType::i32);
    copy_from_host(tokens, batch.tokens.data());
    const std::vector<double> logits = to_doubles(trainer.model().logits(tape, tokens));
    return *std::max_element(logits.begin(), logits.end());
  }

  /// Weights and moments after `steps` steps.
  std::vector<char> trained(const RunConfig& config, int steps) const {
    const auto t = trainer(config);
    for (int i = 0; i < steps; ++i) t->step();
    return bytes_of(t->state());
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void loss_falls_and_records_add_up() {
    const auto t = trainer(small_run(plain()));
    const StepRecord first = t->step();
    QCOMPARE(first.step, 1);
    QCOMPARE(first.tokens, 96);
    QVERIFY(std::abs(first.loss - std::log(static_cast<double>(corpus_.vocabulary()))) < 0.2);
    StepRecord last;
    while (!t->finished()) last = t->step();
    QCOMPARE(last.step, 40);
    QCOMPARE(last.tokens, 96 * 40);
    QVERIFY2(last.loss < first.loss - 1, qPrintable(QString("%1 after %2").arg(last.loss).arg(first.loss)));
    QVERIFY(last.seconds > 0 && last.tokens_per_second > 0);
    QCOMPARE(last.flops, 40 * t->flops_per_step());
    QVERIFY(std::abs(last.learning_rate - 0.001) < 1e-12);
  }

  void restored_run_goes_on_bit_for_bit_data() {
    QTest::addColumn<QString>("architecture");
    QTest::newRow("attention") << QString::fromStdString(plain().dump());
    QTest::newRow("chunk") << QString::fromStdString(chunks().dump());
  }
  void restored_run_goes_on_bit_for_bit() {
    QFETCH(QString, architecture);
    const RunConfig config = small_run(nlohmann::json::parse(architecture.toStdString()));
    Arena storage(Device::cpu());
    const auto whole = trainer(config), resumed = trainer(config);
    for (int i = 0; i < 4; ++i) whole->step();
    const TrainingState checkpoint = copy_of(whole->state(), storage);
    resumed->step();  // whatever it did before is forgotten
    resumed->restore(checkpoint);
    for (int i = 0; i < 4; ++i) {
      const StepRecord a = whole->step(), b = resumed->step();
      QCOMPARE(a.step, b.step);
      QCOMPARE(a.loss, b.loss);
      QCOMPARE(a.gradient_norm, b.gradient_norm);
      QCOMPARE(a.flops, b.flops);
    }
    QVERIFY(bytes_of(whole->state()) == bytes_of(resumed->state()));
    QCOMPARE(whole->state().data_position, resumed->state().data_position);
  }

  /// What a checkpoint holds that is written while training goes on.
  void a_copied_state_stays_that_of_its_step() {
    const RunConfig config = small_run(plain());
    const auto t = trainer(config);
    t->prepare_copies();
    for (int i = 0; i < 3; ++i) t->step();
    const TrainingState third = t->copied_state();
    for (int i = 0; i < 2; ++i) t->step();
    const TrainingState fifth = t->copied_state();
    t->step();
    QCOMPARE(third.record.step, int64_t{3});
    QVERIFY(bytes_of(third) == trained(config, 3));
    QVERIFY(bytes_of(fifth) == trained(config, 5));
    QVERIFY(bytes_of(third) != bytes_of(fifth));
  }

  void threads_change_nothing() {
    for (nlohmann::json architecture : {plain(), chunks()}) {
      RunConfig config = small_run(architecture);
      config.threads = 1;
      const std::vector<char> one = trained(config, 3);
      for (int64_t threads : {2, 3, 5}) {
        config.threads = threads;
        const auto t = trainer(config);
        QCOMPARE(thread_count(), static_cast<int>(std::min<int64_t>(threads, std::max(1u, std::thread::hardware_concurrency()))));
        set_thread_count(static_cast<int>(threads));  // also more than a config may ask for here
        for (int i = 0; i < 3; ++i) t->step();
        QVERIFY(bytes_of(t->state()) == one);
      }
    }
  }

  void seeds_change_the_start() {
    QVERIFY(trained(small_run(plain(), {{"seed", 1}}), 0) == trained(small_run(plain(), {{"seed", 1}}), 0));
    QVERIFY(trained(small_run(plain(), {{"seed", 1}}), 0) != trained(small_run(plain(), {{"seed", 2}}), 0));
  }

  void accumulating_micro_batches_is_one_big_batch_data() {
    QTest::addColumn<double>("penalty");
    for (double penalty : {0.0, 0.5}) QTest::addRow("max_logit_penalty %g", penalty) << penalty;
  }
  void accumulating_micro_batches_is_one_big_batch() {
    QFETCH(double, penalty);
    const nlohmann::json training{{"max_logit_penalty", penalty}}, cut{{"max_logit_penalty", penalty}, {"gradient_accumulation", 4}};
    const auto whole = trainer(small_run(plain(), training, "f64")), pieces = trainer(small_run(plain(), cut, "f64"));
    for (int i = 0; i < 3; ++i) {
      const StepRecord a = whole->step(), b = pieces->step();
      QVERIFY(std::abs(a.loss - b.loss) < 1e-12);
      QVERIFY(std::abs(a.gradient_norm - b.gradient_norm) < 1e-12);
      QCOMPARE(a.tokens, b.tokens);
    }
    QVERIFY(pieces->arena().peak_extent() < whole->arena().peak_extent());
  }

  static RunConfig of_documents(nlohmann::json training = nlohmann::json::object(), const std::string& precision = "f64") {
    RunConfig config = small_run(plain(), training, precision);
    config.data.train = {"notes"};
    config.data.packing = "document";
    return config;
  }
  /// The mean is over the tokens of the step's documents, however they lie in micro-batches; padding counts for nothing.
  void one_document_a_sequence_counts_its_tokens() {
    const auto whole = trainer(of_documents()), pieces = trainer(of_documents({{"gradient_accumulation", 4}}));
    int64_t tokens = 0;
    for (int i = 0; i < 5; ++i) {
      const auto before = trainer(of_documents());
      before->restore(whole->state());
      const StepRecord a = whole->step(), b = pieces->step();
      QVERIFY(std::abs(a.loss - b.loss) < 1e-12);
      QVERIFY(std::abs(a.gradient_norm - b.gradient_norm) < 1e-12);
      QCOMPARE(a.tokens, b.tokens);
      const FrozenBatch batch = whole->last_batch().batch;
      const int64_t padding = std::count(batch.targets.begin(), batch.targets.end(), kNoTarget);
      QVERIFY(padding > 0 && padding < 96);
      tokens += 96 - padding;
      QCOMPARE(a.tokens, tokens);
      QVERIFY(std::abs(a.loss - before->evaluate(batch).loss) < 1e-12);
    }
  }
  /// What stands behind a document's end changes neither loss nor weights.
  void padding_is_not_trained_on() {
    const RunConfig config = of_documents();
    std::vector<double> norms;
    for (const int32_t filler : {256, 7}) {
      TrainingStep step(config, corpus_.vocabulary(), Device::cpu());
      const auto data = corpus_.source(config);
      BatchSource& source = *data;
      const int64_t targets = source.targets(0, step.sequences());
      source.next(step.sequences(), step.tokens(), step.targets());
      for (size_t i = 0; i < step.tokens().size(); ++i)
        if (step.targets()[i] == kNoTarget && (i % 24 == 0 || step.targets()[i - 1] == kNoTarget)) step.tokens()[i] = filler;
      step.begin(1, targets);
      step.forward_backward();
      step.gradient_norm();
      norms.push_back(step.measures().loss);
      norms.push_back(step.measures().gradient_norm);
    }
    QVERIFY(norms[0] > 0 && norms[1] > 0);
    QCOMPARE(norms[2], norms[0]);
    QCOMPARE(norms[3], norms[1]);
  }
  void documents_resume_bit_for_bit() {
    Arena storage(Device::cpu());
    const RunConfig config = of_documents({{"gradient_accumulation", 2}}, "f32");
    const auto whole = trainer(config), resumed = trainer(config);
    for (int i = 0; i < 3; ++i) whole->step();
    resumed->restore(copy_of(whole->state(), storage));
    for (int i = 0; i < 20; ++i) QCOMPARE(whole->step().loss, resumed->step().loss);  // into the next epoch
    QVERIFY(bytes_of(whole->state()) == bytes_of(resumed->state()));
    QCOMPARE(whole->state().record.tokens, resumed->state().record.tokens);
  }

  static RunConfig on_a_task(nlohmann::json training = nlohmann::json::object()) {
    nlohmann::json t{{"steps", 40}, {"batch_tokens", 96}, {"warmup_steps", 2}, {"learning_rate", 0.01}, {"evaluation_tokens", 192}},
        architecture{{"width", 16}, {"layers", 2}};
    t.update(training), architecture.update(plain());
    return resolve_config(
        {{"architecture", architecture},
         {"data", {{"task", "mqar"}, {"train", {"length-24-pairs-3-vocabulary-512"}}, {"ood", {"length-48-pairs-9-vocabulary-512"}}}},
         {"training", t},
         {"device", "cpu"},
         {"precision", "f64"}},
        "test");
  }
  static std::unique_ptr<BatchSource> examples(const RunConfig& config) {
    const SymbolDomain domain(symbol_task("mqar"), config.data.train.front(), "test");
    return std::make_unique<BatchSource>(config.data.sequence_length,
                                         std::vector{symbol_sequences(domain, Split::train, config.data.sequence_length)}, uint64_t{1});
  }
  /// Logits of the rows with a target alone: loss and gradient are what logits of all rows give, however they lie in micro-batches.
  void a_task_makes_logits_of_its_answers() {
    const RunConfig config = on_a_task();
    TrainingStep step(config, 512, Device::cpu());
    QCOMPARE(step.most_targets(), int64_t{4 * 3});
    std::vector<int32_t> tokens(96), targets(96);
    examples(config)->next(4, tokens, targets);
    std::copy(tokens.begin(), tokens.end(), step.tokens().begin());
    std::copy(targets.begin(), targets.end(), step.targets().begin());
    step.begin(1, 12);
    step.forward_backward();
    step.gradient_norm();
    Arena arena(Device::cpu());
    const Tensor x = arena.allocate({4, 24}, DType::i32), y = arena.allocate({4, 24}, DType::i32);
    copy_from_host(x, tokens.data());
    copy_from_host(y, targets.data());
    std::vector<Tensor> grads;
    Tape tape(arena, true);
    for (const Parameter& p : step.model().parameters())
      tape.bind_grad(p.value, grads.emplace_back(arena.allocate(p.value.shape(), DType::f64)));
    tape.fresh_grads();
    const Tensor loss = step.model().loss(tape, x, y);
    QVERIFY(std::abs(step.measures().loss - *loss.data<double>() * 96 / 12) < 1e-12);
    tape.backward(loss, 96.0 / 12);
    for (size_t p = 0; p < grads.size(); ++p)
      for (int64_t i = 0; i < grads[p].size(); ++i)
        QVERIFY(std::abs(step.slots()[p].grad.data<double>()[i] - grads[p].data<double>()[i]) < 1e-12);

    Trainer whole(config, 512, examples(config)), pieces(on_a_task({{"gradient_accumulation", 4}}), 512, examples(config));
    for (int i = 0; i < 3; ++i) {
      const StepRecord a = whole.step(), b = pieces.step();
      QVERIFY(std::abs(a.loss - b.loss) < 1e-12 && std::abs(a.gradient_norm - b.gradient_norm) < 1e-12);
      QCOMPARE(a.tokens, int64_t{12} * (i + 1));
    }
  }
  /// A plan counts those logits, in training and in evaluation, and steps and evaluations take what it says.
  void a_task_is_planned_as_it_runs() {
    const RunConfig config = on_a_task();
    RunConfig of_text = config;  // the same sizes with a target in every row
    of_text.data.task.clear();
    const Plan plan = make_plan(config, 512), all = make_plan(of_text, 512);
    QVERIFY(plan.peak_bytes < all.peak_bytes && plan.flops_per_step < all.flops_per_step);
    Trainer trainer(config, 512, examples(config));
    for (int i = 0; i < 2; ++i) trainer.step();
    for (const std::string& domain : {config.data.train.front(), config.data.ood.front()})
      QVERIFY(trainer.evaluate(task_batch("mqar", domain, {Split::validation, 0, 8})).accuracy >= 0);
    QCOMPARE(trainer.arena().peak_extent(), plan.peak_bytes);
  }
  /// Pieces that hold the end of one batch and the start of the next tell each what it would hear alone, right answers too.
  void batches_of_answers_are_evaluated_as_each_alone() {
    Trainer trainer(on_a_task(), 512, examples(on_a_task()));
    for (int i = 0; i < 2; ++i) trainer.step();
    const std::string domain = on_a_task().data.train.front();
    const std::vector<FrozenBatch> batches{task_batch("mqar", domain, {Split::validation, 0, 3}),
                                           task_batch("mqar", domain, {Split::test, 0, 6})};
    const std::vector<Evaluation> together = trainer.evaluate(batches);
    for (size_t i = 0; i < batches.size(); ++i) {
      const Evaluation alone = trainer.evaluate(batches[i]);
      QVERIFY(together[i].right == alone.right && together[i].by_sequence == alone.by_sequence);
      QCOMPARE(together[i].accuracy, alone.accuracy);
      QCOMPARE(together[i].right.size(), batches[i].targets.size());
    }
    QVERIFY(together[0].loss != together[1].loss);
  }
  /// A batch with more targets than its task can ask for is refused, in training and in evaluation.
  void more_targets_than_a_task_has_are_refused() {
    const RunConfig config = on_a_task();
    TrainingStep step(config, 512, Device::cpu());
    std::fill(step.tokens().begin(), step.tokens().end(), 1);
    std::fill(step.targets().begin(), step.targets().end(), kNoTarget);
    std::fill_n(step.targets().begin(), 13, 2);
    step.begin(1, 13);
    try {
      step.forward_backward();
      QFAIL("13 targets are taken");
    } catch (const DataError& error) {
      QCOMPARE(QString(error.what()), QString("a micro-batch has 13 targets; the examples of its task have at most 12"));
    }
    Trainer trainer(config, 512, examples(config));
    FrozenBatch batch = task_batch("mqar", config.data.train.front(), {Split::validation, 0, 8});
    batch.most_answers = 2;
    QVERIFY_THROWS_EXCEPTION(DataError, trainer.evaluate(batch));
  }

  /// It moves the weights, while what is reported of equal weights stays the cross-entropy, in training and in evaluation.
  void a_penalty_keeps_logits_small() {
    const auto plainly = trainer(small_run(plain())), penalized = trainer(small_run(plain(), {{"max_logit_penalty", 0.5}}));
    const FrozenBatch batch = frozen(4, 24, corpus_.vocabulary());
    QCOMPARE(penalized->evaluate(batch).by_position, plainly->evaluate(batch).by_position);
    const StepRecord first = plainly->step(), first_penalized = penalized->step();
    QCOMPARE(first_penalized.loss, first.loss);
    QVERIFY(first_penalized.gradient_norm != first.gradient_norm);
    while (!plainly->finished()) plainly->step(), penalized->step();
    const double large = largest_logit(*plainly, batch), small = largest_logit(*penalized, batch);
    QVERIFY2(small < large / 2, qPrintable(QString("%1 with, %2 without").arg(small).arg(large)));
  }

  void evaluation_and_probes_do_not_disturb() {
    const RunConfig config = small_run(chunks());
    const auto watched = trainer(config), alone = trainer(config);
    const FrozenBatch batch = frozen(7, 24, corpus_.vocabulary());
    for (int i = 0; i < 3; ++i) {
      watched->evaluate(batch);
      ProbeRecord record;
      record.maps_wanted = true;
      watched->probe(batch, record);
      QCOMPARE(watched->step().loss, alone->step().loss);
    }
    QVERIFY(bytes_of(watched->state()) == bytes_of(alone->state()));
  }

  void evaluation_is_the_mean_over_all_sequences() {
    const auto t = trainer(small_run(plain(), {}, "f64"));
    const FrozenBatch batch = frozen(9, 24, corpus_.vocabulary());  // more than a micro-batch of 4
    const Evaluation all = t->evaluate(batch);
    QCOMPARE(all.by_position.size(), size_t(24));
    double mean = 0, sum = 0;
    for (double loss : all.by_position) mean += loss / 24;
    QVERIFY(std::abs(mean - all.loss) < 1e-12);
    for (int64_t s = 0; s < 9; ++s) {
      const auto rows = [&](const std::vector<int32_t>& v) { return std::vector<int32_t>(v.begin() + s * 24, v.begin() + (s + 1) * 24); };
      sum += t->evaluate({"lines", rows(batch.tokens), rows(batch.targets), 1, 24}).loss / 9;
    }
    QVERIFY(std::abs(sum - all.loss) < 1e-12);
  }

  void several_batches_are_evaluated_as_each_alone() {
    const auto t = trainer(small_run(plain(), {}, "f64"));
    // Of 24 tokens pieces of four sequences, which go on from the first batch into the second and third.
    std::vector<FrozenBatch> batches{frozen(9, 24, corpus_.vocabulary()), frozen(1, 24, corpus_.vocabulary()),
                                     frozen(6, 24, corpus_.vocabulary()), frozen(2, 12, corpus_.vocabulary())};
    for (size_t i = 1; i < batches.size(); ++i)  // of other tokens each
      std::rotate(batches[i].tokens.begin(), batches[i].tokens.begin() + static_cast<ptrdiff_t>(i), batches[i].tokens.end());
    const std::vector<Evaluation> together = t->evaluate(batches);
    QCOMPARE(together.size(), batches.size());
    for (size_t i = 0; i < batches.size(); ++i) {
      const Evaluation alone = t->evaluate(batches[i]);
      QCOMPARE(alone.by_sequence.size(), static_cast<size_t>(batches[i].sequences));
      QCOMPARE(together[i].loss, alone.loss);
      QVERIFY(together[i].by_position == alone.by_position && together[i].by_sequence == alone.by_sequence);
    }
    for (size_t i = 1; i < batches.size(); ++i) QVERIFY(together[i].loss != together[i - 1].loss);
    batches[1].targets[0] = static_cast<int32_t>(corpus_.vocabulary());
    QVERIFY_THROWS_EXCEPTION(DataError, t->evaluate(batches));
  }

  void evaluation_refuses_wrong_batches() {
    const auto t = trainer(small_run(plain()));
    FrozenBatch batch = frozen(2, 24, corpus_.vocabulary());
    batch.tokens[5] = static_cast<int32_t>(corpus_.vocabulary());
    QVERIFY_THROWS_EXCEPTION(DataError, t->evaluate(batch));
    batch = frozen(2, 24, corpus_.vocabulary());
    batch.targets.pop_back();
    QVERIFY_THROWS_EXCEPTION(DataError, t->evaluate(batch));
  }

  void non_finite_loss_leaves_the_weights() {
    const auto t = trainer(small_run(plain()));
    t->step();
    const TrainingState state = t->state();
    for (const NamedTensor& w : state.weights)
      if (w.name == "final_norm") w.tensor.data<float>()[3] = std::numeric_limits<float>::infinity();
    const std::vector<char> before = bytes_of(state);
    const StepRecord record = t->step();
    QVERIFY(!std::isfinite(record.loss));
    QVERIFY(bytes_of(t->state()) == before);
  }

  void restore_refuses_what_does_not_fit() {
    Arena storage(Device::cpu());
    const auto t = trainer(small_run(plain()));
    const std::vector<char> before = bytes_of(t->state());
    const auto refused = [&](auto&& damage) {
      TrainingState state = copy_of(t->state(), storage);
      damage(state);
      QVERIFY_THROWS_EXCEPTION(DataError, t->restore(state));
      QVERIFY(bytes_of(t->state()) == before);
    };
    refused([](TrainingState& s) { s.weights.pop_back(); });
    refused([](TrainingState& s) { s.weights[0].name = "other"; });
    refused([](TrainingState& s) { s.group("second_moments").tensors[2].tensor = {}; });
    refused([&](TrainingState& s) { s.group("first_moments").tensors[1].tensor = storage.allocate({3}, DType::f32); });
    refused([&](TrainingState& s) { s.weights[1].tensor = storage.allocate(s.weights[1].tensor.shape(), DType::f64); });
  }

  void a_run_that_does_not_fit_says_so_before_it_starts() {
    nlohmann::json huge = {{"block", "llama"}, {"width", 65536}, {"layers", 1000}, {"heads", 64}};
    try {
      trainer(small_run(huge));
      QFAIL("it fits");
    } catch (const DeviceError& error) {
      QVERIFY2(QString(error.what()).contains("MiB are available"), error.what());
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TrainerTest)
#include "trainer_test.moc"
