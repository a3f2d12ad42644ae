/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an MPI control variable is worth in running ranks: the time of a
 * collective operation before all ranks change the variable, afterwards, with a
 * communicator made since, and with the old value again. Each is the best of many
 * rounds, microseconds per call, so that it can be had on a machine that others
 * use as well.
 *
 *     mpi_control VARIABLE VALUE alltoall|allreduce|allgather|bcast BYTES
 *
 *     mpirun.mpich -n 2 ./mpi_control MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM 3 alltoall 8192
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 250, CALLS = 10 };

static char *from, *to;

static void fail(const char *what) {
    fprintf(stderr, "mpi_control: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void call(MPI_Comm comm, const char *operation, int bytes) {
    int words = bytes / (int)sizeof(double);

    if (strcmp(operation, "alltoall") == 0)
        MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
    else if (strcmp(operation, "allreduce") == 0)
        MPI_Allreduce(from, to, words, MPI_DOUBLE, MPI_SUM, comm);
    else if (strcmp(operation, "allgather") == 0)
        MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
    else if (strcmp(operation, "bcast") == 0) {
        /* There and back: a root does not wait for those that it sends to. */
        MPI_Bcast(from, bytes, MPI_BYTE, 0, comm);
        MPI_Bcast(to, bytes, MPI_BYTE, 1, comm);
    } else
        fail("no such operation");
}

static double best(MPI_Comm comm, const char *operation, int bytes) {
    double least = 1e9;
    int round, i;

    for (round = 0; round < ROUNDS; round++) {
        double begin = MPI_Wtime(), took;

        for (i = 0; i < CALLS; i++)
            call(comm, operation, bytes);
        took = (MPI_Wtime() - begin) / CALLS;
        least = took < least ? took : least;
    }
    return least * 1e6;
}

/* Nobody is in a collective operation while it changes. */
static void change(MPI_T_cvar_handle handle, int value) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_T_cvar_write(handle, &value) != MPI_SUCCESS)
        fail("the variable cannot be written");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int provided, rank, ranks, index, count, old;
    int bytes = argc == 5 ? atoi(argv[4]) : 0;
    double before, after, newer, back;
    MPI_T_cvar_handle handle;
    MPI_Comm other;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (bytes < 8 || ranks < 2)
        fail("want VARIABLE VALUE OPERATION BYTES, and two ranks or more");
    if (MPI_T_cvar_get_index(argv[1], &index) != MPI_SUCCESS)
        fail("no such variable");
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS || count != 1)
        fail("the variable is no single number");
    MPI_T_cvar_read(handle, &old);
    from = calloc((size_t)ranks, (size_t)bytes);
    to = calloc((size_t)ranks, (size_t)bytes);
    if (from == NULL || to == NULL)
        fail("no memory");

    before = best(MPI_COMM_WORLD, argv[3], bytes);
    change(handle, atoi(argv[2]));
    after = best(MPI_COMM_WORLD, argv[3], bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    newer = best(other, argv[3], bytes);
    change(handle, old);
    back = best(MPI_COMM_WORLD, argv[3], bytes);
    if (rank == 0)
        printf("%s of %d bytes, us: before %.2f, after %.2f, new communicator %.2f, back %.2f\n",
               argv[3], bytes, before, after, newer, back);
    MPI_Finalize();
    return 0;
}
