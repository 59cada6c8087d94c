#include "models/corpus/parquet_rows.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "models/json.h"

#ifdef SACCADE_PARQUET
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include "kernels/engine/interruption.h"
#endif

namespace saccade {
namespace fs = std::filesystem;

bool is_parquet(const fs::path& file) { return file.extension() == ".parquet"; }

std::string how_to_read_parquet(const fs::path& file) {
  return "Parquet is read where Saccade was built with Apache Arrow's C++ library, version 21 or newer, which is in no Debian release "
         "(arrow.apache.org/install, packages libarrow-dev and libparquet-dev; then cmake again). Or Python makes JSON lines of it (pip "
         "install pandas pyarrow): python3 -c \"import pandas; pandas.read_parquet('" +
         file.filename().string() + "').to_json('" + file.stem().string() + ".jsonl', orient='records', lines=True)\"";
}

#ifdef SACCADE_PARQUET
namespace {

using Json = nlohmann::json;

constexpr int64_t kBatch = 512;  // rows that are held as values at once

template <class Array>
Json element(const arrow::Array& array, int64_t i) {
  return static_cast<const Array&>(array).Value(i);
}
template <class Array>
Json text(const arrow::Array& array, int64_t i) {
  return std::string(static_cast<const Array&>(array).GetView(i));
}

Json value_of(const arrow::Array& array, int64_t i);

template <class Array>
Json list(const arrow::Array& array, int64_t i) {
  const auto& lists = static_cast<const Array&>(array);
  Json values = Json::array();
  const int64_t begin = lists.value_offset(i), count = lists.value_length(i);
  for (int64_t k = 0; k < count; ++k) values.push_back(value_of(*lists.values(), begin + k));
  return values;
}

Json structure(const arrow::Array& array, int64_t i) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  Json object = Json::object();
  for (int k = 0; k < fields.num_fields(); ++k) object[fields.struct_type()->field(k)->name()] = value_of(*fields.field(k), i);
  return object;
}

Json value_of(const arrow::Array& array, int64_t i) {
  using arrow::Type;
  if (array.IsNull(i)) return nullptr;
  switch (array.type_id()) {
    case Type::STRING:
    case Type::BINARY: return text<arrow::BinaryArray>(array, i);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY: return text<arrow::LargeBinaryArray>(array, i);
    case Type::BOOL: return element<arrow::BooleanArray>(array, i);
    case Type::INT8: return element<arrow::Int8Array>(array, i);
    case Type::INT16: return element<arrow::Int16Array>(array, i);
    case Type::INT32: return element<arrow::Int32Array>(array, i);
    case Type::INT64: return element<arrow::Int64Array>(array, i);
    case Type::UINT8: return element<arrow::UInt8Array>(array, i);
    case Type::UINT16: return element<arrow::UInt16Array>(array, i);
    case Type::UINT32: return element<arrow::UInt32Array>(array, i);
    case Type::UINT64: return element<arrow::UInt64Array>(array, i);
    case Type::FLOAT: return element<arrow::FloatArray>(array, i);
    case Type::DOUBLE: return element<arrow::DoubleArray>(array, i);
    case Type::LIST: return list<arrow::ListArray>(array, i);
    case Type::LARGE_LIST: return list<arrow::LargeListArray>(array, i);
    case Type::FIXED_SIZE_LIST: return list<arrow::FixedSizeListArray>(array, i);
    case Type::STRUCT: return structure(array, i);
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return value_of(*coded.dictionary(), coded.GetValueIndex(i));
    }
    default: {
      const auto scalar = array.GetScalar(i);
      if (!scalar.ok()) throw parquet::ParquetException(scalar.status().ToString());
      return (*scalar)->ToString();
    }
  }
}

template <class T>
T must(arrow::Result<T> result) {
  if (!result.ok()) throw parquet::ParquetException(result.status().ToString());
  return std::move(result).ValueUnsafe();
}
void must(const arrow::Status& status) {
  if (!status.ok()) throw parquet::ParquetException(status.ToString());
}

