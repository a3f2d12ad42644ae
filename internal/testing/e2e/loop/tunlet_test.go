// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// The program does a round, naps for so many microseconds, and so on. slow is
// what it naps at first, fast what the tunlet proposes: so much less that it does many more
// rounds also where it has to wait for a CPU after each.
const (
	programName = "paced"
	variable    = "pace"
	slow, fast  = 20_000, 100
)

// programText is the program. It begins to work when it is told so, and tells
// what its variable holds.
var programText = fmt.Sprintf(`
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile int %s = %d;
static void *work(void *unused) {
    for (;;) {
        void *volatile block = malloc(64);
        free(block);
        usleep((useconds_t)%s);
    }
    return unused;
}
int main(void) {
    char line[64];
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "begin\n") == 0)
            puts(pthread_create(&thread, NULL, work, NULL) == 0 ? "begun" : "no thread");
        else
            printf("%%d\n", %s);
    }
    return 7;
}
`, variable, slow, variable, variable)

func buildProgram(t *testing.T) string {
	t.Helper()
	return targets.BuildText(t, programName, programText)
}

const (
	tunletName   = "paced"
	tunletPrefix = "attune-tunlet-"
	point        = "rounds"
	knob         = "program.pace"
)

// TestMain is the tunlet where the test program is called by the tunlet's name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == tunletPrefix+tunletName {
		sdk.Serve(func() sdk.Tunlet { return &tunlet{rounds: map[sdk.Handle]int{}} })
		return
	}
	leaktest.Main(m)
}

// tunletDir is a folder with the tunlet.
func tunletDir(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // that of a trusted folder
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(dir, tunletPrefix+tunletName)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// baseline is how many values there are before the proposal.
const baseline = 6

// tunlet counts the program's rounds and has it nap less.
type tunlet struct {
	rounds map[sdk.Handle]int // how many values of the objective there were
}

// Describe implements sdk.Tunlet. Nobody needs it before the program naps.
func (*tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: tunletName, Version: "1", Summary: "has a program nap less",
		Objective: sdk.Objective{Name: "rounds_per_second", Unit: "1/s", Description: "rounds"},
		Knobs:     []sdk.Knob{{Name: knob, Action: sdk.SetVariable(programName, variable, 4, sdk.Value{}), Description: "microseconds of a nap", Min: sdk.Int(1), Max: sdk.Int(slow)}},
		MaxTries:  1,
		Wake: []sdk.Wake{{
			Levels: []sdk.Level{{Signal: sdk.VoluntarySwitches, AtLeast: 5}}, Lasting: 100 * time.Millisecond, Averaged: true,
		}},
	}
}

// ProcessStarted asks for the hook.
func (t *tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if _, known := t.rounds[p.Handle]; !known && path.Base(p.Executable) == programName {
		t.rounds[p.Handle] = 0
		h.AddPoint(sdk.Point{ID: point, Hook: "malloc", Processes: []sdk.Handle{p.Handle}})
	}
}

// HandleAggregates reports the objective and proposes once.
func (t *tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	for _, item := range a.Items {
		if a.Seconds() == 0 || item.Count == 0 {
			continue
		}
		h.Objective(item.Process.Scope(), float64(item.Count)/a.Seconds())
		t.rounds[item.Process]++
		if t.rounds[item.Process] == baseline {
			h.Propose(sdk.Proposal{
				ID: "nap-less", Scope: item.Process.Scope(), Reason: "it naps", PredictedGain: 10, Confidence: 0.9,
				Changes: []sdk.Change{{Knob: knob, Process: item.Process,
					Action: sdk.SetVariableFrom(programName, variable, 4, sdk.Int(slow), sdk.Int(fast))}},
			})
		}
	}
}
