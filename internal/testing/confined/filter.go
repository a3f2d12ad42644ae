// SPDX-License-Identifier: Apache-2.0

package confined

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, which the processor has in its own byte order.
const (
	atCall     = 0
	atArch     = 4
	atArgument = 16 // the low half of the first, 8 bytes each
)

// code is the filter as the kernel takes it: as systemd's, of which there are
// several, in one.
func (u *unit) code() ([]byte, error) {
	known, err := numbers()
	if err != nil {
		return nil, err
	}
	deny := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AUDIT_ARCH_X86_64, SkipTrue: 1},
		deny,
		bpf.LoadAbsolute{Off: atCall, Size: 4},
	}
	// on denies a call by one of its arguments.
	on := func(call string, argument uint32, body ...bpf.Instruction) {
		load := bpf.LoadAbsolute{Off: atArgument + 8*argument, Size: 4}
		again := bpf.LoadAbsolute{Off: atCall, Size: 4}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: known[call], SkipTrue: uint8(len(body) + 2)}, load)
		program = append(append(program, body...), again)
	}
	if u.noWriteExec {
		writeExec := []bpf.Instruction{
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.PROT_WRITE | unix.PROT_EXEC},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PROT_WRITE | unix.PROT_EXEC, SkipTrue: 1}, deny,
		}
		on("mmap", 2, writeExec...)
		exec := bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.PROT_EXEC, SkipTrue: 1}
		on("mprotect", 2, exec, deny)
		on("pkey_mprotect", 2, exec, deny)
	}
	if u.noNamespaces {
		all := uint32(unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
		for _, call := range []string{"clone", "unshare"} {
			on(call, 0, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: all, SkipTrue: 1}, deny)
		}
		on("setns", 1, deny)
		on("clone3", 0, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
	}
	families := []bpf.Instruction{}
	for n, name := range u.families {
		family := map[string]uint32{"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK}[name]
		families = append(families, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(u.families) - n)})
	}
	on("socket", 0, append(families, deny)...)
	for _, name := range slices.Sorted(maps.Keys(u.calls)) {
		if number, is := known[name]; is && u.calls[name] {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
		}
	}
	raw, err := bpf.Assemble(append(program, deny))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, i := range raw {
		if err := binary.Write(&out, binary.NativeEndian, i); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
