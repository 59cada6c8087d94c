#include "analysis/studies/report/remarks.h"

#include <QtTest>

namespace saccade::test {

/// Of numbers made up for a study of one setting.
class ReportRemarksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// A mean over two of three seeds must not pass for one over three.
  void a_loss_that_is_not_finite_is_named() {
    StudyView view;
    CellNumbers cell;
    cell.name = "rwkv7";
    for (int64_t i = 1; i <= 2; ++i) {
      SeedNumbers seed;
      seed.seed = i, seed.run = "rwkv7_seed-" + std::to_string(i);
      seed.end.domains = {{"length-64", 1.8}, {"length-2048", i == 1 ? NAN : 1.9}};
      cell.seeds.push_back(seed);
    }
    const auto said = [&] {
      const std::vector<std::string> remarks = remarks_of(view, {cell}, {});
      const auto finds = [](const std::string& remark) { return remark.find("not finite") != std::string::npos; };
      const auto found = std::find_if(remarks.begin(), remarks.end(), finds);
      return found == remarks.end() ? std::string() : *found;
    };
    QCOMPARE(said(), std::string("runs/rwkv7_seed-1: the loss of length-2048 at its end is not finite, so no mean has it."));
    cell.seeds[0].end.domains["length-2048"] = 2;
    QCOMPARE(said(), std::string());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ReportRemarksTest)
#include "report_remarks_test.moc"
