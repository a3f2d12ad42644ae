// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
)

// numbered is a function of a process whose calls DMLib counts.
type numbered struct {
	memory *ring.Memory
	local  int
	name   string
}

var _ actuate.Numbered = numbered{}

// errUncounted says that the calls of a function have no numbers.
var errUncounted = errors.New("its calls were not counted from the start of the process: " +
	"ask for a measure point with numbered calls before the program starts")

// Numbered finds the counter of a function.
func (t *target) Numbered(f objfile.Resolved) (actuate.Numbered, error) {
	memory := t.memory.Load()
	if memory == nil {
		return nil, fmt.Errorf("%w: DMLib is not in the process", actuate.ErrRefused)
	}
	number, err := t.sites.Number(entry.Function{Image: f.Image, Symbol: f.Symbol})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Symbol.Name, err)
	}
	n := numbered{memory: memory, local: ring.HookCount + number, name: f.Symbol.Name}
	if !memory.Numbered(n.local) {
		return nil, fmt.Errorf("%s: %w", f.Symbol.Name, errUncounted)
	}
	return n, nil
}

// Calls says how many have begun.
func (n numbered) Calls() uint32 { return n.memory.Calls(n.local) }

func (n numbered) command(call actuate.Call) ring.Command {
	command := ring.Command{Op: ring.OpCall, At: ring.AtPatch, Point: n.local + 1, Thread: call.Thread}
	command.Args[0] = call.Function
	copy(command.Args[1:], call.Arguments)
	return command
}

// Call makes a call before the function's next one.
func (n numbered) Call(ctx context.Context, call actuate.Call) (uint64, string, error) {
	result, err := n.memory.Run(ctx, n.command(call))
	if err != nil {
		return 0, "", err
	}
	return result.Value, fmt.Sprintf("entry of %s, thread %d", n.name, result.Thread), nil
}

// Prepare puts a call into the mailbox that waits for a number.
func (n numbered) Prepare(call actuate.Call, number uint32) (actuate.Prepared, error) {
	command := n.command(call)
	command.Call = number
	ticket, err := n.memory.Prepare(command)
	if err != nil {
		return nil, err
	}
	return prepared{numbered: n, ticket: ticket, number: number}, nil
}

// prepared is a call in the mailbox.
type prepared struct {
	numbered
	ticket ring.Ticket
	number uint32
}

func (p prepared) Release()     { p.memory.Release(p.ticket) }
func (p prepared) Cancel() bool { return p.memory.Cancel(p.ticket) }

func (p prepared) Result() (uint64, string, bool, error) {
	result, done := p.memory.Poll(p.ticket)
	if !done {
		return 0, "", false, nil
	}
	where := fmt.Sprintf("entry of %s, call %d, thread %d", p.name, p.number, result.Thread)
	if result.Errno != 0 {
		return 0, where, true, fmt.Errorf("in the application: %w", result.Errno)
	}
	return result.Value, where, true, nil
}
