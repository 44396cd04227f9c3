/* The fake agent: stamps the clock when it starts and when it ends, reads its prompt, and does what AGENT_DOES says.

   Every call appends one record to $STAMPS: "<start ns> <end ns> <pid>\n". What stands in AGENT_SAYS is printed at the
   end. AGENT_DOES is one of nothing (default), write:<bytes>, change (the file `work`), wait (until a signal), ignore (the same, but INT and TERM
   are ignored), and three that wait and have left a process behind: hold (it holds stdout), setsid (it has a session of
   its own), fork (that too, and its parent is gone). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static char block[65536];

static void stamp(long long start) {
    const char *path = getenv("STAMPS");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    char line[80];
    int size = snprintf(line, sizeof line, "%lld %lld %d\n", start, now(), (int)getpid());
    if (file >= 0 && write(file, line, size) != size) exit(9);
}

static void say(long long bytes) {
    for (size_t at = 0; at < sizeof block; at++) block[at] = at % 80 == 79 ? '\n' : 'x';
    while (bytes > 0) {
        ssize_t wrote = write(1, block, bytes < (long long)sizeof block ? (size_t)bytes : sizeof block);
        if (wrote <= 0) exit(8);
        bytes -= wrote;
    }
}

static void change(long long what) {
    FILE *file = fopen("work", "w");
    if (!file || fprintf(file, "%lld\n", what) < 0 || fclose(file)) exit(7);
}

static void leave(const char *does) {
    pid_t child = fork();
    if (child) {
        if (!strcmp(does, "fork")) waitpid(child, 0, 0);
        return;
    }
    if (strcmp(does, "hold")) {
        int null = open("/dev/null", O_RDWR);
        for (int file = 0; file < 3; file++) dup2(null, file);
        setsid();
    }
    if (!strcmp(does, "fork") && fork()) _exit(0);
    for (;;) pause();
}

static int is(const char *does, const char *word) {
    return does && !strcmp(does, word);
}

int main(void) {
    long long start = now();
    const char *does = getenv("AGENT_DOES");
    while (read(0, block, sizeof block) > 0) {}
    if (does && !strncmp(does, "write:", 6)) say(atoll(does + 6));
    if (is(does, "change")) change(start);
    const char *says = getenv("AGENT_SAYS");
    if (says && *says) printf("%s\n", says), fflush(stdout);
    if (is(does, "ignore")) signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN);
    if (is(does, "hold") || is(does, "setsid") || is(does, "fork")) leave(does);
    if (does && *does && strncmp(does, "write:", 6) && strcmp(does, "change")) {
        stamp(start);
        for (;;) pause();
    }
    stamp(start);
    return 0;
}
