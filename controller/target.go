// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// target is one process image under control. Its methods may be called from
// any goroutine; the embedded mutex is held while something is changed in it.
type target struct {
	sync.Mutex // see actuate.Process
	handle     uint64
	pid        int
	identity   procid.Identity
	cache      *objfile.Cache
	memory     atomic.Pointer[ring.Memory]
	sites      *entry.Sites
	patching   atomic.Bool // again, after a library was loaded again
	ended      atomic.Bool
	admitted   atomic.Bool // measure points are placed
	told       atomic.Bool // the Analyzer knows of it, at the present connection
	known      atomic.Bool // it did at some connection
	bringing   *bringing
	late       atomic.Bool // DMLib may be brought in yet
	// outOfReach is why it is left alone, nil if it is not; see foreign.
	outOfReach error
	// attached is how it came under control; nil: it was started under it.
	attached atomic.Pointer[Attached]

	infoMu sync.Mutex // guards info
	info   *attunev1.Process
}

var (
	_ probe.Process   = (*target)(nil)
	_ actuate.Process = (*target)(nil)
)

func (t *target) Handle() uint64            { return t.handle }
func (t *target) PID() int                  { return t.pid }
func (t *target) Identity() procid.Identity { return t.identity }
func (t *target) Memory() *ring.Memory      { return t.memory.Load() }
func (t *target) Started() time.Time        { return time.Unix(0, t.snapshot().GetSeenUnixNano()) }

// Expected says whether DMLib may yet come.
func (t *target) Expected() bool { return t.late.Load() }

// Alive says whether the process still runs the same image, as far as the
// tracker knows.
func (t *target) Alive() bool { return !t.ended.Load() }

// Sites owns the patched entries and returns of the process.
func (t *target) Sites() *entry.Sites { return t.sites }

// Images lists what is mapped at present.
func (t *target) Images() ([]objfile.Image, error) { return t.cache.Images(t.pid) }

// Map maps memory for patches where DMLib is not in the process.
func (t *target) Map(ctx context.Context, start, size uint64) error {
	return actuate.MapStopped(ctx, t, start, size)
}

// Rewrite changes code while all threads are stopped.
func (t *target) Rewrite(ctx context.Context, address uint64, from, to []byte) error {
	return actuate.RewriteStopped(ctx, t, address, from, to)
}

// Mailbox is DMLib's, nil without DMLib.
func (t *target) Mailbox() actuate.Mailbox {
	if memory := t.memory.Load(); memory != nil {
		return mailbox{memory: memory, target: t}
	}
	return nil
}

// snapshot returns what is known about the process, safe to keep.
func (t *target) snapshot() *attunev1.Process {
	t.infoMu.Lock()
	defer t.infoMu.Unlock()
	return proto.CloneOf(t.info)
}

// update replaces what the tracker knows and keeps what the controller does.
func (t *target) update(info *attunev1.Process) {
	t.infoMu.Lock()
	defer t.infoMu.Unlock()
	mechanisms := t.info.GetMechanisms()
	t.info = proto.CloneOf(info)
	t.info.Mechanisms = mechanisms
}

// setMechanism notes whether a way into the process is open.
func (t *target) setMechanism(name string, available bool, reason string) {
	t.infoMu.Lock()
	defer t.infoMu.Unlock()
	for _, m := range t.info.GetMechanisms() {
		if m.GetName() == name {
			m.Available, m.Reason = available, reason
			return
		}
	}
	t.info.Mechanisms = append(t.info.Mechanisms,
		&attunev1.Mechanism{Name: name, Available: available, Reason: reason})
}

// mailbox runs calls through DMLib.
type mailbox struct {
	memory *ring.Memory
	target *target
}

var families = map[string]ring.Family{
	"alloc": ring.AtAlloc, "lock": ring.AtLock, "io": ring.AtIO, "stub": ring.AtStub,
}

// Call calls a function at the next hook of the families.
func (m mailbox) Call(ctx context.Context, call actuate.Call) (uint64, string, error) {
	if call.Entry != nil {
		return m.target.callAtEntry(ctx, m.memory, call)
	}
	command := ring.Command{Op: ring.OpCall, Thread: call.Thread}
	for _, name := range call.Families {
		family, ok := families[name]
		if !ok {
			return 0, "", fmt.Errorf("%w: unknown safe point family %q", actuate.ErrRefused, name)
		}
		command.At |= family
	}
	if command.At == 0 {
		// Where a thread may call the allocator it may call most things.
		command.At = ring.AtAlloc
	}
	command.Args[0] = call.Function
	copy(command.Args[1:], call.Arguments)
	result, err := m.memory.Run(ctx, command)
	if err != nil {
		return 0, "", err
	}
	return result.Value, describe(result), nil
}

// Map maps memory at the next hook, or while the process waits in the gate.
func (m mailbox) Map(ctx context.Context, start, size uint64) error {
	_, err := m.memory.Run(ctx, ring.Command{
		Op: ring.OpMap, At: ring.AtAlloc | ring.AtLock | ring.AtIO | ring.AtStub | ring.AtPatch | ring.AtGate,
		Args: [8]uint64{start, size},
	})
	return err
}

// Store changes a GOT slot at the next hook.
func (m mailbox) Store(ctx context.Context, slot actuate.Word, old, value uint64) error {
	command := ring.Command{
		Op: ring.OpGOT, At: ring.AtAlloc | ring.AtLock | ring.AtIO | ring.AtStub,
		Args: [8]uint64{0: slot.Address, 2: value, 3: 1, 4: old},
	}
	if slot.ReadOnly {
		command.Args[5] = 1
	}
	_, err := m.memory.Run(ctx, command.Of(slot.Origin, slot.ImageBias))
	return err
}

// describe says where a command ran.
func describe(result ring.Result) string {
	for _, hook := range ring.Hooks() {
		if hook.Index == result.Local {
			return fmt.Sprintf("%s hook, thread %d", hook.Name, result.Thread)
		}
	}
	return fmt.Sprintf("stub %d, thread %d", result.Local-ring.HookCount, result.Thread)
}
