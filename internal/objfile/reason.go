// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"os"
)

// Errors by which a shell tells why a command cannot be run.
var (
	// ErrNotFound is exit code 127 in a shell.
	ErrNotFound = errors.New("command not found")
	// ErrCannotExecute is exit code 126 in a shell.
	ErrCannotExecute = errors.New("cannot execute")
)

// Final is the inspection of the program that runs in the end: that of the
// interpreter for a script, else the inspection itself.
func (i Inspection) Final() Inspection {
	for i.Script != nil && i.Script.Program != nil {
		i = *i.Script.Program
	}
	return i
}

// Runnable returns nil if execve(2) should succeed, else why not, wrapping
// [ErrNotFound] or [ErrCannotExecute]. It is a forecast with the reason in
// words, which execve does not give; execve decides.
func (i Inspection) Runnable() error {
	reason, base := "", ErrCannotExecute
	switch i.Kind {
	case KindMissing:
		reason, base = "no such file", ErrNotFound
	case KindUnreachable:
		reason = "a directory of the path may not be searched"
	case KindDirectory:
		reason = "is a directory"
	case KindSpecial:
		reason = "is not a regular file"
	case KindNotExecutable:
		reason = "not executable: permission denied (chmod +x, or a file system mounted with noexec)"
	case KindNotELF:
		reason = "neither an ELF program nor a script with #!"
	case KindCorrupt:
		reason = i.Detail
	case KindOtherMachine:
		reason = "built for " + i.Machine.String()
	case KindLibrary:
		reason = "a shared library, not a program"
	case KindScript:
		return i.scriptRunnable()
	default:
		return i.loaderExists()
	}
	return fmt.Errorf("%s: %w: %s", i.Path, base, reason)
}

func (i Inspection) scriptRunnable() error {
	switch {
	case i.Script.Interpreter == "":
		return fmt.Errorf("%s: %w: #! without an interpreter", i.Path, ErrCannotExecute)
	case i.Script.Program == nil:
		return fmt.Errorf("%s: %w: interpreters nested too deep", i.Path, ErrCannotExecute)
	}
	if err := i.Script.Program.Runnable(); err != nil {
		return fmt.Errorf("interpreter of %s: %w", i.Path, err)
	}
	return nil
}

// loaderExists explains the most confusing "no such file": the program is
// there, its loader is not.
func (i Inspection) loaderExists() error {
	if i.Interpreter == "" {
		return nil
	}
	if _, err := os.Stat(i.Interpreter); err != nil {
		return fmt.Errorf("%s: %w: its dynamic loader %s is missing", i.Path, ErrNotFound, i.Interpreter)
	}
	return nil
}

// PreloadRefusal returns "" if DMLib can be preloaded into the program, else
// why not, in words for the report. For a script it is about the program that
// runs in the end.
func (i Inspection) PreloadRefusal() string {
	final := i.Final()
	if final.Privileged != NotPrivileged {
		return fmt.Sprintf("%s: the loader ignores LD_PRELOAD", final.Privileged)
	}
	switch final.Kind {
	case KindDynamic, KindLoader:
		return ""
	case KindStatic, KindStaticPIE:
		return "statically linked: DMLib cannot be preloaded"
	case KindELF32:
		return "32-bit program: DMLib is 64-bit"
	case KindOtherMachine:
		return fmt.Sprintf("built for %v: DMLib is built for %v", final.Machine, HostMachine)
	case KindDynamicMusl:
		return "linked against musl: DMLib needs glibc"
	case KindDynamicOther:
		return fmt.Sprintf("unknown dynamic loader %s: DMLib needs glibc", final.Interpreter)
	case KindUnreadable:
		return "program cannot be read: " + final.Detail
	case KindUnreachable:
		return "no permission to look at its program"
	}
	return "cannot be run: " + final.Kind.String()
}
