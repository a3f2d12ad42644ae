/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks compare a control variable of their MPI library, as each
 * has it before the comparison. It ends with 1 as soon as they differ, else
 * when rank 0 is told to. argv[1] names the variable. */
#include <mpi.h>
#include <poll.h>
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

int main(int argc, char **argv) {
    int rank, last = -1;
    (void)argc;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    open_variable(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (long calls = 0;; calls++) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        /* mine and its negative: the greatest of both tells greatest and least */
        int value = present(), most[3];
        int mine[3] = {value, -value, rank == 0 && calls % 16 == 0 && poll(&in, 1, 0) != 0};
        MPI_Allreduce(mine, most, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (most[0] != -most[1]) {
            fprintf(stderr, "rank %d: at call %ld the ranks have %d to %d\n", rank, calls, -most[1],
                    most[0]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (rank == 0 && value != last)
            printf("value %d\n", value);
        last = value;
        if (most[2])
            break;
    }
    MPI_Finalize();
    return 0;
}
