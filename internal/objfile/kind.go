// SPDX-License-Identifier: Apache-2.0

package objfile

import "fmt"

// Kind says what a file is that a user wants to run.
type Kind int

// Kinds of files.
const (
	// KindUnknown is the zero value; Inspect does not return it.
	KindUnknown Kind = iota
	// KindMissing does not exist.
	KindMissing
	// KindUnreachable exists or not, but a directory of its path may not be
	// searched.
	KindUnreachable
	// KindDirectory is a directory.
	KindDirectory
	// KindSpecial is a device, FIFO or socket.
	KindSpecial
	// KindNotExecutable has no permission to be executed by this user.
	KindNotExecutable
	// KindUnreadable may be executed, but not read.
	KindUnreadable
	// KindScript begins with #!.
	KindScript
	// KindNotELF is neither a script nor ELF.
	KindNotELF
	// KindELF32 is a 32-bit program, x32 included.
	KindELF32
	// KindOtherMachine is built for another processor.
	KindOtherMachine
	// KindCorrupt is ELF, but cut off or contradictory.
	KindCorrupt
	// KindStatic has no dynamic loader and fixed addresses.
	KindStatic
	// KindStaticPIE has no dynamic loader and is position-independent.
	KindStaticPIE
	// KindLibrary is a shared library without an entry for the kernel.
	KindLibrary
	// KindLoader is the dynamic loader itself, which runs what its arguments
	// name.
	KindLoader
	// KindDynamic is dynamically linked against glibc.
	KindDynamic
	// KindDynamicMusl is dynamically linked against musl.
	KindDynamicMusl
	// KindDynamicOther asks for a dynamic loader that is not known.
	KindDynamicOther
)

// String returns a name for logs.
func (k Kind) String() string {
	names := [...]string{
		KindUnknown: "unknown", KindMissing: "missing", KindUnreachable: "unreachable",
		KindDirectory: "directory", KindSpecial: "special file", KindNotExecutable: "not executable",
		KindUnreadable: "unreadable", KindScript: "script", KindNotELF: "not ELF",
		KindELF32: "32-bit", KindOtherMachine: "other machine", KindCorrupt: "corrupt",
		KindStatic: "static", KindStaticPIE: "static PIE", KindLibrary: "library",
		KindLoader: "loader", KindDynamic: "dynamic", KindDynamicMusl: "dynamic musl",
		KindDynamicOther: "dynamic other",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Privileged says why the kernel would start a program in secure mode, in
// which the loader ignores LD_PRELOAD.
type Privileged int

// Reasons for secure mode.
const (
	// NotPrivileged programs run as the user who starts them.
	NotPrivileged Privileged = iota
	// SetUID programs run as another user.
	SetUID
	// SetGID programs run as another group.
	SetGID
	// FileCapabilities are gained by the program.
	FileCapabilities
)

// String returns the reason in words.
func (p Privileged) String() string {
	return [...]string{"none", SetUID: "setuid", SetGID: "setgid", FileCapabilities: "file capabilities"}[p]
}
