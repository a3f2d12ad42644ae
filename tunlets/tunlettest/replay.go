// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// columns are the signals of a recording, in order, after time and process.
func columns() []sdk.Signal {
	return []sdk.Signal{
		sdk.CPUUser, sdk.CPUSystem, sdk.RunTime, sdk.RunqueueWait, sdk.MinorFaults,
		sdk.ResidentBytes, sdk.VoluntarySwitches, sdk.InvoluntarySwitches, sdk.CPUsAllowed,
	}
}

// Recording is what was sampled of real processes, for tests that want the
// noise of a real machine.
type Recording struct {
	rounds []*attunev1.SampleBatch // processes by their number, time since the start
}

// ReadRecording reads a recording: a line per sample with the time since its
// start in nanoseconds, the number of the process, and the signals (columns),
// separated by spaces; lines of the same time are one round; # begins a
// comment.
func ReadRecording(r io.Reader) (*Recording, error) {
	out := &Recording{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if text := lines.Text(); text != "" && !strings.HasPrefix(text, "#") {
			if err := out.add(strings.Fields(text)); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	return out, lines.Err()
}

func (r *Recording) add(fields []string) error {
	signals := columns()
	if len(fields) != len(signals)+2 {
		return fmt.Errorf("%d columns, want %d", len(fields), len(signals)+2)
	}
	at, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	process, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	s := &attunev1.Sample{Process: process}
	for i, sig := range signals {
		v, err := strconv.ParseFloat(fields[i+2], 64)
		if err != nil {
			return fmt.Errorf("column %d: %w", i+3, err)
		}
		s.Readings = append(s.Readings, &attunev1.Reading{Signal: attunev1.Signal(sig), Value: v})
	}
	if n := len(r.rounds); n == 0 || r.rounds[n-1].GetUnixNano() != at {
		r.rounds = append(r.rounds, &attunev1.SampleBatch{UnixNano: at})
	}
	last := r.rounds[len(r.rounds)-1]
	last.Samples = append(last.Samples, s)
	return nil
}

// Replay delivers a recording from a file: its process 0 is the first of the
// given ones, and so on. Hits come from the processes, as in Round; their
// rates do not matter.
func (h *Harness) Replay(file string, processes ...*Process) {
	h.tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		h.tb.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read only
	r, err := ReadRecording(f)
	if err != nil {
		h.tb.Fatalf("%s: %v", file, err)
	}
	start := h.now
	for _, round := range r.rounds {
		for _, s := range round.GetSamples() {
			if s.GetProcess() >= uint64(len(processes)) {
				h.tb.Fatalf("%s: process %d, there are %d", file, s.GetProcess(), len(processes))
			}
			s.Process = uint64(processes[s.GetProcess()].Handle)
		}
		h.deliver(start.Add(time.Duration(round.GetUnixNano())), round)
	}
}
