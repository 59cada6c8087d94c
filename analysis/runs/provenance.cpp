#include "analysis/runs/provenance.h"

#include <hdf5.h>

#include <Eigen/Core>
#include <string>

#include "kernels/engine/device.h"

namespace saccade {

nlohmann::json library_versions() {
  unsigned major = 0, minor = 0, release = 0;
  H5dont_atexit();  // before the library's first call, whichever that is: hdf5.cpp says why
  H5get_libversion(&major, &minor, &release);
  const auto dotted = [](unsigned a, unsigned b, unsigned c) {
    return std::to_string(a) + "." + std::to_string(b) + "." + std::to_string(c);
  };
  const std::string cudnn = cudnn_version();  // with it, attention on a GPU rounds otherwise than without
  return {{"saccade", std::string(SACCADE_VERSION) + (sizeof(SACCADE_COMMIT) > 1 ? " (" SACCADE_COMMIT ")" : "")},
          {"HDF5", dotted(major, minor, release)},
          {"Eigen", dotted(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
          {"cuDNN", cudnn.empty() ? "none" : cudnn},
          {"compiler", __VERSION__}};
}

}  // namespace saccade
