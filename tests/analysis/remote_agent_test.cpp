#include "analysis/remote/agent.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "analysis/remote/file_pieces.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "models/config/config.h"
#include "models/corpus/sha256.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What an agent shows of its folder, and what it does not.
class RemoteAgentTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    fs::remove_all(home());
    fs::create_directories(served());
    write(served() / "first" / "run.json", "{}");
    write(served() / "first" / "journal.jsonl", std::string(900'000, 'a'));
    write(served() / "first" / "captures" / "step-5.h5", "five");
    write(served() / "first" / "branches" / "step-9" / "run.json", "{}");
    write(served() / "grid" / "study.json", "{}");
    write(served() / "grid" / "state.json", "{}");
    write(served() / "grid" / "runs" / "one" / "run.json", "{}");
    write(served() / "notes" / "readme.txt", "no run");
    write(home() / "secret.txt", "secret");
  }

  void a_frame_keeps_what_it_carries() {
    Frame frame{{{"ask", "read"}, {"id", 7}}, std::string(100'000, 'x') + std::string(3, '\0')};
    const std::string bytes = frame_bytes(frame);
    QVERIFY(bytes.size() < 2000);  // packed
    FrameReader reader(true);
    reader.take("Welcome to server!\nsaccade-ag");
    QVERIFY(!reader.next());
    reader.take("ent\n" + bytes.substr(0, 5));
    QVERIFY(!reader.next());
    reader.take(bytes.substr(5));
    const auto read = reader.next();
    QVERIFY(read && read->head == frame.head && read->body == frame.body);
    reader.take(std::string("\xff\xff\xff\x7f\0\0\0\0", 8));
    QVERIFY(message_of<DataError>([&] { reader.next(); }).contains("larger"));
    frame.body.resize(Frame::kMostBody + 1);
    QVERIFY(message_of<UsageError>([&] { frame_bytes(frame); }).contains("larger"));
  }

  void lists_runs_studies_and_branches() {
    fs::create_directory_symlink(served() / "first", served() / "linked");
    fs::create_symlink(home() / "secret.txt", served() / "first" / "log.txt");
    write(served() / "elsewhere" / "mirror.json", "{}");
    write(served() / "elsewhere" / "far" / "run.json", "{}");
    Agent agent(options());
    const Json all = Json::parse(agent.answer({{"ask", "runs"}, {"changes", true}}).body)["folders"];
    QStringList names;
    for (const auto& [name, entry] : all.items()) names << QString::fromStdString(name);
    QCOMPARE(names, (QStringList{"first", "first/branches/step-9", "grid", "grid/runs/one"}));
    QCOMPARE(all["grid"]["kind"], Json("study"));
    QCOMPARE(all["first"]["files"].size(), size_t{3});  // the link is left out
    QCOMPARE(all["first"]["files"]["journal.jsonl"][0], Json(900'000));
    QVERIFY(all["first"]["live"].is_null());

    QCOMPARE(Json::parse(agent.answer({{"ask", "runs"}, {"changes", true}}).body)["folders"].size(), size_t{0});
    const RunLock lock(served() / "first");
    fs::remove_all(served() / "grid");
    const Json changes = Json::parse(agent.answer({{"ask", "runs"}, {"changes", true}}).body);
    QCOMPARE(changes["folders"].size(), size_t{1});
    QCOMPARE(changes["folders"]["first"]["live"]["process"], Json(::getpid()));
    QCOMPARE(changes["gone"], (Json{"grid", "grid/runs/one"}));
  }

  /// A journal that only grew goes on where it was; one that was replaced comes from its beginning.
  void sends_what_is_new_of_a_journal() {
    Agent agent(options());
    const fs::path journal = served() / "first" / "journal.jsonl";
    std::string mirror;
    const auto read_on = [&] {
      const std::string local = (home() / "mirror").string();
      write(local, mirror);
      const std::string prefix = prefix_hash(open_run_file(local, O_RDONLY), static_cast<int64_t>(mirror.size()));
      const Frame answer =
          agent.answer({{"ask", "read"}, {"pieces", {{{"file", "first/journal.jsonl"}, {"from", mirror.size()}, {"prefix", prefix}}}}});
      const Json piece = answer.head["pieces"][0];
      mirror = mirror.substr(0, piece["from"].get<size_t>()) + answer.body;
      return piece;
    };
    QCOMPARE(read_on()["from"], Json(0));
    QVERIFY(mirror.size() < 900'000);  // in pieces, so that others are not held up
    while (mirror.size() < 900'000) QVERIFY(read_on()["from"].get<int64_t>() > 0);
    QCOMPARE(mirror, std::string(900'000, 'a'));
    QCOMPARE(read_on()["size"], Json(0));
    write(journal, std::string(900'000, 'a') + "new");
    QCOMPARE(read_on()["size"], Json(3));
    write(journal, std::string(899'000, 'a') + std::string(2'000, 'b'));
    QCOMPARE(read_on()["from"], Json(0));
    mirror = std::string(1'000'000, 'a');  // the other one became shorter
    QCOMPARE(read_on()["from"], Json(0));
    QCOMPARE(agent.answer({{"ask", "hash"}, {"file", "first/captures/step-5.h5"}}).head["sha256"], Json(hex(sha256("five"))));
  }

  void serves_nothing_outside_its_folder() {
    fs::create_symlink(home() / "secret.txt", served() / "first" / "link.txt");
    fs::create_directory_symlink(home(), served() / "first" / "up");
    fs::create_directory_symlink(home(), served() / "out");
    QCOMPARE(::mkfifo((served() / "first" / "pipe").c_str(), 0600), 0);
    Agent agent(options());
    for (const char* name : {"../secret.txt", "first/../../secret.txt", "first/link.txt", "first/up/secret.txt", "out/secret.txt",
                             "/etc/passwd", "first//run.json", "first/", "", ".", "first/pipe", "first"}) {
      const Frame read = agent.answer({{"ask", "read"}, {"pieces", {{{"file", name}}}}});
      QVERIFY2(read.body.empty() && (read.head.contains("error") || read.head["pieces"][0].contains("problem")), name);
      QVERIFY2(agent.answer({{"ask", "hash"}, {"file", name}}).head.contains("error"), name);
    }
    const ServedFolder folder(served());
    for (const char* name : {"out", "../served", "first/up"}) QVERIFY2(!message_of<Error>([&] { folder.folder(name); }).isEmpty(), name);
    for (const char* name : {"", ".started", "a/b", "..", "-option", "a b"})
      QVERIFY2(!message_of<UsageError>([&] { folder.new_entry(name); }).isEmpty(), name);
    QCOMPARE(agent.answer({{"ask", "read"}, {"folder", 1}, {"pieces", Json::array()}}).head["code"], Json(2));
    QCOMPARE(agent.answer({{"ask", "rm"}}).head["code"], Json(2));
    QCOMPARE(agent.answer({{"ask", 5}}).head["code"], Json(2));
  }

  /// A mirrored run is at work when it is so on its host, and nobody writes it here.
  void a_mirrored_run_is_live_on_its_host() {
    RunInfo info;
    info.directory = home() / "runs" / "server" / "far";
    fs::create_directories(info.directory);
    info.state = RunState::running;
    info.config = to_json(resolve_config(Json::object(), "test"));
    info.provenance = Json::object();
    write_run_info(info);
    write_run_origin(info.directory, {"server", "far", {}, {}, ""});
    Run run(info.directory);
    QCOMPARE(run.info().state, RunState::crashed);
    write_run_origin(info.directory, {"server", "far", LockHolder{4711, "gpu1"}, {40, 80}, ""});
    QVERIFY(run.outdated());
    run.poll();
    QCOMPARE(run.info().state, RunState::running);
    QVERIFY(message_of<DataError>([&] { const RunLock lock(info.directory); }).contains("mirror of a run on server"));
    write_run_origin(info.directory, {"server", "far", {}, {40, 80}, ""});
    run.poll();
    QCOMPARE(run.info().state, RunState::crashed);

    QCOMPARE(checkpoint_steps(info.directory), (std::vector<int64_t>{40, 80}));

    QVERIFY(!mirror_of(info.directory));
    write_run_origin(info.directory, {"server", "far", LockHolder{4711, "gpu1"}, {}, ""});
    write_mirror({home() / "runs" / "server", "server", "/home/me/runs", true, utc_now(), ""});
    QVERIFY(mirror_of(info.directory) && mirror_of(info.directory)->connected);
    write_mirror({home() / "runs" / "server", "server", "/home/me/runs", true, "2026-01-01T00:00:00Z", ""});
    QVERIFY(!mirror_of(info.directory)->connected);  // whoever said so has gone
    QVERIFY(run.outdated());
    run.poll();
    QCOMPARE(run.info().state, RunState::running);
    QCOMPARE(run.info().host, std::string("server"));
    QCOMPARE(run.info().as_of, std::string("2026-01-01T00:00:00Z"));
    QVERIFY(!run.outdated());
    QCOMPARE(find_runs(home() / "runs"), std::vector{info.directory});
  }

 private:
  fs::path home() const { return fs::path(folder_.path().toStdString()) / "home"; }
  fs::path served() const { return home() / "served"; }
  AgentOptions options() const { return {{served()}, "/bin/false", "true"}; }
  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RemoteAgentTest)
#include "remote_agent_test.moc"
