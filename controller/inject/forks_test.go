// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// forks is a program of which one thread forks while DMLib attaches, which asks the
// program's own getauxval whether it is privileged. It says which child it has.
const forks = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

static int asked, forked;

unsigned long getauxval(unsigned long type) {
    if (type != AT_SECURE)
        return 0;
    __atomic_store_n(&asked, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&forked, __ATOMIC_SEQ_CST))
        usleep(1000);
    return 0;
}

static void *work(void *unused) {
    while (!__atomic_load_n(&asked, __ATOMIC_SEQ_CST))
        usleep(1000);
    pid_t child = fork();
    __atomic_store_n(&forked, 1, __ATOMIC_SEQ_CST);
    if (child > 0) {
        printf("%d\n", child);
        fflush(stdout);
    }
    for (;;)
        usleep(1000);
    return unused;
}

int main(void) {
    pthread_t thread;
    char line[64];
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL)
        ;
    return 0;
}
`

// TestChildForkedWhileAttaching: it is attached to as any other process.
func TestChildForkedWhileAttaching(t *testing.T) {
	b := newBench(t)
	target := targets.Start(t, targets.BuildText(t, "forks", forks, "-rdynamic", "-pthread"))
	b.options.among = func(tid int) bool { return tid == target.PID } // the other one forks
	parent := b.inject(t, target.PID)
	defer free(t, parent)
	child, err := strconv.Atoi(target.Line(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	b.options.among = nil
	free(t, b.inject(t, child))
}
