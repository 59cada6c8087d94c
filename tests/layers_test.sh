#!/bin/sh
# Rooms may include only rooms to their right: app > ui > analysis > models > kernels. Qt stands in ui and app/workbench only, HDF5 in
# analysis/runs, CUDA in kernels. Folders do not include each other in circles (circles_test.py).
# Sources are cited by arXiv number and section, never by the names of pages that the project does not have.
cited="app ui analysis models kernels resources docs tests README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md"
cd "$1" || exit 2
fail=0
deny() {
  found=$(grep -rnE "$2" "$1" --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh')
  [ -z "$found" ] || { echo "$found"; fail=1; }
}
deny kernels '#include "(app|ui|analysis|models)/'
# In kernels/: cuda > ops > cpu > engine. A CUDA body is declared beside its op and defined in kernels/cuda, which nobody includes.
deny kernels/engine '#include "kernels/(cpu|ops|cuda)/'
deny kernels/cpu '#include "kernels/(ops|cuda)/'
deny kernels/ops '#include "kernels/cuda/'
deny kernels/ops '^[[:space:]]*#[[:space:]]*(if|elif).*SACCADE_(CUDA|CUDNN)'
# The device branch of an op stands in its one door, kernels/ops/X/X.cpp.
for room in kernels/cpu kernels/cuda models analysis ui app; do deny $room 'targets_cuda\('; done
for file in kernels/ops/*/cpu_*; do deny "$file" 'targets_cuda\(|is_cuda\('; done
deny models '#include "(app|ui|analysis)/'
deny analysis '#include "(app|ui)/'
deny ui '#include "app/'
for room in kernels models analysis app/cli; do deny $room '#include <Q[A-Z]'; done
for room in kernels models ui app; do deny $room '#include <(hdf5|H5)'; done
for room in models analysis ui app; do
  deny $room '#include ("kernels/cuda/|<(cuda|cudnn|cublas|nvml))'
  deny $room '^[[:space:]]*#[[:space:]]*(if|elif).*SACCADE_(CUDA|CUDNN)'
done
for folder in models ui app $(ls -d analysis/*/ | grep -v '^analysis/runs/$'); do deny "$folder" '#include "analysis/runs/hdf5\.h"|h5::'; done
deny ui 'cuda::|#include "kernels/engine/(captured_graph|cuda_)'
# What threads of the window hand to each other goes through one place, which tells ThreadSanitizer (ui/threads/hand_over.h).
found=$(grep -rnE 'waitForDone\(|[Pp]ool(_|\(\)|Instance\(\))?(\.|->)start\(|QMetaObject::invokeMethod\($' ui --include='*.h' --include='*.cpp' |
  grep -v '^ui/threads/hand_over.h:')
[ -z "$found" ] || { echo "$found"; fail=1; }
# Numbers in JSON are converted with a look at them.
for room in models analysis ui app tests; do
  found=$(grep -rn '#include <nlohmann/json.hpp>' $room --include='*.h' --include='*.cpp' | grep -v '^models/json.h:')
  [ -z "$found" ] || { echo "$found"; echo "include models/json.h"; fail=1; }
done
# Network file systems (docs/cluster.md): locks are asked for where their absence is an answer, nothing maps files but the reader of corpora
# and token stores, which are never written in place, and no database lies on a disk.
for room in kernels models analysis ui app; do
  found=$(grep -rnE '\b(flock|lockf|mmap)\(|F_(OFD_)?SETLK' $room --include='*.h' --include='*.cpp' |
    grep -vE '^(models/corpus/(file_mark|disk)\.cpp|analysis/runs/run_lock\.cpp|kernels/engine/arena\.cpp|kernels/cuda/runtime/host_copies\.cpp):')
  [ -z "$found" ] || { echo "$found"; fail=1; }
  deny $room '[Ss][Qq][Ll]ite|QSql|lmdb'
done
# shellcheck disable=SC2086  # the list is cut into words
found=$(grep -rnIE 'specification [0-9]|architecture page|\b(BC|AV) [A-Z0-9]' $cited --exclude=layers_test.sh --exclude-dir=data)
[ -z "$found" ] || { echo "$found"; echo "cite an arXiv number and section"; fail=1; }
[ $fail -eq 0 ] && echo "every include points down, every citation can be followed"
tests/circles_test.py --self-test || fail=1
tests/circles_test.py . || fail=1
exit $fail
