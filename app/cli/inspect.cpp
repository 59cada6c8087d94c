// saccade inspect RUN: where did this query read from?
#include <cmath>
#include <sstream>

#include "analysis/figures/reads.h"
#include "analysis/probes/capture_maps.h"
#include "analysis/runs/run.h"
#include "app/cli/capture_option.h"
#include "app/cli/command.h"
#include "app/cli/host_call.h"
#include "app/cli/inspect_serve.h"
#include "app/cli/output.h"
#include "app/cli/render.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace {

struct Options {
  std::string run, csv;
  int64_t step = -1, sample = 0, layer = 0, head = 0, query = -1;
  int64_t top = 12;
  bool serve = false;
  InspectServe service;
};

std::string shown(const std::string& piece) { return "\"" + printable(piece) + "\""; }

void write_csv(const std::string& path, const Capture& capture, const Reads& reads) {
  std::ostringstream file;
  file.imbue(std::locale::classic());
  file.precision(9);
  file << "position,piece,weight\n";
  for (size_t j = 0; j < reads.weights.size(); ++j) {
    std::string piece = capture.pieces[j];
    for (size_t at = 0; (at = piece.find('"', at)) != std::string::npos; at += 2) piece.insert(at, 1, '"');
    file << j << ",\"" << piece << "\"," << reads.weights[j] << '\n';
  }
  write_text(path, file.str());
}

int run(const Options& o) {
  const Run opened(o.run);
  const Capture capture = open_capture(opened, o.step, o.sample);
  const int64_t step = capture.at.step;
  const int64_t query = o.query < 0 ? static_cast<int64_t>(capture.tokens.size()) - 1 : o.query;
  const Reads reads = reads_of(capture, o.layer, o.head, query);
  if (!o.csv.empty()) write_csv(o.csv, capture, reads);

  std::vector<size_t> order(reads.weights.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::abs(reads.weights[a]) > std::abs(reads.weights[b]); });
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < order.size() && i < static_cast<size_t>(o.top); ++i)
    rows.push_back({std::to_string(order[i]), std::to_string(query - static_cast<int64_t>(order[i])), number(reads.weights[order[i]], 4),
                    shown(capture.pieces[order[i]])});

  std::string text = opened.info().title + ", step " + std::to_string(step) + ", sample " + std::to_string(o.sample) + " (" +
                     capture.domain + "), " + layer_words(capture, o.layer) + ", head " + std::to_string(o.head) + ", query " +
                     std::to_string(query) + " " + shown(capture.pieces[static_cast<size_t>(query)]) + "\n\n" +
                     table({"position", "distance", "weight", "token"}, rows) + "\nentropy " + number(reads.entropy, 3) + " nats (" +
                     number(reads.entropy_normalized, 3) + " of the maximum), median distance " + number(reads.median_distance, 0) +
                     ", 90 % within " + number(reads.distance_90, 0) + ", outside the last 256: " + number(100 * reads.outside_256, 1) +
                     " %\n";
  if (!reads.chosen_candidates.empty()) {
    text += "chosen:";
    for (int64_t c : reads.chosen_candidates) text += " " + std::to_string(c);
    text += " (" + std::to_string(reads.candidate_size) + " tokens each), margin " + number(reads.margin, 3) + ", captured mass " +
            number(reads.captured_mass, 3) + "\n";
  }
  print_result({{"run", o.run},
                {"step", step},
                {"sample", o.sample},
                {"domain", capture.domain},
                {"layer", o.layer},
                {"head", o.head},
                {"query", query},
                {"pieces", capture.pieces},
                {"weights", reads.weights},
                {"entropy", reads.entropy},
                {"entropy_normalized", reads.entropy_normalized},
                {"outside_256", reads.outside_256},
                {"median_distance", reads.median_distance},
                {"distance_90", reads.distance_90},
                {"chosen", reads.chosen_candidates},
                {"candidate_scores", reads.candidate_scores},
                {"candidate_size", reads.candidate_size},
                {"margin", reads.margin},
                {"captured_mass", reads.captured_mass},
                {"layer_mixers", capture.layer_mixers}},
               text);
  return 0;
}

const RegisterCommand command{
    {"inspect", "Where did this query read from?", "saccade inspect runs/first --sample 1 --layer 2 --head 0 --query 100",
     [](CLI::App& app) {
       auto o = std::make_shared<Options>();
       app.add_option("RUN", o->run, "Run directory")->required();
       app.add_option("--step", o->step, "Step of the capture (default: the newest)")->check(CLI::NonNegativeNumber);
       app.add_option("--sample", o->sample, "Captured sample, from 0")->capture_default_str();
       app.add_option("--layer", o->layer, "Layer, from 0")->capture_default_str();
       app.add_option("--head", o->head, "Head, from 0")->capture_default_str();
       app.add_option("--query", o->query, "Position of the query (default: the last)")->check(CLI::NonNegativeNumber);
       app.add_option("--top", o->top, "Positions to list, the greatest weights first")
           ->check(CLI::NonNegativeNumber)
           ->capture_default_str();
       app.add_option("--csv", o->csv, "Write all weights to this file");
       auto* serve =
           app.add_flag("--serve", o->serve, "Answer requests about a checkpoint, JSON lines on stdin and stdout (docs/inspect.md)");
       app.add_option("--checkpoint", o->service.checkpoint, "Step of the checkpoint to serve (default: the newest)")
           ->needs(serve)
           ->check(CLI::PositiveNumber);
       app.add_option("--memory", o->service.memory_gib, "Most memory that serving takes, in GiB")
           ->needs(serve)
           ->check(CLI::Range(1, 1 << 20))
           ->capture_default_str();
       return [o] {
         o->service.run = o->run;
         if (!o->serve) return run(*o);
         const std::optional<OnHost> there = on_host(o->service.run);
         return there ? relay_inspection(*there, o->service.checkpoint) : serve_inspection(o->service);
       };
     }}};

}  // namespace
}  // namespace saccade::cli
