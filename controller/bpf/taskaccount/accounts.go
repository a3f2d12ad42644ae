// SPDX-License-Identifier: Apache-2.0

package taskaccount

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/attune-hpc/attune/controller/bpf"
)

// feature is what errors are about.
const feature = "accounts of processes"

// Accounts accounts for the trees of processes that begin at its starters.
type Accounts struct {
	objects  taskAccountObjects
	attached bpf.Tracepoints
	reader   *ringbuf.Reader
	reading  sync.Mutex // Read: one at a time
	close    sync.Once
	closed   error
}

// New loads and attaches the programs. It fails with a *bpf.UnsupportedError
// without privilege or without kernel type information. The caller must Close it.
func New() (*Accounts, error) {
	if err := bpf.RequirePrivilege(feature); err != nil {
		return nil, err
	}
	spec, err := loadTaskAccount()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", feature, err)
	}
	if err := bpf.SetPIDNamespace(spec); err != nil {
		return nil, err
	}
	a := &Accounts{}
	err = spec.LoadAndAssign(&a.objects, &ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: bpf.KernelTypes(spec.Types, bpf.AccountStructs)},
	})
	if err != nil {
		return nil, bpf.Explain(feature, err)
	}
	if err := a.start(); err != nil {
		return nil, errors.Join(bpf.Explain(feature, err), a.Close())
	}
	return a, nil
}

func (a *Accounts) start() (err error) {
	if a.reader, err = ringbuf.NewReader(a.objects.EndedRing); err != nil {
		return fmt.Errorf("open ring: %w", err)
	}
	// Forks last: what is followed must be seen to end.
	return errors.Join(
		a.attached.Attach("sched_switch", a.objects.AccountSwitch),
		a.attached.Attach("sched_process_exit", a.objects.AccountExit),
		a.attached.Attach("sched_process_exec", a.objects.AccountExec),
		a.attached.Attach("sched_process_fork", a.objects.AccountFork),
	)
}

// StartFrom makes every process that thread tid forks from now on the first of
// a tree, until StopFrom. The thread itself is in none.
func (a *Accounts) StartFrom(tid int) error {
	if err := a.objects.Starters.Put(int32(tid), uint32(1)); err != nil {
		return fmt.Errorf("account for what thread %d starts: %w", tid, err)
	}
	return nil
}

// StopFrom ends what StartFrom began. The trees go on.
func (a *Accounts) StopFrom(tid int) error {
	if err := a.objects.Starters.Delete(int32(tid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("account no more for what thread %d starts: %w", tid, err)
	}
	return nil
}

// Read hands over the processes that have ended since the last Read, in the
// order of their ends, and does not wait for others.
func (a *Accounts) Read(handle func(Process)) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	err := bpf.DrainRing(a.reader, func(sample []byte) error {
		var raw taskAccountProcessAccount
		if len(sample) != int(unsafe.Sizeof(raw)) {
			return fmt.Errorf("%d bytes", len(sample))
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), sample)
		handle(processOf(&raw))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read account of a process: %w", err)
	}
	return nil
}

// livingTries bounds how often the table of processes is read again because too many ended meanwhile.
const livingTries = 5

// Living returns the processes that are not done with, in no order, each once, with what
// those of their threads took that are.
func (a *Accounts) Living() ([]Process, error) {
	for tries := 1; ; tries++ {
		found, err := a.readProcesses()
		if err == nil {
			return slices.Collect(maps.Values(found)), nil
		}
		if !errors.Is(err, ebpf.ErrIterationAborted) || tries == livingTries {
			return nil, fmt.Errorf("read living processes: %w", err)
		}
	}
}

// readProcesses reads the table of processes by its keys. The kernel begins with the first entry
// again when the one that was read last is deleted, and then entries come several times: the last
// counts. BatchLookup does not begin again, but meanwhile the kernel runs no programs of uprobes
// on its CPU.
func (a *Accounts) readProcesses() (map[int32]Process, error) {
	var (
		found = make(map[int32]Process)
		key   int32
		raw   taskAccountProcessAccount
		at    = a.objects.Processes.Iterate()
	)
	for at.Next(&key, &raw) {
		found[key] = processOf(&raw)
	}
	return found, at.Err()
}

// Totals returns what all processes took that are done with.
func (a *Accounts) Totals() (Totals, error) {
	var raw taskAccountAccountTotals
	if err := a.objects.Totals.Get(&raw); err != nil {
		return Totals{}, fmt.Errorf("read totals: %w", err)
	}
	t := Totals{Taken: bpf.TakenOf(&raw.Taken), Processes: raw.Processes, Peak: raw.Peak, Alive: raw.Alive, Done: raw.Done}
	return t, errors.Join(a.objects.LostProcesses.Get(&t.LostProcesses), a.objects.LostMembers.Get(&t.LostMembers))
}

// Close detaches the programs. It is idempotent.
func (a *Accounts) Close() error {
	a.close.Do(func() {
		var err error
		if a.reader != nil {
			err = a.reader.Close()
		}
		a.closed = errors.Join(err, a.attached.Close(), a.objects.Close())
	})
	return a.closed
}
