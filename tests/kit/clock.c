/* A clock for one process tree: the file $CLOCK holds how far the wall clock and the time since the machine's start are
   from the real ones, in nanoseconds, and where the wall clock stands if it is not 0. The monotonic clock stays real. */

struct moment { long seconds, rest; };
struct places { long wall, uptime, stands; };

#if defined(__aarch64__)
enum { OPENAT = 56, CLOSE = 57, READ = 63, CLOCK_GETTIME = 113 };
#else
enum { OPENAT = 257, CLOSE = 3, READ = 0, CLOCK_GETTIME = 228 };
#endif

long syscall(long number, ...);
char *getenv(const char *name);
int *__errno_location(void);

static struct places told(void) {
    struct places found = {0, 0, 0}, none = {0, 0, 0};
    int before = *__errno_location();
    char *path = getenv("CLOCK");
    long file = path ? syscall(OPENAT, -100L, path, 02000000L) : -1;
    if (file >= 0) {
        if (syscall(READ, file, &found, sizeof found) != sizeof found) found = none;
        syscall(CLOSE, file);
    }
    *__errno_location() = before;
    return found;
}

static void put(struct moment *at, long nanoseconds) {
    at->seconds = nanoseconds / 1000000000, at->rest = nanoseconds % 1000000000;
    if (at->rest < 0) at->rest += 1000000000, at->seconds--;
}

int clock_gettime(int which, struct moment *at) {
    int problem = syscall(CLOCK_GETTIME, (long)which, at);
    if (!problem && (which == 0 || which == 5 || which == 7)) {
        struct places now = told();
        long real = at->seconds * 1000000000 + at->rest;
        put(at, which == 7 ? real + now.uptime : now.stands ? now.stands : real + now.wall);
    }
    return problem;
}

int gettimeofday(struct moment *at, void *zone) {
    int problem = clock_gettime(0, at);
    at->rest /= 1000;
    return problem;
}

long time(long *at) {
    struct moment now;
    clock_gettime(0, &now);
    if (at) *at = now.seconds;
    return now.seconds;
}
