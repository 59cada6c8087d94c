#pragma once
#include <string>

/// Times attention, Top-1 Element and Top-1 Chunk on the first GPU in bf16 (medians) and prints a table.
int attention_bench(const std::string& only);
