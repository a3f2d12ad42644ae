// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Barrier says what keeps this process out of the memory of another one that the kernel
// has refused it, and what helps: by the kernel's own rule for debuggers ("Ptrace access
// mode checking" in ptrace(2)), which does not say what of it was the reason.
func Barrier(pid int) string {
	var b barrier
	var err error
	if b.other, b.file, err = statusAndFileOwner(pid); err != nil {
		return err.Error()
	}
	if b.own, err = ReadStatus(os.Getpid()); err != nil {
		return err.Error()
	}
	// Without the right to look into the process its namespaces cannot be compared.
	own, ownErr := ReadFile(os.Getpid(), "uid_map", maxStatusBytes)
	other, otherErr := ReadFile(pid, "uid_map", maxStatusBytes)
	b.foreign = ownErr == nil && otherErr == nil && !bytes.Equal(own, other)
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // none without Yama
	b.scope = strings.TrimSpace(string(scope))
	return b.text()
}

// barrier is what decides whether a process may look into another one.
type barrier struct {
	own, other Status
	file       uint32 // who owns the other's files in /proc
	foreign    bool   // the other is in another user namespace
	scope      string // of Yama
}

func (b barrier) text() string {
	const remedy = "run attune with CAP_SYS_PTRACE, which containers have by --cap-add=SYS_PTRACE"
	missing := b.other.Capabilities &^ b.own.Capabilities
	switch tracer := b.own.Capabilities&(1<<unix.CAP_SYS_PTRACE) != 0; {
	case tracer && b.foreign:
		return "it is in a user namespace beyond the reach of CAP_SYS_PTRACE here: run attune in that namespace, or outside of both"
	case b.scope == "3":
		return "kernel.yama.ptrace_scope is 3, which only another boot changes"
	case tracer:
		return "a security module, such as SELinux or AppArmor, or a seccomp filter forbids it to attune"
	case b.foreign:
		return "it is in another user namespace: run attune in that namespace, or outside of both with CAP_SYS_PTRACE"
	case !b.other.Users.are(b.own.Users.Files) || !b.other.Groups.are(b.own.Groups.Files):
		return "it has another user or group: run attune as that one, or with CAP_SYS_PTRACE"
	case missing != 0:
		return fmt.Sprintf("it has capabilities that attune lacks (%s): %s", capabilityNames(missing), remedy)
	case b.file != b.other.Users.Effective:
		return "it cannot be dumped (PR_SET_DUMPABLE): " + remedy
	case b.scope == "1":
		return "kernel.yama.ptrace_scope is 1: start the program with `attune run`, run attune with CAP_SYS_PTRACE, or set it to 0"
	case b.scope == "2": // nor are one's own children to be looked into
		return "kernel.yama.ptrace_scope is 2: run attune with CAP_SYS_PTRACE, or set it to 0"
	}
	return remedy
}

// are says whether all but that for files, which does not matter here, are one.
func (i IDs) are(id uint32) bool { return i.Real == id && i.Effective == id && i.Saved == id }

// capabilities are those of capabilities(7), in the order of their bits.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID
	SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER
	SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE
	SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN
	SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// capabilityNames names the capabilities of a set, the first few of many.
func capabilityNames(set uint64) string {
	const most = 4
	var names []string
	for i := range 64 {
		switch {
		case set>>i&1 == 0:
		case i < len(capabilities):
			names = append(names, "CAP_"+capabilities[i])
		default:
			names = append(names, fmt.Sprint("capability ", i))
		}
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
