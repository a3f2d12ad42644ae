// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mapper maps a page at each address that it is told.
const mapper = `
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

int main(void) {
    unsigned long at;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (scanf("%lu", &at) == 1)
        puts(mmap((void *)at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)at ? "mapped" : "not mapped");
    return 0;
}
`

// TestCallIsMadeOnce: what becomes of the page with the code of a call does not decide
// whether the call was made, and a call that was made is not made once more.
func TestCallIsMadeOnce(t *testing.T) {
	for name, late := range map[string]bool{"the page stays": false, "in the last moment": true} {
		t.Run(name, func(t *testing.T) {
			target := targets.Start(t, targets.BuildText(t, "mapper", mapper))
			process := &madeBy{Process: mustProcess(t, target.PID), late: late}
			process.mapPage = func(start uint64) { target.Ask(t, strconv.FormatUint(start, 10)) }
			function, err := Lookup(process, "libc.so*", "getenv", objfile.Function)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			process.spend = cancel
			defer cancel()
			i := Invocation{Name: "getenv", Function: function.Address, Arguments: []*attunev1.Value{TextValue("four")}}
			value, how, called, err := Invoke(ctx, process, []Way{WayMailbox, WayStopped}, i)
			if err != nil || !called || how.Way != WayMailbox || value.GetUnsigned() != madeWord {
				t.Errorf("got %v by %q, called: %t, %v", value, how.Way, called, err)
			}
			if strings.Contains(how.Where, "stays") == late {
				t.Errorf("where: %q", how.Where)
			}
		})
	}
}

// TestPageOfACallWithoutPlaceIsFreed: the time for a call that was not made is spent, and the
// page with its code is freed all the same.
func TestPageOfACallWithoutPlaceIsFreed(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "mapper", mapper))
	process := &madeBy{Process: mustProcess(t, target.PID), late: true, nowhere: true}
	process.mapPage = func(start uint64) { target.Ask(t, strconv.FormatUint(start, 10)) }
	ctx, cancel := context.WithCancel(t.Context())
	process.spend = cancel
	defer cancel()
	i := Invocation{Name: "getenv", Function: 1, Arguments: []*attunev1.Value{TextValue("four")}}
	_, _, called, err := Invoke(ctx, process, []Way{WayMailbox}, i)
	if !errors.Is(err, shm.ErrNoSafePoint) || called || strings.Contains(err.Error(), "stays") || !process.freed {
		t.Errorf("freed: %t, called: %t, %v", process.freed, called, err)
	}
}

// madeWord is what every call returns that a madeBy makes.
const madeWord = 77

// madeBy is a process whose mailbox says that it has made a call, and then finds no safe
// point, or is late: the time is up when it has made the call.
type madeBy struct {
	Process
	mapPage func(start uint64)
	late    bool
	nowhere bool // it is late, and has not made the call
	freed   bool // the page was
	spend   context.CancelFunc
	page    uint64
}

func (m *madeBy) Mailbox() Mailbox { return m }

func (m *madeBy) Map(_ context.Context, start, _ uint64) error {
	m.page = start
	m.mapPage(start)
	return nil
}

func (m *madeBy) Call(ctx context.Context, call Call) (uint64, string, error) {
	switch {
	case call.Function == m.page && m.late:
		m.spend()
		if m.nowhere {
			return 0, "", shm.ErrNoSafePoint
		}
	case call.Function == m.page:
	case !m.late:
		return 0, "", fmt.Errorf("free: %w", shm.ErrNoSafePoint)
	case ctx.Err() != nil:
		return 0, "", fmt.Errorf("free: %w: %w", shm.ErrNoSafePoint, ctx.Err())
	default:
		m.freed = true
	}
	return madeWord, "a hook", nil
}

func (m *madeBy) Store(context.Context, Word, uint64, uint64) error { panic("no slot is changed") }
