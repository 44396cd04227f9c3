/* Preloaded into rooda: counts its calls on files below some folders, and at one of them signals the caller or fails.

FAULTS_ROOTS  folders, with colons between them; the work's own .rooda and public folders
FAULTS_AT     the number of the call, from 1; 0: none, only count
FAULTS_NAME, FAULTS_PART   count just the calls of this name on paths with this part
FAULTS_DO     KILL, TERM, or the number of an error that the call gives
FAULTS_ONCE   a file: whoever creates it meets the fault, and no other process
FAULTS_LOG    each call is noted here: number, pid, name, path
FAULTS_PROGRAM   the word that the command line of a process must have; rooda without it
FAULTS_TURNS, FAULTS_TURN   a file in which such processes count themselves, and the only one that meets the fault;
              then its place in the order is noted in place of the pid

Only the process that carries the word rooda in its command line is looked at, with whatever it forks; git, agents and
shells are not: they begin with an exec. The count is shared by all processes of one start. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int *count, at, act, turn, note = -1;
static char roots[4096];
static const char *only, *part;

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int is_ours(const char *program) {
    char line[4096];
    int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : syscall(SYS_read, file, line, sizeof line - 1);
    syscall(SYS_close, file);
    for (ssize_t from = 0; from < size; from += strlen(line + from) + 1) {
        line[size] = 0;
        const char *last = strrchr(line + from, '/');
        if (!strcmp(line + from, program) || (last && !strcmp(last + 1, program))) return 1;
    }
    return 0;
}

/* The place of this process in the order of all that look into the same file, from 1. */
static int place_in(const char *turns) {
    int file = syscall(SYS_openat, AT_FDCWD, turns, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    syscall(SYS_write, file, ".", 1);
    int place = (int)syscall(SYS_lseek, file, 0, SEEK_CUR);
    syscall(SYS_close, file);
    return place;
}

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("FAULTS_LOG"), *where = getenv("FAULTS_ROOTS"), *number = getenv("FAULTS_AT");
    const char *what = getenv("FAULTS_DO");
    const char *program = getenv("FAULTS_PROGRAM"), *turns = getenv("FAULTS_TURNS"), *chosen = getenv("FAULTS_TURN");
    if (!log || !where || !is_ours(program ? program : "rooda")) return;
    snprintf(roots, sizeof roots, "%s", where);
    at = number ? atoi(number) : 0;
    if (turns && (turn = place_in(turns)) != atoi(chosen)) at = 0;
    act = !what || !strcmp(what, "KILL") ? -SIGKILL : !strcmp(what, "TERM") ? -SIGTERM : atoi(what);
    note = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (note >= 0) { /* out of the way of everybody's descriptors */
        int high = fcntl(note, F_DUPFD_CLOEXEC, 900);
        syscall(SYS_close, note);
        note = high;
    }
    only = getenv("FAULTS_NAME");
    part = getenv("FAULTS_PART");
    count = mmap(0, 2 * sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int inside(const char *path) {
    char all[sizeof roots];
    strcpy(all, roots);
    for (char *root = strtok(all, ":"); root; root = strtok(0, ":")) {
        size_t size = strlen(root);
        if (!strncmp(path, root, size) && (path[size] == '/' || !path[size])) return 1;
    }
    return 0;
}

/* 1: this call fails, errno is set. A path is absolute or seen from the folder `base`. */
static int met(const char *name, int base, const char *path) {
    char where[4096], link[64];
    if (note < 0 || !path) return 0;
    int before = errno;
    if (path[0] == '/') snprintf(where, sizeof where, "%s", path);
    else {
        if (base == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", base);
        ssize_t size = readlink(link, where, sizeof where - 1);
        where[size < 0 ? 0 : size] = 0;
        snprintf(where + strlen(where), sizeof where - strlen(where), "%s%s", path[0] ? "/" : "", path);
    }
    errno = before;
    if (!inside(where)) return 0;
    int number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    char line[4400];
    int size = snprintf(line, sizeof line, "%d %d %s %s\n", number, turn ? turn : (int)getpid(), name, where);
    syscall(SYS_write, note, line, size);
    if (only && part) { /* counted by themselves: load moves the others */
        if (strcmp(name, only) || !strstr(where, part)) return 0;
        number = __atomic_add_fetch(count + 1, 1, __ATOMIC_SEQ_CST);
    }
    if (number != at) return 0;
    const char *once = getenv("FAULTS_ONCE"); /* the other processes of one start count by themselves */
    if (once) {
        int mark = syscall(SYS_openat, AT_FDCWD, once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (mark < 0) return 0;
        syscall(SYS_close, mark);
    }
    if (act == -SIGKILL) { kill(getpid(), SIGKILL); for (;;) pause(); }
    if (act < 0) { kill(getpid(), -act); return 0; }
    errno = act;
    return 1;
}

static int met_open(const char *name, int descriptor) { return met(name, descriptor, ""); }

#define OPENING(flags) ((flags) & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC) ? "open-to-write" : "open")
#define MODE(flags) int mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); }

int open(const char *path, int flags, ...) { MODE(flags) REAL(open); return met(OPENING(flags), AT_FDCWD, path) ? -1 : real(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) REAL(open64); return met(OPENING(flags), AT_FDCWD, path) ? -1 : real(path, flags, mode); }
int openat(int base, const char *path, int flags, ...) { MODE(flags) REAL(openat); return met(OPENING(flags), base, path) ? -1 : real(base, path, flags, mode); }
int openat64(int base, const char *path, int flags, ...) { MODE(flags) REAL(openat64); return met(OPENING(flags), base, path) ? -1 : real(base, path, flags, mode); }
DIR *opendir(const char *path) { REAL(opendir); return met("list", AT_FDCWD, path) ? 0 : real(path); }
ssize_t write(int file, const void *data, size_t size) { REAL(write); return met_open("write", file) ? -1 : real(file, data, size); }
ssize_t pwrite(int file, const void *data, size_t size, off_t from) { REAL(pwrite); return met_open("pwrite", file) ? -1 : real(file, data, size, from); }
ssize_t pwrite64(int file, const void *data, size_t size, off_t from) { REAL(pwrite64); return met_open("pwrite", file) ? -1 : real(file, data, size, from); }
int fsync(int file) { REAL(fsync); return met_open("fsync", file) ? -1 : real(file); }
int fdatasync(int file) { REAL(fdatasync); return met_open("fdatasync", file) ? -1 : real(file); }
int ftruncate(int file, off_t size) { REAL(ftruncate); return met_open("ftruncate", file) ? -1 : real(file, size); }
int ftruncate64(int file, off_t size) { REAL(ftruncate64); return met_open("ftruncate", file) ? -1 : real(file, size); }
int truncate(const char *path, off_t size) { REAL(truncate); return met("truncate", AT_FDCWD, path) ? -1 : real(path, size); }
int truncate64(const char *path, off_t size) { REAL(truncate64); return met("truncate", AT_FDCWD, path) ? -1 : real(path, size); }
int rename(const char *old, const char *new) { REAL(rename); return met("rename", AT_FDCWD, new) ? -1 : real(old, new); }
int renameat(int from, const char *old, int to, const char *new) { REAL(renameat); return met("rename", to, new) ? -1 : real(from, old, to, new); }
int unlink(const char *path) { REAL(unlink); return met("unlink", AT_FDCWD, path) ? -1 : real(path); }
int unlinkat(int base, const char *path, int flags) { REAL(unlinkat); return met("unlink", base, path) ? -1 : real(base, path, flags); }
int rmdir(const char *path) { REAL(rmdir); return met("rmdir", AT_FDCWD, path) ? -1 : real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return met("mkdir", AT_FDCWD, path) ? -1 : real(path, mode); }
int mkdirat(int base, const char *path, mode_t mode) { REAL(mkdirat); return met("mkdir", base, path) ? -1 : real(base, path, mode); }
int flock(int file, int how) { REAL(flock); return met_open("flock", file) ? -1 : real(file, how); }
int close(int file) { /* the file is closed all the same, as with a real disk */
    REAL(close);
    int failed = met_open("close", file), number = errno;
    int closed = real(file);
    if (failed) errno = number;
    return failed ? -1 : closed;
}
