#pragma once
#include <cstdint>
#include <vector>

#include "kernels/engine/random.h"

namespace saccade {

/// A matrix [rows, columns], row-major, whose columns are orthonormal (its rows when it is wide), uniform over all such: Q of a
/// Householder QR of standard normals, signed so that R's diagonal is positive (Mezzadri 2007, arXiv:math-ph/0609050). In blocks, so
/// that nearly all work is matrix products.
std::vector<double> orthogonal_matrix(const Random& random, int64_t rows, int64_t columns);

}  // namespace saccade
