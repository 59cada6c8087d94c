#include <QTest>

#include "tests/gpu/attention_cases.h"

namespace saccade::test {

class AttentionCudaTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agreesWithCpu() {
    std::string why;
    if (cuda::gpus(&why).empty()) QSKIP(("no GPU to test on: " + why).c_str());
    QCOMPARE(attention_check::run(""), 0);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AttentionCudaTest)
#include "attention_cuda_test.moc"
