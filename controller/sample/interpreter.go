// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"slices"

	"github.com/attune-hpc/attune/controller/cpython"
	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	// defaultInterpreterTicks is how much CPU time a program has taken before its interpreter
	// is looked for, 0.25 s: most end before that, and what the others import is over.
	defaultInterpreterTicks = procid.TicksPerSecond / 4
	// interpreterPause is how many rounds pass before memory is tried again that could not
	// be read.
	interpreterPause = 256
	// silentRounds is how many rounds may pass in which memory does not answer.
	silentRounds = 10
)

// interpreter reads the collector of a Python program. All that it reads of others than
// Python programs is the names of what they have mapped, when those are new.
type interpreter struct {
	handle  uint64   // of the program that is known
	objects []string // that were looked through
	named   bool     // one of them may be the interpreter
	state   uint64   // address of the collector's; 0: not found yet
	skip    int      // rounds in which nothing is tried
	silent  int      // rounds without an answer
	last    cpython.Collector
	visits  uint64
}

func newInterpreter(string) part { return new(interpreter) }

func (*interpreter) close(*Sampler) {}

func (i *interpreter) read(s *Sampler, p *process, to []series.Reading) ([]series.Reading, error) {
	if p.of.Program == nil {
		return to, nil
	}
	i.meet(p.of)
	switch {
	case !i.named:
		return to, nil
	case i.skip > 0:
		i.skip--
		return to, nil
	case p.ran >= s.options.interpreterTicks && !i.try(s, p.of.Program):
		return to, nil
	}
	return append(to, series.Reading{ID: series.PythonGCVisits, Value: i.visits}), nil
}

// meet notes what the process executes now, and what it has mapped.
func (i *interpreter) meet(of source.Process) {
	objects := of.Program.Objects()
	if i.handle == of.Handle && same(i.objects, objects) {
		return
	}
	if i.handle != of.Handle {
		i.state, i.skip = 0, 0
	}
	i.handle, i.objects, i.named = of.Handle, objects, slices.ContainsFunc(objects, cpython.Named)
}

// same says whether two lists are one, whose content nobody changes.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// try counts, and says whether there is a signal: what does not answer at once may do so
// in one of the next rounds, on a machine that is busy.
func (i *interpreter) try(s *Sampler, program source.Program) bool {
	err := i.count(s, program)
	switch {
	case err == nil:
		i.silent = 0
	case errors.Is(err, errSilent) && i.silent < silentRounds:
		i.silent++
	default:
		i.state, i.skip, i.silent = 0, interpreterPause, 0
		return false
	}
	return true
}

// count adds what the collector has looked at since it was read last.
func (i *interpreter) count(s *Sampler, program source.Program) error {
	found := i.state != 0
	if !found {
		state, err := read(s.attempts.longer(), func() (uint64, error) { return cpython.Locate(program) })
		if err != nil {
			return err
		}
		i.state = state
	}
	state := i.state // the goroutine may outlast the round
	now, err := read(s.attempts, func() (cpython.Collector, error) { return cpython.Read(program, state) })
	if err != nil {
		return err
	}
	if found {
		more, ok := now.VisitsSince(i.last)
		if !ok {
			return cpython.ErrNoCollector
		}
		i.visits = min(i.visits+more, maxVisits)
	}
	i.last = now
	return nil
}

// maxVisits is more than any program has, and less than what would overflow.
const maxVisits = 1 << 62
