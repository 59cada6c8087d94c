#include "analysis/runs/kept_choices.h"

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <thread>

namespace fs = std::filesystem;
using saccade::KeptChoices;

class KeptChoicesTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  fs::path file(const char* name) const { return fs::path(folder_.path().toStdString()) / name / "choices.txt"; }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

 private Q_SLOTS:
  void the_next_process_finds_them() {
    const fs::path path = file("kept");
    KeptChoices first(path);
    QVERIFY(!first.find("product 1 2 3"));
    first.keep("product 1 2 3", 7);
    first.keep("product 1 2 4", 0);
    first.keep("product 1 2 3", 9);
    QCOMPARE(first.find("product 1 2 3"), std::optional(9));
    KeptChoices next(path);
    QCOMPARE(next.find("product 1 2 3"), std::optional(9));
    QCOMPARE(next.find("product 1 2 4"), std::optional(0));
    QVERIFY(!next.find("product 1 2"));
    struct stat state {};
    QCOMPARE(::stat(path.c_str(), &state), 0);
    QCOMPARE(state.st_mode & 0777, mode_t{0600});
  }

  void every_damaged_byte_costs_one_line() {
    const fs::path path = file("damaged");
    KeptChoices first(path);
    for (int i = 0; i < 3; ++i) first.keep("name " + std::to_string(i), 10 + i);
    const std::string good = text_of(path);
    const size_t line = good.find('\n') + 1;
    for (size_t at = line; at < 2 * line - 1; ++at) {  // of the second one
      std::string bad = good;
      bad[at] ^= 0x04;
      write(path, bad);
      KeptChoices read(path);
      QCOMPARE(read.find("name 0"), std::optional(10));
      QVERIFY2(!read.find("name 1"), qPrintable(QString("byte %1").arg(at)));
      QCOMPARE(read.find("name 2"), std::optional(12));
    }
    write(path, good.substr(0, good.size() - 3));  // the last line's end is missing
    KeptChoices cut(path);
    QCOMPARE(cut.find("name 1"), std::optional(11));
    QVERIFY(!cut.find("name 2"));
  }

  void what_is_no_file_is_left_alone() {
    const fs::path pipe = file("pipe"), target = file("target"), link = file("link");
    fs::create_directories(pipe.parent_path());
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
    write(target, "kept by somebody else\n");
    fs::create_directories(link.parent_path());
    fs::create_symlink(target, link);
    for (const fs::path& path : {pipe, link, fs::path("/proc/none/choices.txt")}) {
      KeptChoices choices(path);
      QVERIFY(!choices.find("name"));
      choices.keep("name", 1);
      QCOMPARE(choices.find("name"), std::optional(1));  // in this process
    }
    QCOMPARE(text_of(target), std::string("kept by somebody else\n"));
  }

  void the_file_stays_small() {
    const fs::path path = file("large");
    KeptChoices choices(path);
    for (int i = 0; i < 30; ++i) choices.keep(std::string(60'000, 'x') + std::to_string(i), i);
    QVERIFY(fs::file_size(path) <= KeptChoices::kMostBytes);
    KeptChoices next(path);
    QCOMPARE(next.find(std::string(60'000, 'x') + "0"), std::optional(0));
    write(path, std::string(KeptChoices::kMostBytes + 1, 'y'));
    KeptChoices too_large(path);
    QVERIFY(!too_large.find("name"));
  }

  void several_write_at_once() {
    const fs::path path = file("several");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&path, t] {
        KeptChoices own(path);
        for (int i = 0; i < 100; ++i) own.keep("of " + std::to_string(t) + " number " + std::to_string(i), 100 * t + i);
      });
    for (std::thread& thread : threads) thread.join();
    KeptChoices all(path);
    for (int t = 0; t < 4; ++t)
      for (int i = 0; i < 100; ++i)
        QCOMPARE(all.find("of " + std::to_string(t) + " number " + std::to_string(i)), std::optional(100 * t + i));
  }
};

QTEST_APPLESS_MAIN(KeptChoicesTest)
#include "kept_choices_test.moc"
