// For programs with ThreadSanitizer. Qt starts processes by clone with CLONE_VM and CLONE_VFORK: until it executes its program the child
// lives in the memory of its parent. The sanitizer's own clone takes that child for a fork, and tells it, in this shared memory, to see
// neither accesses nor synchronisation any more; so the thread that started a process would be blind from then on, and all that it hands
// over afterwards look like a race. A program's own clone comes before the sanitizer's.
#include <sched.h>
#include <sys/types.h>

#include <cstdarg>

extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

extern "C" int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) {
  va_list more;
  va_start(more, argument);
  auto* parent = va_arg(more, pid_t*);
  void* storage = va_arg(more, void*);
  auto* child = va_arg(more, pid_t*);
  va_end(more);
  return __clone(function, stack, flags, argument, parent, storage, child);
}
