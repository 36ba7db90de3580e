// client reads a file over and over through libnfs, one READ at a time, and prints microseconds and those of processor time for each call.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <nfsc/libnfs.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: client URL FILE SIZE SECONDS\n");
        return 2;
    }
    size_t size = atol(argv[3]);
    double seconds = atof(argv[4]);
    struct nfs_context *n = nfs_init_context();
    struct nfsfh *f;
    struct nfs_url *u = nfs_parse_url_dir(n, argv[1]);
    if (!u || nfs_mount(n, u->server, u->path) || nfs_open(n, argv[2], O_RDONLY, &f)) {
        fprintf(stderr, "%s\n", nfs_get_error(n));
        return 1;
    }
    char *b = malloc(size);
    struct nfs_stat_64 st;
    nfs_fstat64(n, f, &st);
    uint64_t blocks = st.nfs_size / size, calls = 0;
    struct rusage r0, r1;
    getrusage(RUSAGE_SELF, &r0);
    double t0 = now(), t = t0;
    for (; t < t0 + seconds; calls++) {
        int got = nfs_pread(n, f, (calls % blocks) * size, size, b);
        if (got != (int)size) {
            fprintf(stderr, "%d: %s\n", got, nfs_get_error(n));
            return 1;
        }
        if (calls % 64 == 0) t = now();
    }
    t = now();
    getrusage(RUSAGE_SELF, &r1);
    double cpu = (r1.ru_utime.tv_sec - r0.ru_utime.tv_sec + r1.ru_stime.tv_sec - r0.ru_stime.tv_sec) * 1e6 +
                 (r1.ru_utime.tv_usec - r0.ru_utime.tv_usec + r1.ru_stime.tv_usec - r0.ru_stime.tv_usec);
    printf("%.2f %.2f\n", (t - t0) * 1e6 / calls, cpu / calls);
    return 0;
}
