// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// KernelTypesPath is where the kernel shows the types of its structures.
const KernelTypesPath = "/sys/kernel/btf/vmlinux"

// The kernel's structs of include/kernel_types.h. Others of a program's are its
// own, even where the kernel has one of the same name.
var (
	KernelStructs = []string{
		"task_struct", "signal_struct", "pid", "pid_namespace", "ns_common", "cred",
		"bpf_uprobe", "bpf_uprobe_multi_run_ctx",
	}
	// ExecStructs are for programs that look at what a process executes. Some of their members lie in
	// anonymous ones, which takes as long to find as all the rest.
	ExecStructs = slices.Concat(KernelStructs, []string{
		"linux_binprm", "file", "path", "dentry", "qstr", "inode", "super_block", "mm_struct",
	})
	// CallStructs are for programs that follow calls to their return.
	CallStructs = slices.Concat(ExecStructs, []string{"uprobe_task", "uprobes_state", "xol_area"})
	// TakenStructs are for programs that read what a thread took.
	TakenStructs = slices.Concat(KernelStructs, []string{"sched_entity", "sched_info", "task_io_accounting"})
	// AccountStructs are for programs that account for trees of processes.
	AccountStructs = slices.Concat(TakenStructs, []string{"mm_struct", "percpu_counter"})
	// FileStructs are for programs that look at what is read and written of files.
	FileStructs = slices.Concat(ExecStructs, []string{
		"fdtable", "files_struct", "fs_struct", "mount", "sock", "sock_common", "socket", "thread_info", "vfsmount",
	})
)

// KernelTypes returns what the loader needs to know of the running kernel in
// order to relocate programs that use its structs of these names in local: the
// same structs, with the kernel's offsets. It returns nil if that cannot be found quickly;
// the loader then reads all of the kernel's types itself.
//
// Doing it here takes 2 ms and no lasting memory. The loader takes 25 ms to
// index the kernel's 100,000 types, and far longer on machines with many
// modules, because it indexes those too.
func KernelTypes(local *btf.Spec, names []string) *btf.Spec {
	wanted, err := wantedStructs(local, names)
	if err != nil {
		return nil
	}
	if err := WithFile(KernelTypesPath, func(raw []byte) error { return findOffsets(raw, wanted) }); err != nil {
		return nil
	}
	builder, err := btf.NewBuilder(nil, nil)
	if err != nil {
		return nil
	}
	for _, s := range wanted {
		if !s.found {
			continue
		}
		if _, err := builder.Add(s.local); err != nil {
			return nil
		}
	}
	spec, err := builder.Spec()
	if err != nil {
		return nil
	}
	return spec
}

// wantedStruct is a copy of a struct that a program uses, whose offsets are to
// be replaced by the kernel's.
type wantedStruct struct {
	local *btf.Struct
	found bool
	// optional are members that a kernel may lack, which the programs ask for themselves: those
	// that the program's struct has under another name, with three underscores and what it is.
	optional []string
}

func wantedStructs(local *btf.Spec, names []string) (map[string]*wantedStruct, error) {
	// Copied as members of one, so that the copies refer to each other.
	all := &btf.Struct{}
	for typ, err := range local.All() {
		if err != nil {
			return nil, err
		}
		if s, ok := typ.(*btf.Struct); ok && slices.Contains(names, essentialName(s.Name)) {
			all.Members = append(all.Members, btf.Member{Name: s.Name, Type: s})
		}
	}
	wanted := make(map[string]*wantedStruct)
	copies, _ := btf.Copy(all).(*btf.Struct)
	for _, member := range copies.Members {
		if s, ok := member.Type.(*btf.Struct); ok {
			wanted[s.Name] = &wantedStruct{local: s}
		}
	}
	for name, flavour := range wanted {
		of := wanted[essentialName(name)]
		if of == flavour {
			continue
		}
		delete(wanted, name)
		if of == nil {
			continue // the loader finds no struct, and nothing in it
		}
		for _, m := range flavour.local.Members {
			of.local.Members = append(of.local.Members, m)
			of.optional = append(of.optional, m.Name)
		}
	}
	return wanted, nil
}

// essentialName is what the kernel calls a struct of which a program has several forms.
func essentialName(name string) string {
	name, _, _ = strings.Cut(name, "___")
	return name
}

// WithFile calls use with the contents of a file, which are gone when it
// returns. They lie outside the Go heap: 5 MB there would stay resident until
// some later collection.
func WithFile(path string, use func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	memory, err := mapOrRead(file, int(info.Size()))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(memory) }()
	return use(memory)
}

// mapOrRead maps the file, or a copy of it where the kernel (before 6.16)
// cannot map its type information. The copy takes 5 ms, most of them for page
// faults.
func mapOrRead(file *os.File, size int) ([]byte, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err == nil {
		return memory, nil
	}
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	if n, err := file.ReadAt(memory, 0); n < size {
		return nil, errors.Join(err, unix.Munmap(memory))
	}
	return memory, nil
}
