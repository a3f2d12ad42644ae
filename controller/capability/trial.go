// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
)

func uprobeMulti(_ context.Context, n *node) finding {
	if !bpf.MayLoad(n.held) {
		return unavailable(notPermitted, remedyBPF)
	}
	if err := features.HaveBPFLinkUprobeMulti(); err != nil {
		f := refused(err, remedyBPF, kernelFrom("6.6"))
		return degraded("one perf event per function instead", f.reason, f.remedy)
	}
	return available("")
}

// attachSession is BPF_TRACE_UPROBE_SESSION, which the library does not name yet.
const attachSession ebpf.AttachType = 57

// emptyProgram does nothing, at a uprobe.
func emptyProgram(attach ebpf.AttachType) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name: "attune_trial", Type: ebpf.Kprobe, AttachType: attach, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
}

// uprobeSession tries to attach to a directory: a kernel that knows sessions
// gets so far as to refuse that.
func uprobeSession(context.Context, *node) finding {
	program, err := ebpf.NewProgram(emptyProgram(attachSession))
	if err == nil {
		err = linkToDirectory(program)
		program.Close()
	}
	if errors.Is(err, unix.EBADF) {
		return available("")
	}
	return refused(err, remedyBPF, kernelFrom("6.13"))
}

// linkAttributes is union bpf_attr for BPF_LINK_CREATE of a multi-uprobe.
type linkAttributes struct {
	program, target, attach, flags     uint32
	path, offsets, references, cookies uint64
	count, multiFlags, pid, _          uint32
}

func linkToDirectory(program *ebpf.Program) error {
	const createLink = 28 // BPF_LINK_CREATE
	path, offset := []byte("/\x00"), uint64(0)
	attributes := linkAttributes{
		program: uint32(program.FD()), attach: uint32(attachSession), count: 1,
		path:    uint64(uintptr(unsafe.Pointer(&path[0]))),
		offsets: uint64(uintptr(unsafe.Pointer(&offset))),
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, createLink, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	runtime.KeepAlive(path)
	runtime.KeepAlive(&offset)
	if errno != 0 {
		return errno
	}
	return errors.Join(errors.New("attached to a directory"), unix.Close(int(fd)))
}

// uprobeRegisterWrite loads a program that writes the first parameter's
// register. It is never attached.
func uprobeRegisterWrite(context.Context, *node) finding {
	const offsetOfDI = 112 // in struct pt_regs
	spec := emptyProgram(ebpf.AttachNone)
	spec.Instructions = append(asm.Instructions{
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, offsetOfDI, asm.R2, asm.DWord),
	}, spec.Instructions...)
	program, err := ebpf.NewProgram(spec)
	var verifier *ebpf.VerifierError
	switch {
	case err == nil:
		program.Close()
		return available("")
	case errors.As(err, &verifier):
		return unavailable("the kernel lets no program write registers", "not needed: DMLib changes parameters inside the process")
	}
	return refused(err, remedyBPF, "")
}

func bpfWriteUser(context.Context, *node) finding {
	err := features.HaveProgramHelper(ebpf.Kprobe, asm.FnProbeWriteUser)
	switch {
	case err == nil:
		return available("")
	case errors.Is(err, ebpf.ErrNotSupported):
		return unavailable("the kernel lets no program write the application's memory", "boot without lockdown; process_vm_writev and DMLib do it instead")
	}
	return refused(err, remedyBPF, "")
}

func ringBuffer(context.Context, *node) finding {
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		return refused(err, remedyBPF, kernelFrom("5.8"))
	}
	return available("")
}

const typesFile = "/sys/kernel/btf/vmlinux"

// kernelTypes reads the first bytes of the kernel's type information.
func kernelTypes(n *node) finding {
	const magic = 0xeB9F
	remedy := "needs a kernel with CONFIG_DEBUG_INFO_BTF"
	file, err := os.Open(n.path(typesFile))
	if err != nil {
		return unavailable("no "+typesFile, remedy)
	}
	defer file.Close()
	var start [2]byte
	info, statErr := file.Stat()
	if _, err := file.ReadAt(start[:], 0); err != nil || statErr != nil || binary.NativeEndian.Uint16(start[:]) != magic {
		return unavailable(typesFile+" is not type information", remedy)
	}
	return available(fmt.Sprintf("%d KiB", info.Size()>>10))
}
