#pragma once
#include <string>

/// Times the ops around the recurrences on the first GPU in bf16 at the sizes of 110 M models and prints what they read and write a
/// second. Every op is waited for: some 10 µs of each are that.
void stateful_parts_bench(const std::string& only);
