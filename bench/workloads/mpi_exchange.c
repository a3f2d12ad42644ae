/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bulk-synchronous MPI program: each iteration computes a little, exchanges a
 * small message around a ring and reduces a few numbers over all ranks. Ends
 * after SECONDS, or, with ITERATIONS given, after that many.
 *
 *     mpi_exchange SECONDS [ITERATIONS]
 */
#include "workload.h"

#include <mpi.h>
#include <stdlib.h>

enum { WORDS = 8 };

static double compute(double x) {
    int i;

    for (i = 0; i < 200; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX;
    double out[WORDS] = {0}, in[WORDS], sum[WORDS];
    uint64_t iterations = 0;
    struct progress p = {0};
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        p = progress_begin();
    do {
        out[1] = compute(out[1]);
        MPI_Sendrecv(out, WORDS, MPI_DOUBLE, (rank + 1) % ranks, 0, in, WORDS, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        iterations++;
        /* Rank 0 decides when it ends; the reduction tells the others. */
        if (rank == 0)
            out[0] = progress_step(&p, iterations) >= seconds || iterations >= most;
        MPI_Allreduce(out, sum, WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } while (sum[0] == 0);
    if (rank == 0)
        progress_end(&p, iterations);
    MPI_Finalize();
    return 0;
}
