#!/bin/sh
# Rooms may include only rooms to their right: app > ui > analysis > models > kernels. Qt stands in ui and app/workbench only.
cd "$1" || exit 2
fail=0
deny() {
  found=$(grep -rnE "$2" "$1" --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh')
  [ -z "$found" ] || { echo "$found"; fail=1; }
}
deny kernels '#include "(app|ui|analysis|models)/'
deny models '#include "(app|ui|analysis)/'
deny analysis '#include "(app|ui)/'
deny ui '#include "app/'
for room in kernels models analysis app/cli; do deny $room '#include <Q[A-Z]'; done
for room in kernels models ui app; do deny $room '#include <(hdf5|H5)'; done
[ $fail -eq 0 ] && echo "every include points down"
exit $fail
