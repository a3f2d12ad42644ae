// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/cluster"
)

// mustRunRanks runs ranks of mpi_exchange with Open MPI on several nodes, once more
// where it dies in MPI_Init by itself, as it does now and then with Attune and
// without (docs/tunlets/mpi-progress.md). command is asked before each start.
func mustRunRanks(t *testing.T, c *cluster.Cluster, command func() []string) string {
	t.Helper()
	out, err := runOn(t, c, cluster.Alice, command()...)
	if err != nil && diedInInit(out, err) {
		t.Logf("once more: %v", err)
		out, err = runOn(t, c, cluster.Alice, command()...)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, c.Logs(t.Context()))
	}
	return out
}

// notAllBegan is the output until all ranks have left MPI_Init: the first rank's
// first iteration may take long, and the second comes after what all took part in.
// It prints every 0.1 s only, so a death as soon after MPI_Init passes as well.
var notAllBegan = regexp.MustCompile(`^(start\n(progress \S+ 1\n)?)?$`)

// diedInInit says whether a rank called nil before all had left MPI_Init. Whoever
// only reads or writes there has a caller, which Open MPI names as the next frame.
func diedInInit(stdout string, err error) bool {
	stderr := err.Error()
	return notAllBegan.MatchString(stdout) &&
		strings.Contains(stderr, "Signal: Segmentation fault (11)\n") &&
		strings.Contains(stderr, "Failing at address: (nil)\n") &&
		!strings.Contains(stderr, "] [ 1] ")
}

// Any other death is a failure.
func TestOnlyDeathInInitIsExcused(t *testing.T) {
	const (
		signal  = "[node2:00048] Signal: Segmentation fault (11)\n"
		address = "[node2:00048] Failing at address: (nil)\n"
		frame   = "[node2:00048] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7fe39a5a2050]\n"
		end     = "[node2:00048] *** End of error message ***\n"
	)
	for name, run := range map[string]struct {
		stdout, stderr string
		want           bool
	}{
		"nobody is ahead":   {"", signal + address + frame + end, true},
		"the first is":      {"start\n", signal + address + frame + end, true},
		"it waits for long": {"start\nprogress 0.100 1\n", signal + address + frame + end, true},
		"all had begun":     {"start\nprogress 0.100 2\n", signal + address + frame + end, false},
		"a caller": {"", signal + address + frame +
			"[node2:00048] [ 1] /usr/lib/libmpi.so.40(ompi_mpi_init+0x2)[0x7fe39a5a2050]\n" + end, false},
		"elsewhere":      {"", signal + "[node2:00048] Failing at address: 0x8\n" + frame + end, false},
		"another signal": {"", "[node2:00048] Signal: Bus error (7)\n" + address + frame + end, false},
		"no signal":      {"", "srun: error: node2: task 4: Exited with exit code 1\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diedInInit(run.stdout, errors.New(run.stderr)); got != run.want {
				t.Errorf("excused: %t, want %t", got, run.want)
			}
		})
	}
}
