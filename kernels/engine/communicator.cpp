#include "kernels/engine/communicator.h"

namespace saccade {

void Communicator::all_gather(Device device, const Parts& parts) {
  const auto mine = static_cast<size_t>(rank_);
  Parts receive = parts;
  receive[mine].clear();
  all_to_all(device, Parts(parts.size(), parts[mine]), receive);
}

}  // namespace saccade
