// How a report is written: Markdown, CSV, LaTeX and one static page.
#include <algorithm>
#include <cmath>

#include "analysis/figures/csv_text.h"
#include "analysis/figures/page.h"
#include "analysis/runs/files.h"
#include "analysis/studies/report/report.h"
#include "kernels/engine/error.h"
#include "models/replaced.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + replaced(cell, "|", "\\|") + " |";
  return text + "\n";
}

std::vector<std::string> texts(const std::vector<ReportEntry>& row) {
  std::vector<std::string> list;
  for (const ReportEntry& entry : row) list.push_back(entry.text);
  return list;
}

std::string markdown(const ReportTable& table) {
  std::string text = "## " + table.title + "\n\n" + markdown_row(table.header) + "|";
  for (size_t i = 0; i < table.header.size(); ++i) text += i == 0 ? "---|" : "--:|";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_row(texts(row));
  text += "\n";
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

/// Text as XML and HTML take it.
std::string escaped_markup(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

/// An entry a line, so that every number has its sources.
std::string csv(const ReportTable& table) {
  std::string text = "row,column,text,value,sources,line,seeds,deviation,half_95\n";
  const auto number = [](std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value).dump() : ""; };
  size_t line = 0;
  for (const auto& row : table.rows) {
    ++line;  // a row's name may stand in several
    for (size_t i = 1; i < row.size(); ++i) {
      const Repeated r = row[i].repeated.value_or(Repeated{});
      text += csv_field(row.front().text) + "," + csv_field(table.header[i]) + "," + csv_field(row[i].text) + "," + number(row[i].value) +
              "," + csv_field(joined(row[i].sources, "; ")) + "," + std::to_string(line) + "," +
              (row[i].repeated ? std::to_string(r.count) : "") + "," + number(r.deviation) + "," + number(r.half_95) + "\n";
    }
  }
  return text;
}

std::string latex(const ReportTable& table) {
  std::vector<std::string> sources;
  PageTable plain{table.title, table.header, {}, table.notes};
  for (const auto& row : table.rows) {
    plain.rows.push_back(texts(row));
    for (size_t i = 1; i < row.size(); ++i)
      if (!row[i].sources.empty()) sources.push_back(row.front().text + ", " + table.header[i] + ": " + joined(row[i].sources, "; "));
  }
  return latex_table(plain, sources);
}

std::string html(const ReportTable& table) {
  std::string text = "<h2>" + escaped_markup(table.title) + "</h2>\n<table>\n<tr>";
  for (const std::string& head : table.header) text += "<th>" + escaped_markup(head) + "</th>";
  text += "</tr>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const ReportEntry& entry : row) {
      const std::string title = entry.sources.empty() ? "" : " title=\"" + escaped_markup(joined(entry.sources, "\n")) + "\"";
      text += "<td" + title + ">" + escaped_markup(entry.text) + "</td>";
    }
    text += "</tr>\n";
  }
  text += "</table>\n";
  for (const std::string& note : table.notes) text += "<p class=\"note\">" + escaped_markup(note) + "</p>\n";
  return text;
}

