// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestTwoControllers: one has the process, the other is told so; and when it
// has let go, or died, the other gets in.
func TestTwoControllers(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "plain")
	result := b.inject(t, h.PID)
	_, err := Inject(t.Context(), mustOpen(t, h.PID), b.options)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("error %v, want one that names the controller", err)
	}
	dead := exec.Command("/bin/true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	owner := thisOwner(t)
	owner.PID = dead.Process.Pid
	result.Memory.SetOwner(owner)
	second := b.inject(t, h.PID) // the first has died, and let go of nothing
	free(t, second)
	free(t, b.inject(t, h.PID)) // the second has let go
	free(t, result)
	h.Right(t)
	h.Finish(t)
}

// TestAtTheSameTime: of those that come at once one gets in, and nobody harm.
func TestAtTheSameTime(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "churn")
	const visitors = 4
	type visit struct {
		result Result
		err    error
	}
	visits := make(chan visit)
	for range visitors {
		process := mustOpen(t, h.PID)
		go func() {
			result, err := Inject(t.Context(), process, b.options)
			visits <- visit{result, err}
		}()
	}
	var in []Result
	for range visitors {
		switch v := <-visits; {
		case v.err == nil:
			in = append(in, v.result)
		case !errors.Is(v.err, ErrHeld):
			t.Error(v.err)
		}
	}
	if len(in) != 1 {
		t.Fatalf("%d controllers have the process, want 1", len(in))
	}
	free(t, in[0])
	h.Right(t)
	h.Finish(t)
}
