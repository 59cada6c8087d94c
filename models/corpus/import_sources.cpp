#include "models/corpus/import_sources.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/corpus_store.h"
#include "models/corpus/parquet_rows.h"

namespace saccade {
namespace fs = std::filesystem;
namespace {

/// The parts of a name between dots, without those that say only how it is stored: "web.train.jsonl.zst" → web, train.
std::vector<std::string> name_parts(const fs::path& path) {
  static const std::set<std::string> storage{"gz", "zst", "jsonl", "ndjson", "json", "csv", "tsv", "parquet", "txt", "md", "text", "rst"};
  std::string name = path.filename().string();
  std::vector<std::string> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  while (parts.size() > 1 && storage.contains(parts.back())) parts.pop_back();
  return parts;
}

std::optional<Split> split_named(const std::string& word) {
  for (Split split : {Split::train, Split::validation, Split::test})
    if (word == to_string(split)) return split;
  if (word == "valid" || word == "val") return Split::validation;
  return {};
}

bool is_json_lines(const fs::path& path) {
  const fs::path name = path.extension() == ".gz" || path.extension() == ".zst" ? path.stem() : path.filename();
  return name.extension() == ".jsonl" || name.extension() == ".ndjson" || name.extension() == ".json";
}

/// Between the values of a table, by its name; 0 for what is none.
char separator_of(const fs::path& path) {
  const fs::path name = path.extension() == ".gz" || path.extension() == ".zst" ? path.stem() : path.filename();
  return name.extension() == ".csv" ? ',' : name.extension() == ".tsv" ? '\t' : '\0';
}

/// Tables in binary forms: what is read as text of them is none. Throws DataError.
void refuse_binary(const fs::path& path) {
  if (is_parquet(path) && !reads_parquet())
    throw DataError(path.string() + ": Parquet files are not read; expected text, or JSON lines (.jsonl, also as .gz or .zst). " +
                    how_to_read_parquet(path));
  const std::string form = path.extension().string();
  if (form != ".arrow" && form != ".feather") return;
  throw DataError(
      path.string() + ": " + form.substr(1) +
      " files are not read; expected text, or JSON lines (.jsonl, also as .gz or .zst). Python turns them into that (pip install "
      "pandas pyarrow): python3 -c \"import pandas; pandas.read_feather('" +
      path.filename().string() + "').to_json('" + path.stem().string() + ".jsonl', orient='records', lines=True)\"");
}

/// A part of a larger set, "part-00001", "train-00000-of-00004" or "000_00000", names no domain.
std::string without_number(std::string name) {
  const auto is_number = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_'; };
  while (!name.empty() && (is_number(name.back()) || name.ends_with("-of"))) name.resize(name.size() - (is_number(name.back()) ? 1 : 3));
  static const std::set<std::string> generic{"part", "shard", "chunk", "data", "file", "train", "validation", "test", "example_train"};
  return generic.contains(name) ? std::string() : name;
}

std::optional<Split> find_split(const SourceFile& file, const fs::path& inside) {
  const std::vector<std::string> parts = name_parts(file.path);
  for (size_t i = 0; i < parts.size(); ++i)
    if (const auto split = split_named(parts[i]); split && (i > 0 || parts.size() == 1)) return split;
  for (const auto& folder : inside.parent_path())
    if (const auto split = split_named(folder.string())) return split;
  return {};
}

/// `inside`: the path below the source folder, or the file's name. The first folder below the source names the domain of text
/// files, the file's own name that of JSON lines, and the source folder where they say nothing.
std::string find_domain(const SourceFile& file, const fs::path& source, const fs::path& inside) {
  const std::string folder = plain_domain(fs::absolute(source).lexically_normal().filename().string().empty()
                                              ? fs::absolute(source).lexically_normal().parent_path().filename().string()
                                              : fs::absolute(source).lexically_normal().filename().string());
  std::string name;
  if (file.json_lines || source == file.path) {
    name = plain_domain(without_number(name_parts(file.path).front()));
  } else {
    for (const auto& part : inside.parent_path()) {
      if (split_named(part.string())) continue;
      name = plain_domain(part.string());
      break;
    }
  }
  if (!name.empty()) return name;
  return source == file.path || folder.empty() ? "text" : folder;
}

SourceFile describe(const fs::path& path, const fs::path& source, const fs::path& inside, bool use_file_splits) {
  refuse_binary(path);
  if (!fs::is_regular_file(path)) throw DataError(path.string() + ": is no regular file");
  const char separator = separator_of(path);
  const bool parquet = is_parquet(path);
  SourceFile file{path, is_json_lines(path) || separator || parquet, {}, {}, static_cast<int64_t>(fs::file_size(path)), separator, parquet};
  file.domain = find_domain(file, source, inside);
  if (use_file_splits) file.split = find_split(file, inside);
  return file;
}

void check_readable(const fs::path& path) {
  if (::access(path.c_str(), R_OK) != 0) throw DataError(path.string() + ": cannot read: " + std::strerror(errno));
}

bool hidden(const fs::path& inside) {
  return std::any_of(inside.begin(), inside.end(), [](const fs::path& part) { return part.string().starts_with('.'); });
}

/// Why a link in a folder is not followed; empty when it is: it leads to a file in the same folder.
std::string why_not_followed(const fs::path& link, const fs::path& folder) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  if (error) return "a link that leads nowhere";
  const fs::path inside = target.lexically_relative(fs::canonical(folder));
  if (inside.empty() || *inside.begin() == "..") return "a link out of the folder";
  return fs::is_directory(target, error) ? "a link to a folder" : "";
}

std::vector<SourceFile> files_of_folder(const fs::path& folder, bool use_file_splits, std::vector<std::string>& left_out) {
  std::vector<SourceFile> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      stop_here_if_asked();
      const fs::path inside = entry.path().lexically_relative(folder);
      if (hidden(inside)) continue;
      if (entry.is_symlink())
        if (const std::string why = why_not_followed(entry.path(), folder); !why.empty()) {
          left_out.push_back(entry.path().string() + ": left out, " + why);
          continue;
        }
      if (!entry.is_regular_file()) continue;
      check_readable(entry.path());
      files.push_back(describe(entry.path(), folder, inside, use_file_splits));
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(error.path1().string() + ": cannot read the folder: " + error.code().message());
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  const auto table = [](const auto& file) { return file.separator != 0; };
  if (!std::all_of(files.begin(), files.end(), table)) {  // text with tables among it: those are text as well
    for (SourceFile& file : files)
      if (table(file)) {
        file.json_lines = false, file.separator = 0;
        file.domain = find_domain(file, folder, file.path.lexically_relative(folder));
      }
  }
  if (std::any_of(files.begin(), files.end(), [](const auto& file) { return file.json_lines; }))
    std::erase_if(files, [](const auto& file) { return !file.json_lines; });
  if (files.empty()) throw DataError(folder.string() + ": the folder holds no file to import");
  return files;
}

}  // namespace

std::vector<SourceFile> find_sources(const std::vector<fs::path>& sources, bool use_file_splits, std::vector<std::string>& left_out) {
  if (sources.empty()) throw UsageError("nothing to import: name files or folders");
  std::vector<SourceFile> files;
  for (const fs::path& source : sources) {
    std::error_code error;
    if (!fs::exists(source, error)) throw DataError(source.string() + ": " + (error ? error.message() : "there is no such file or folder"));
    check_readable(source);
    if (fs::is_directory(source)) {
      const auto found = files_of_folder(source, use_file_splits, left_out);
      files.insert(files.end(), found.begin(), found.end());
    } else {
      files.push_back(describe(source, source, source.filename(), use_file_splits));
    }
  }
  return files;
}

}  // namespace saccade
