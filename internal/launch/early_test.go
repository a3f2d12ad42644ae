// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"syscall"
	"testing"
)

// A signal to the process group that comes just before the fork has not reached the
// program: it does not start.
func TestEndedJustBeforeTheFork(t *testing.T) {
	if got, want := observe(t, `export SIGNAL_GROUP=15; exec $RUN echo started`, launcher), (outcome{status: "signal: terminated"}); got != want {
		t.Errorf("it was %+v, want %+v", got, want)
	}
}

// A stop that the keyboard asks for just before the fork is shown to the shell, and the
// program starts when the job is continued.
func TestStoppedJustBeforeTheFork(t *testing.T) {
	t.Parallel()
	j := interactive(t, "SIGNAL_GROUP=20 $RUN $COUNT; was=$?; fg; echo was=$was.")
	j.kill(j.launcher, syscall.SIGUSR2)
	j.expect("was=148.")
}
