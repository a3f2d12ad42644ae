// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// program is what a test lets be read of a process.
type program struct {
	pid     int
	objects []string
	silent  chan struct{} // closed when it answers at last; nil: it does at once
	asked   int           // for what belongs to it
}

func (p *program) Objects() []string { return p.objects }

func (p *program) Images() ([]objfile.Image, error) {
	p.asked++
	if p.silent != nil {
		<-p.silent
		return nil, errors.New("answered at last")
	}
	return objfile.Images(p.pid)
}

func (p *program) Hold() (*proc.Handle, error) {
	p.asked++
	return proc.Open(p.pid) // closed when nobody has it any more
}

// visits samples a program under a handle; false: there is no signal.
func visits(t *testing.T, s *Sampler, handle uint64, p *program) (float64, bool) {
	t.Helper()
	table, _, err := s.sample(source.Process{Handle: handle, Identity: procid.Identity{PID: p.pid}, Program: p}, 0)
	if err != nil {
		t.Fatal(err)
	}
	v, known := values(t, table)[series.PythonGCVisits]
	return v, known
}

// mustCollect starts an interpreter that has 40,000 objects and looks at all of them as
// often as it is told, when it has run for longer than one that has just begun.
func mustCollect(t *testing.T) (*targets.Target, *program) {
	t.Helper()
	target := targets.StartScript(t, targets.Python(t), `
import gc, sys, time
gc.disable()
live = [[] for _ in range(40000)]
gc.collect()
print('ready', flush=True)
for line in sys.stdin:
    if line.startswith('run'):
        while time.process_time() < 0.3: pass
    else:
        for _ in range(int(line)): gc.collect()
    print('done', flush=True)
`)
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{pid: target.PID}
	for _, image := range images {
		p.objects = append(p.objects, image.Path)
	}
	return target, p
}

func TestInterpreter(t *testing.T) {
	target, p := mustCollect(t)
	s := New(Options{patience: patience.Limit, interpreterTicks: math.MaxUint64}) // always young
	defer s.Close()
	if v, known := visits(t, s, 1, p); v != 0 || !known || p.asked > 0 {
		t.Errorf("of a program that has just begun %v visits, %v; asked for its memory %d times", v, known, p.asked)
	}
	s.options.interpreterTicks = defaultInterpreterTicks
	target.Ask(t, "run")
	if v, known := visits(t, s, 1, p); v != 0 || !known {
		t.Fatalf("when it is seen first %v visits, %v", v, known)
	}
	target.Ask(t, "5")
	first, known := visits(t, s, 1, p)
	if least := 5 * 40_000.0; !known || first < least || first > 2*least {
		t.Errorf("five times: %v visits, %v; want %v and some", first, known, least)
	}
	if again, _ := visits(t, s, 1, p); again != first {
		t.Errorf("of a program that does not collect another %v visits", again-first)
	}
	target.Ask(t, "5")
	if v, known := visits(t, s, 2, p); v != first || !known {
		t.Errorf("of the next program of the process %v visits, %v; want %v", v, known, first)
	}
}

// What is no interpreter costs nothing: nobody asks for its memory.
func TestNoInterpreter(t *testing.T) {
	target := mustStart(t)
	s := New(Options{})
	defer s.Close()
	p := &program{pid: target.PID, objects: []string{"/usr/bin/perl", "/usr/lib/libc.so.6"}}
	target.tell(t, "burn")
	target.tell(t, "burn")
	target.tell(t, "burn")
	if v, known := visits(t, s, 1, p); known || p.asked > 0 {
		t.Errorf("%v visits; asked for its memory %d times", v, p.asked)
	}
	p.objects = append(p.objects, "/usr/lib/libpython3.11.so.1.0") // that is not there
	if v, known := visits(t, s, 1, p); known {
		t.Errorf("%v visits without an interpreter", v)
	}
}

// Memory that never answers holds nobody up but one goroutine: no signal is told then.
func TestSilentMemory(t *testing.T) {
	target, p := mustCollect(t)
	target.Ask(t, "run")
	p.silent = make(chan struct{})
	s := New(Options{patience: time.Millisecond})
	defer s.Close()
	for round := range silentRounds + 3 { // each returns
		if v, known := visits(t, s, 1, p); v != 0 || known != (round < silentRounds) {
			t.Fatalf("in round %d %v visits in memory that does not answer, %v", round, v, known)
		}
	}
	other := &program{pid: p.pid, objects: p.objects}
	if v, _ := visits(t, s, 2, other); v != 0 || other.asked > 0 {
		t.Error("memory is read by another goroutine while one hangs")
	}
	close(p.silent)
	s.attempts.taken <- struct{}{} // the goroutine has let go of its place
	<-s.attempts.taken
	if p.asked != 1 {
		t.Errorf("it was asked %d times, want once", p.asked)
	}
	p.silent, s.attempts.patience = nil, patience.Limit
	if v, known := visits(t, s, 3, p); v != 0 || !known {
		t.Errorf("when memory answers again %v visits, %v", v, known)
	}
}
