#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/figures/page.h"

namespace saccade {

/// A table as a paper prints it (resources/published/*.json): numbers by name, with the settings that a row is of. Scores of tasks are in
/// per cent, under the names of resources/tasks.
struct PublishedTable {
  struct Row {
    std::string name;                        ///< "tail 50 %"
    std::string curve;                       ///< rows of one name here are told apart by settings alone; may be empty
    std::string architecture;                ///< gives the hue; empty: grey
    std::map<std::string, double> settings;  ///< architecture.tail → 0.5
    std::vector<double> values;              ///< one for each column
  };
  std::string source;  ///< "arXiv:2506.11305, table 6"
  std::string title, note;
  std::vector<std::string> columns;  ///< perplexity, arc-easy, mean …
  std::vector<Row> rows;
};

/// Those that come with the program.
std::vector<std::string> published_tables();
/// Of the text of one file; `origin` names it in errors. Throws DataError.
PublishedTable parse_published(const std::string& text, const std::string& origin);
/// By its name, or a file of the same form (a path with a slash or .json). `rows`: only those of these names; empty: all. Throws UsageError
/// that suggests a name or a row, DataError for a file that is no such table.
PublishedTable load_published(const std::string& name_or_file, const std::vector<std::string>& rows = {});

/// Hollow markers at the rows that have both numbers, a setting or a column each: beside a chart of `value` by `against`.
void add_published_numbers(Figure& figure, const PublishedTable& table, const std::string& value, const std::string& against);
/// Hollow markers at the tasks that the figure's x axis names; scores of the figure are shares.
void add_published_scores(Figure& figure, const PublishedTable& table);
/// The table as printed, under its source.
PageTable published_page_table(const PublishedTable& table);
/// Whether a curve is one of those above: no result of this program.
bool is_published(const Curve& curve);

}  // namespace saccade