std::string runs_html(const Json& runs) {
  std::string text = "<details><summary>Runs (" + std::to_string(runs.size()) + ")</summary>\n<table>\n";
  for (const Json& run : runs) {
    text += "<tr>";
    for (const char* key : {"folder", "state", "step", "seed", "code_version", "device", "precision", "identity"}) {
      const Json value = run.value(key, Json(""));
      text += "<td>" + escaped_markup(value.is_string() ? value.get<std::string>() : value.dump()) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</table></details>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}table{border-collapse:collapse;margin:.6em 0}"
    "td,th{border-bottom:1px solid #ddd;padding:.25em .7em;text-align:right}td:first-child,th:first-child{text-align:left}"
    ".note{color:#555;font-size:90%;margin:.2em 0}.remark{background:#fff6dd;padding:.4em .8em;margin:.3em 0}"
    "svg{max-width:100%;height:auto}td[title]{text-decoration:underline dotted #aaa}";

/// A figure of a paper: its picture, its tables, and what it is of.
std::string html(const FigurePage& page, const std::string& picture) {
  std::string text = "<h2>" + escaped_markup(page.title) + "</h2>\n" + picture;
  for (const PageTable& plain : page.tables) {
    ReportTable table{page.id, plain.title, plain.header, {}, plain.notes};
    for (const auto& row : plain.rows) {
      table.rows.emplace_back();
      for (const std::string& cell : row) table.rows.back().push_back({cell});
    }
    text += html(table);
  }
  return text + "<p class=\"note\">" + escaped_markup(page.caption) + "</p>\n";
}

/// `pictures`: of the figures, then of the pages.
std::string page(const StudyReport& report, const std::vector<std::string>& pictures) {
  std::string text = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped_markup(report.name) +
                     "</title><style>" + kStyle + "</style></head><body>\n<h1>" + escaped_markup(report.question) + "</h1>\n<p>Study " +
                     escaped_markup(report.name) + (report.source.empty() ? "" : ", " + escaped_markup(report.source)) +
                     ". Point at a number to see the runs, steps and split that it comes from.</p>\n";
  for (const std::string& remark : report.remarks) text += "<p class=\"remark\">" + escaped_markup(remark) + "</p>\n";
  for (const ReportTable& table : report.tables) text += html(table);
  for (size_t i = 0; i < report.figures.size(); ++i) text += "<h2>" + escaped_markup(report.figures[i].title) + "</h2>\n" + pictures[i];
  for (size_t i = 0; i < report.pages.size(); ++i) text += html(report.pages[i].page, pictures[report.figures.size() + i]);
  return text + runs_html(report.runs) + "</body></html>\n";
}

}  // namespace

std::string to_markdown(const StudyReport& report) {
  std::string text = "# " + report.question + "\n\nStudy " + report.name + (report.source.empty() ? "" : ", " + report.source) + ".\n\n";
  for (const std::string& remark : report.remarks) text += "- " + remark + "\n";
  for (const ReportTable& table : report.tables) text += "\n" + markdown(table);
  return text;
}

Json to_json(const StudyReport& report) {
  Json tables = Json::array();
  for (const ReportTable& table : report.tables) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
      Json entries = Json::array();
      for (const ReportEntry& e : row)
        entries.push_back({{"text", e.text}, {"value", std::isfinite(e.value) ? Json(e.value) : Json()}, {"sources", e.sources}});
      rows.push_back(std::move(entries));
    }
    tables.push_back({{"id", table.id}, {"title", table.title}, {"header", table.header}, {"rows", rows}, {"notes", table.notes}});
  }
  return {{"name", report.name},       {"question", report.question},
          {"source", report.source},   {"directory", report.directory},
          {"remarks", report.remarks}, {"tables", tables},
          {"runs", report.runs}};
}

namespace {

bool is_picture(const std::string& format) { return format == "svg" || format == "pdf" || format == "png"; }

/// Writes a report's files, and keeps their list.
class Writer {
 public:
  explicit Writer(const fs::path& folder) : folder_(folder) {}

  void write(const std::string& name, const std::string& text) {
    written.files.push_back(folder_ / name);
    replace_text(written.files.back(), text);
  }

  /// `draw` writes the file of that name. What the page shows: the picture, or why there is none.
  template <class Draw>
  std::string picture(const std::string& name, Draw draw) {
    try {
      draw(folder_ / name);
    } catch (const Error& failure) {
      if (written.not_drawn.empty()) written.not_drawn = failure.what();
      return "<p class=\"remark\">Not drawn: " + escaped_markup(failure.what()) + "</p>\n";
    }
    written.files.push_back(folder_ / name);
    if (!name.ends_with(".svg")) return {};
    const std::string svg = read_text(written.files.back());
    return svg.substr(std::min(svg.find("<svg"), svg.size()));
  }

  WrittenReport written;

 private:
  const fs::path& folder_;
};

}  // namespace

WrittenReport write_report(const StudyReport& report, const fs::path& folder,
                           const std::function<void(const Figure&, const fs::path&)>& draw,
                           const std::function<void(const FigurePage&, const fs::path&)>& draw_page) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DataError("cannot create " + folder.string() + ": " + error.message());
  const std::string nothing = "<p class=\"remark\">Not drawn: nothing that draws them</p>\n";
  Writer writer(folder);
  writer.write("report.md", to_markdown(report));
  for (const ReportTable& table : report.tables) writer.write(table.id + ".csv", csv(table)), writer.write(table.id + ".tex", latex(table));
  std::vector<std::string> pictures;
  for (const Figure& figure : report.figures) {
    writer.write(figure.id + ".figure.csv", to_csv(figure));
    pictures.push_back(draw ? writer.picture(figure.id + ".svg", [&](const fs::path& file) { draw(figure, file); }) : nothing);
  }
  for (const ReportPage& made : report.pages) {
    const FigurePage& drawn_page = made.page;
    writer.write(drawn_page.id + ".csv", to_csv(drawn_page));
    const auto drawn = [&](const std::string& format) {
      return writer.picture(drawn_page.id + "." + format, [&](const fs::path& file) { draw_page(drawn_page, file); });
    };
    pictures.push_back(drawn_page.panels.empty() ? "" : draw_page ? drawn("svg") : nothing);
    for (const std::string& format : made.formats)
      if (draw_page && format != "csv" && format != "svg" && (!is_picture(format) || !drawn_page.panels.empty())) drawn(format);
  }
  writer.write("report.html", page(report, pictures));
  return std::move(writer.written);
}

}  // namespace saccade
