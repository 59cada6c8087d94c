#pragma once
#include "analysis/tasks/task_items.h"

namespace saccade {

/// MMLU as its authors publish it (arXiv:2009.03300): a file for each subject, SUBJECT_test.csv and SUBJECT_dev.csv, without a header; a
/// row is question, four choices and the letter of the right one.

/// The files of a split ("test", "dev"), sorted: those of the folder `data`, of its folder named as the split, or of that beside it where
/// `data` itself is named "test". Where `data` is one SUBJECT_test.csv, that subject's alone. Empty: there are none.
std::vector<std::filesystem::path> find_mmlu_csv(const std::filesystem::path& data, const std::string& split);

/// Rows of all files with the fields of the JSON form: question, choices (4 texts), answer (0 … 3), subject. Throws DataError with file and
/// row, also where all files together hold more than kMostTaskRows or kLargestTaskData.
std::vector<TaskRow> read_mmlu_csv(const std::vector<std::filesystem::path>& files);

}  // namespace saccade
