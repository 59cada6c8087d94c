#include "models/corpus/local_text.h"

#include <QtTest>
#include <filesystem>
#include <fstream>

#include "kernels/engine/error.h"
#include "models/corpus/corpus.h"
#include "models/corpus/pod.h"
#include "models/corpus/roff.h"

namespace saccade::test {
namespace fs = std::filesystem;

class LocalTextTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    qputenv("SACCADE_DATA", (folder_->path() + "/data").toUtf8());
  }

  void manual_pages_become_text() {
    const std::string page = R"(.\" A comment
.TH LS 1 "2020" "GNU"
.SH NAME
ls \- list directory contents
.SH "SEE ALSO"
.B ls
[\fI\,OPTION\/\fR]...
.\" Another
.PP
List information about the \fBFILE\fPs
(the current directory by default).
.TP
\fB\-a\fR, \fB\-\-all\fR
do not ignore \(aq.\(aq
.IP \(bu 2
first
.BR stat (2),
.nf
$ ls  \-l
two
.fi
.de XX
never shown
..
.TS
l l.
a	b
.TE
Done \(em finally.
)";
    QCOMPARE(QString::fromStdString(roff_to_text(page)), QString("NAME\n\nls - list directory contents\n\nSEE ALSO\n\nls [OPTION]...\n\n"
                                                                 "List information about the FILEs (the current directory by default).\n\n"
                                                                 "-a, --all do not ignore '.'\n\n- first stat(2),\n\n"
                                                                 "$ ls  -l\ntwo\n\nDone — finally.\n"));
  }

  void mdoc_pages_become_text() {
    const std::string page = R"(.Dd June 1, 2020
.Dt CAT 1
.Os
.Sh NAME
.Nm cat
.Nd concatenate files
.Sh SYNOPSIS
.Nm
.Op Fl benst
.Op Ar
.Sh DESCRIPTION
The
.Nm
utility reads files, see
.Xr head 1 ,
and
.Dq writes
them.
)";
    QCOMPARE(QString::fromStdString(roff_to_text(page)),
             QString("NAME\n\ncat – concatenate files\n\nSYNOPSIS\n\ncat [-benst] []\n\n"
                     "DESCRIPTION\n\nThe cat utility reads files, see head(1), and “writes” them.\n"));
  }

  void broken_pages_do_no_harm() {
    for (const char* page : {"", "\\", ".", "'", ".SH", "\\f", "\\f(", "\\f[x", "\\*(", "\\h'", ".IP \"", ".BR \"a", ".de", ".if n \\{",
                             ".Op", ".Xr", "\\[u20AC", "\\s"})
      roff_to_text(page);
    QCOMPARE(roff_to_text("\\[u20AC] \\[u00E9] \\[uFFFFFF]x"), std::string("€ é x\n"));
  }

  void perl_files_are_parted() {
    const std::string file =
        "package X;\n\n=head1 NAME\n\nX - a B<bold C<< <tag> >>> thing, see L<the manual|perl>\n\n=over\n\n=item *\n\nOne E<lt> "
        "two\n\n=back\n\n"
        "  verbatim\n\n=begin html\n\n<p>\n\n=end html\n\n=cut\n\nsub f { 1 }\n__END__\nrest\n";
    QCOMPARE(perl_code(file), std::string("package X;\n\n\nsub f { 1 }\n"));
    QCOMPARE(pod_to_text(file), std::string("NAME\n\nX - a bold <tag> thing, see the manual\n\n-\n\nOne < two\n\n  verbatim\n"));
  }

  void gathers_domains_with_all_splits() {
    fill(40);
    make();
    const Corpus corpus = Corpus::open("gathered");
    std::vector<std::string> names;
    for (const auto& info : corpus.domains()) names.push_back(info.name);
    QCOMPARE(names, (std::vector<std::string>{"c", "prose"}));
    for (const auto& info : corpus.domains()) {
      QVERIFY(info.documents.at("validation") >= 1 && info.documents.at("test") >= 1);
      QVERIFY(info.bytes.at("train") > 8 * info.bytes.at("validation"));
    }
    corpus.each_document("prose", Split::train, [](std::string_view document) { return document.find(".SH") == document.npos; });
    const std::string hash = corpus.hash();
    std::filesystem::remove_all(folder_->path().toStdString() + "/data/corpora/gathered");
    make();
    QCOMPARE(Corpus::open("gathered").hash(), hash);
  }

  void caps_and_duplicates() {
    fill(40);
    for (int i = 0; i < 20; ++i) write("usr/include/same/" + std::string(1, static_cast<char>('a' + i)) + ".h", header(7000));
    LocalTextOptions options = small();
    options.most_bytes = 20'000;
    make_local_text("gathered", options, {});
    const Corpus corpus = Corpus::open("gathered");
    for (const auto& info : corpus.domains()) {
      int64_t bytes = 0;
      for (const auto& [split, of_split] : info.bytes) bytes += of_split;
      QVERIFY(bytes >= 20'000 && bytes < 24'000);
    }
    int copies = 0;
    for (Split split : {Split::train, Split::validation, Split::test})
      corpus.each_document("c", split, [&](std::string_view document) {
        copies += document == header(7000);
        return true;
      });
    QVERIFY(copies <= 1);
  }

  void too_little_text_says_what_to_do() {
    fill(3);
    try {
      make();
      QFAIL("no error");
    } catch (const DataError& error) {
      const QString message = error.what();
      QVERIFY2(message.contains("prose") && message.contains("kB") && message.contains("install manpages"), error.what());
    }
    QVERIFY_THROWS_EXCEPTION(DataError, Corpus::open("gathered"));
    fill(40);
    make();
    const Corpus corpus = Corpus::open("gathered");
    const QString message = QString::fromStdString(corpus.missing_domain("python"));
    QVERIFY2(message.contains("has no domain \"python\", it has: c, prose") && message.contains("install python3"), qPrintable(message));
    QVERIFY_THROWS_EXCEPTION(DataError, corpus.each_document("python", Split::train, [](std::string_view) { return true; }));
  }

 private:
  LocalTextOptions small() const {
    LocalTextOptions options;
    options.root = folder_->path().toStdString() + "/sources";
    options.least_bytes = 15'000;
    return options;
  }

  void make() const { make_local_text("gathered", small(), {}); }

  void fill(int files) const {
    for (int i = 0; i < files; ++i) {
      write("usr/share/man/man1/tool" + std::to_string(i) + ".1", ".SH NAME\n" + prose(i));
      write("usr/include/part" + std::to_string(i) + ".h", header(i));
      write("usr/include/damaged" + std::to_string(i) + ".h", header(i + 100) + "\xff");
    }
    write("usr/share/man/man1/broken.1.gz", "no gzip");
  }

  static std::string prose(int seed) {
    std::string text;
    for (int i = 0; i < 12; ++i)
      text += "The tool number " + std::to_string(seed) + " reads the file and writes it to the output that is named in line " +
              std::to_string(i) + ".\n";
    return text;
  }

  static std::string header(int seed) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += "int function_" + std::to_string(seed) + "_" + std::to_string(i) + "(void);\n";
    return text;
  }

  void write(const std::string& name, const std::string& content) const {
    const fs::path path = folder_->path().toStdString() + "/sources/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LocalTextTest)
#include "local_text_test.moc"
