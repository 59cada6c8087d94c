#pragma once
#include "analysis/launchers/launcher.h"

namespace saccade {

/// The queues of the study's devices on this machine (analysis/studies/study_queues.h).
class LocalLauncher : public Launcher {
 public:
  LocalLauncher(std::filesystem::path study, std::filesystem::path program);
  std::string place() const override;
  LauncherAbilities abilities() const override { return {}; }
  Launched go_on() override;
  std::vector<LaunchedJob> jobs() override;
  Stopped stop() override;

 private:
  std::filesystem::path study_, program_;
};

}  // namespace saccade
