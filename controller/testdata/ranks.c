/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks compare a control variable of their MPI library, as each has
 * it before the comparison, and the results of other operations with what they must
 * be. It ends with 1 as soon as something is wrong, else when rank 0 is told to.
 * argv[1] names the variable. With another argument every rank says who it is and
 * waits for SIGUSR1 before it begins. */
#include <mpi.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static MPI_T_cvar_handle handle;

static int present(void) {
    int value = 0;
    MPI_T_cvar_read(handle, &value);
    return value;
}

static void open_variable(const char *name) {
    int provided, index, count;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS ||
        MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) {
        fprintf(stderr, "no control variable %s\n", name);
        exit(2);
    }
}

static void fail(int rank, long calls, const char *what) {
    fprintf(stderr, "rank %d: at call %ld %s\n", rank, calls, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static sem_t begun;

static void begin(int signal) {
    (void)signal;
    sem_post(&begun);
}

/* By a handler: the signal may come to a thread of the library. */
static void wait_for_signal(int rank) {
    sem_init(&begun, 0, 0);
    signal(SIGUSR1, begin);
    dprintf(STDOUT_FILENO, "rank %d is %d\n", rank, (int)getpid()); /* in one piece */
    while (sem_wait(&begun) != 0)
        ;
}

enum { MOST = 64 };

/* Every rank tells every other one who it is; half of them take a sum. */
static void work(int rank, int ranks, MPI_Comm half, long calls) {
    int to[MOST], from[MOST], mine = rank, sum, want = 0;
    for (int i = 0; i < ranks; i++) {
        to[i] = MOST * rank + i;
        want += i % 2 == rank % 2 ? i : 0;
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, half);
    if (sum != want)
        fail(rank, calls, "the sum is wrong");
    MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        if (from[i] != MOST * i + rank)
            fail(rank, calls, "something else came than was sent");
}

int main(int argc, char **argv) {
    int rank, ranks, last = -1;
    MPI_Comm half;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    open_variable(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 2)
        wait_for_signal(rank);
    for (long calls = 0;; calls++) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        /* mine and its negative: the greatest of both tells greatest and least */
        int value = present(), most[3];
        int mine[3] = {value, -value, rank == 0 && calls % 16 == 0 && poll(&in, 1, 0) != 0};
        MPI_Allreduce(mine, most, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (most[0] != -most[1])
            fail(rank, calls, "the ranks have different values");
        if (rank == 0 && value != last)
            printf("value %d\n", value);
        last = value;
        if (most[2])
            break;
        work(rank, ranks, half, calls);
    }
    MPI_Finalize();
    return 0;
}
