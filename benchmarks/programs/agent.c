/* The fake agent: stamps the clock when it starts and when it ends, reads its prompt, and does what AGENT_DOES says.

   Every call appends one record to $STAMPS: "<start ns> <end ns> <pid>\n". AGENT_DOES is one of
   nothing (default), write:<bytes>, wait (until a signal), ignore (the same, but INT and TERM are ignored). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void) {
    long long start = now();
    const char *does = getenv("AGENT_DOES");
    while (read(0, block, sizeof block) > 0) {}
    if (does && !strncmp(does, "write:", 6)) say(atoll(does + 6));
    if (does && !strcmp(does, "ignore")) signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN);
    if (does && (!strcmp(does, "wait") || !strcmp(does, "ignore"))) {
        stamp(start);
        for (;;) pause();
    }
    stamp(start);
    return 0;
}
