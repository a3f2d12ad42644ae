// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	allSignals = ^procid.Signals(0)
	maskBytes  = 8 // the kernel's sigset_t
)

// disposition is the kernel's struct sigaction on amd64 and arm64. Zero is
// the default action.
type disposition struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// setDisposition bypasses os/signal, which never brings back the default
// action of a stop signal or of one that makes Go print its stacks.
func setDisposition(sig syscall.Signal, d disposition) (old disposition, err error) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&d)), uintptr(unsafe.Pointer(&old)), maskBytes, 0, 0)
	if errno != 0 {
		return old, errno
	}
	return old, nil
}

// withMask runs f in a thread that blocks exactly these signals.
func withMask(set procid.Signals, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := setMask(set)
	if err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	defer setMask(old) //nolint:errcheck // the same call has just worked
	return f()
}

func setMask(set procid.Signals) (old procid.Signals, err error) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(&old)), maskBytes, 0, 0)
	if errno != 0 {
		return old, errno
	}
	return old, nil
}

// raise gives this process the default action of sig. It returns when the
// process was continued, or at once where the kernel drops the signal.
func raise(sig syscall.Signal) error {
	return withMask(0, func() error {
		old, err := setDisposition(sig, disposition{})
		if err == nil {
			defer setDisposition(sig, old) //nolint:errcheck // as above
		} else if sig != syscall.SIGSTOP && sig != syscall.SIGKILL {
			return os.NewSyscallError("sigaction", err)
		}
		return os.NewSyscallError("tgkill", unix.Tgkill(unix.Getpid(), unix.Gettid(), sig))
	})
}