std::unique_ptr<parquet::arrow::FileReader> open(const fs::path& file) {
  auto source = must(arrow::io::ReadableFile::Open(file.string()));
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties values(/*use_threads=*/false);
  values.set_batch_size(kBatch);
  values.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  must(builder.Open(source, properties));
  builder.properties(values);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  must(builder.Build(&reader));
  return reader;
}

/// The leaves below the outermost columns of these names, the first of which there must be.
std::vector<int> leaves_of(const parquet::SchemaDescriptor& schema, const std::vector<std::string>& columns, const fs::path& file) {
  std::vector<int> leaves;
  std::string names;
  bool has_first = columns.empty();
  for (int i = 0; i < schema.num_columns(); ++i) {
    const std::string name = schema.GetColumnRoot(i)->name();
    if (i == 0 || name != schema.GetColumnRoot(i - 1)->name()) names += (names.empty() ? "" : ", ") + name;
    has_first |= !columns.empty() && name == columns.front();
    if (columns.empty() || std::find(columns.begin(), columns.end(), name) != columns.end()) leaves.push_back(i);
  }
  if (!has_first) throw DataError(file.string() + ": it has no column \"" + columns.front() + "\", but " + names.substr(0, 400));
  return leaves;
}

void hand_over(const arrow::RecordBatch& batch, int64_t rows_before, DocumentVisitor& visitor) {
  for (int64_t i = 0; i < batch.num_rows(); ++i) {
    Json row = Json::object();
    for (int k = 0; k < batch.num_columns(); ++k) row[batch.column_name(k)] = value_of(*batch.column(k), i);
    std::string line;
    try {
      line = row.dump();
    } catch (const Json::type_error&) {
      visitor.malformed(rows_before + i + 1, "a text that is no valid UTF-8");
      continue;
    }
    if (line.size() > kLongestLine)
      visitor.too_long(rows_before + i + 1);
    else
      visitor.piece(line, rows_before + i + 1);
  }
}

void read_rows(const fs::path& file, const std::vector<std::string>& columns, DocumentVisitor& visitor) {
  const auto reader = open(file);
  const auto metadata = reader->parquet_reader()->metadata();
  const std::vector<int> leaves = leaves_of(*metadata->schema(), columns, file);
  const auto bytes = static_cast<double>(fs::file_size(file));
  int64_t rows = 0;
  for (int group = 0; group < metadata->num_row_groups(); ++group) {
    const auto batches = must(reader->GetRecordBatchReader({group}, leaves));
    for (std::shared_ptr<arrow::RecordBatch> batch = must(batches->Next()); batch; batch = must(batches->Next())) {
      stop_here_if_asked();
      must(batch->Validate());
      hand_over(*batch, rows, visitor);
      rows += batch->num_rows();
      visitor.progress(static_cast<int64_t>(bytes * static_cast<double>(rows) / static_cast<double>(metadata->num_rows())));
    }
  }
  if (rows != metadata->num_rows())
    throw DataError(file.string() + ": it says that it has " + std::to_string(metadata->num_rows()) + " rows, but holds " +
                    std::to_string(rows));
}

}  // namespace

bool reads_parquet() { return true; }

void read_parquet_rows(const fs::path& file, const std::vector<std::string>& columns, DocumentVisitor& visitor) {
  try {
    read_rows(file, columns, visitor);
  } catch (const parquet::ParquetException& error) {
    std::string what = error.what();
    throw DataError(file.string() + ": no usable Parquet file: " + what.substr(0, what.find('\n')).substr(0, 200));
  }
}

#else
bool reads_parquet() { return false; }

void read_parquet_rows(const fs::path& file, const std::vector<std::string>&, DocumentVisitor&) {
  throw DataError(file.string() + ": this program was built without a reader of Parquet. " + how_to_read_parquet(file));
}
#endif

}  // namespace saccade
