// SPDX-License-Identifier: Apache-2.0

package taskaccount

import (
	"bytes"
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

// filesFeature is what errors are about.
const filesFeature = "bytes by file and network"

// Files knows what the trees of an Accounts read and wrote of each file.
type Files struct {
	objects  taskFilesObjects
	attached bpf.Tracepoints
	reader   *ringbuf.Reader
	accounts bpf.SharedArray[taskFilesFileAccount]
	close    sync.Once
	closed   error
	mu       sync.Mutex        // guards what follows
	names    map[uint32]string // by their place in accounts
	failed   error             // the first Read that did
}

// filesCasts are the variables that hold the numbers of structs.
var filesCasts = map[string]string{
	taskFilesVarTaskType: "task_struct", taskFilesVarFileType: "file",
	taskFilesVarRegistersType: "pt_regs", taskFilesVarPointerType: "hlist_head",
}

// NewFiles loads and attaches the programs. What is done before it returns is in
// nothing. It fails with a *bpf.UnsupportedError where the kernel lacks what it needs.
// The caller must Close it, before a.
func (a *Accounts) NewFiles() (*Files, error) {
	return a.newFiles(bpf.FindCasts(slices.Collect(maps.Values(filesCasts))...))
}

func (a *Accounts) newFiles(casts bpf.Casts) (*Files, error) {
	spec, err := loadTaskFiles()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filesFeature, err)
	}
	if err := casts.Apply(spec, filesCasts); err != nil {
		return nil, fmt.Errorf("%s: %w", filesFeature, err)
	}
	f := &Files{names: make(map[uint32]string)}
	err = spec.LoadAndAssign(&f.objects, &ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{taskFilesMapProcesses: a.objects.Processes},
		Programs:        ebpf.ProgramOptions{KernelTypes: bpf.KernelTypes(spec.Types, bpf.FileStructs)},
	})
	if err != nil {
		return nil, bpf.Explain(filesFeature, err)
	}
	if err := f.start(); err != nil {
		return nil, errors.Join(bpf.Explain(filesFeature, err), f.Close())
	}
	return f, nil
}

func (f *Files) start() (err error) {
	if f.reader, err = ringbuf.NewReader(f.objects.NameRing); err != nil {
		return fmt.Errorf("open ring: %w", err)
	}
	if f.accounts, err = bpf.MapArray[taskFilesFileAccount](f.objects.FileAccounts); err != nil {
		return fmt.Errorf("map accounts: %w", err)
	}
	for tracepoint, program := range f.programs() {
		if err := f.attached.Attach(tracepoint, program); err != nil {
			return err
		}
	}
	return nil
}

// programs are those of the kernel's tracepoints.
func (f *Files) programs() map[string]*ebpf.Program {
	return map[string]*ebpf.Program{"sys_exit": f.objects.FilesCall, "sched_process_exec": f.objects.FilesExec}
}

// Read takes the names of files that were new since the last Read out of the kernel,
// and does not wait for others. It may be called beside the other functions.
func (f *Files) Read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := bpf.DrainRing(f.reader, f.keepName); err != nil {
		f.failed = fmt.Errorf("read name of a file: %w", err)
	}
	return f.failed
}

func (f *Files) keepName(sample []byte) error {
	var raw taskFilesFileName
	const head = int(unsafe.Offsetof(raw.Text))
	if len(sample) < head || len(sample) > int(unsafe.Sizeof(raw)) {
		return fmt.Errorf("%d bytes", len(sample))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), head), sample)
	if int(raw.Length) != len(sample)-head {
		return fmt.Errorf("a name of %d bytes in %d", raw.Length, len(sample)-head)
	}
	f.names[raw.At] = pathOf(sample[head:], raw.Whole != 0)
	return nil
}

// pathOf puts a path together of its names, the last one first, each with a 0 at
// its end. A path that is not whole begins with "...".
func pathOf(names []byte, whole bool) string {
	parts := bytes.Split(bytes.TrimSuffix(names, []byte{0}), []byte{0})
	slices.Reverse(parts)
	path := "/" + string(bytes.Join(parts, []byte("/")))
	if !whole {
		return "..." + path
	}
	return path
}

// List returns the files that were used until now, in no order, with what is not
// told by file. Names are those of the last Read.
func (f *Files) List() ([]File, FileTotals, error) {
	var (
		totals FileTotals
		list   []File
		sums   taskFilesFileTotals
		used   uint64
	)
	if err := errors.Join(f.objects.FileTotals.Get(&sums), f.objects.FilesUsed.Get(&used)); err != nil {
		return nil, totals, fmt.Errorf("read totals of files: %w", err)
	}
	totals = FileTotals{Received: sums.Received, Sent: sums.Sent, Unseen: sums.Unseen, LostCalls: sums.LostCalls}
	for _, program := range f.programs() {
		stats, err := program.Stats()
		if err != nil {
			return nil, totals, fmt.Errorf("read what was missed of files: %w", err)
		}
		totals.LostCalls += stats.RecursionMisses
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := range f.accounts.Elements[:min(used, uint64(len(f.accounts.Elements)))] {
		if raw := &f.accounts.Elements[at]; raw.Mode != 0 {
			list = append(list, fileOf(raw, f.nameOf(uint32(at))))
		}
	}
	return list, totals, nil
}

// nameOf is the path of a file, or what is known of it.
func (f *Files) nameOf(at uint32) string {
	if name, known := f.names[at]; known {
		return name
	}
	key := f.accounts.Elements[at].Key
	return fmt.Sprintf(".../inode %d of device %d:%d", key.Inode, key.Device>>20, key.Device&(1<<20-1))
}

func fileOf(raw *taskFilesFileAccount, path string) File {
	return File{
		Path: path, Inode: raw.Key.Inode, Mode: raw.Mode, Read: raw.ReadBytes, Written: raw.WrittenBytes, ReadCalls: raw.ReadCalls, WrittenCalls: raw.WrittenCalls,
		Sent: raw.SentBytes, Received: raw.ReceivedBytes, Opens: raw.Opens, Executions: raw.Executions, Maps: raw.Maps, Mapped: raw.MappedBytes,
	}
}

// Close detaches the programs. It is idempotent.
func (f *Files) Close() error {
	f.close.Do(func() {
		var err error
		if f.reader != nil {
			err = f.reader.Close()
		}
		f.closed = errors.Join(err, f.attached.Close(), f.accounts.Unmap(), f.objects.Close())
	})
	return f.closed
}
