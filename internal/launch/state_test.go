// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestStateWithoutFirstThread: a program whose first thread has ended before the others has not ended, and is
// stopped when these are.
func TestStateWithoutFirstThread(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "second", `
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		static pthread_t first;
		static void *go_on(void *unused) {
			pthread_join(first, 0);
			puts("ready");
			fflush(stdout);
			while (read(0, &first, 1) > 0)
				;
			exit(0);
			return unused;
		}
		int main(void) {
			pthread_t second;
			first = pthread_self();
			if (pthread_create(&second, 0, go_on, 0))
				return 1;
			pthread_exit(0);
		}`, "-pthread"))
	patience.Until(t, "the first thread to end", func() bool {
		stat, err := procid.ReadStat(target.PID)
		return err == nil && stat.Dead()
	})
	if now := state(target.PID); now == 'Z' {
		t.Fatal("it has not ended, and is called a zombie")
	}
	for _, step := range []struct {
		signal  unix.Signal
		stopped bool
	}{{unix.SIGSTOP, true}, {unix.SIGCONT, false}} {
		if err := unix.Kill(target.PID, step.signal); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, step.signal.String(), func() bool { return stopped(target.PID) == step.stopped })
	}
}
