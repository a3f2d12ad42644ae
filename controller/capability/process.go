// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/debugregs"
)

// onChild tries something on a child of our own.
func onChild(n *node, remedy, kernel string, try func(*child) error) finding {
	own, err := n.child()
	if err == nil {
		err = try(own)
	}
	if err != nil {
		return refused(err, remedy, kernel)
	}
	return available("tried on a child")
}

// yama restricts what is possible with own children to what its scope allows
// with other processes of the same user, and is the reason for what is not
// possible even with a child.
func yama(n *node, f finding) finding {
	scope, err := n.read("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil || scope == "0" || n.held.Has(unix.CAP_SYS_PTRACE) && scope != "3" {
		return f
	}
	if f.state != Available && f.reason != notPermitted {
		return f
	}
	const remedy = "set kernel.yama.ptrace_scope to 0, or grant CAP_SYS_PTRACE"
	switch scope {
	case "1":
		if f.state != Available { // a descendant may be reached: it is not Yama
			return f
		}
		return degraded(f.detail, "only descendants may be reached (Yama scope 1)", remedy)
	case "2":
		return unavailable("only administrators may reach other processes (Yama scope 2)", remedy)
	}
	return unavailable("nobody may reach other processes (Yama scope "+scope+")", "boot with another kernel.yama.ptrace_scope: this one cannot be changed back")
}

func ptraceLikely(_ context.Context, n *node) finding { return yama(n, available("not tried")) }

func ptraceTried(_ context.Context, n *node) finding {
	return yama(n, onChild(n, remedyPtrace, "", func(own *child) error { return stopAndResume(own.pid) }))
}

// stopAndResume stops a process and lets it go on.
func stopAndResume(pid int) error {
	runtime.LockOSThread() // only the tracing thread may
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("process ended with %#x while being stopped", uint32(status))
	}
	return unix.PtraceDetach(pid)
}

// hardwareBreakpoint tries what Attune's breakpoints need, on a child: to trace it, and a perf
// event in its debug registers.
func hardwareBreakpoint(ctx context.Context, n *node) finding {
	if debugregs.Dead() {
		return degraded("a uprobe instead, which only root can set", "the debug registers of this machine stop nobody: its hypervisor does not pass them on", "")
	}
	if f := ptraceTried(ctx, n); f.state == Unavailable {
		return f
	}
	return yama(n, onChild(n, remedyPerf, kernelFrom("5.13"), func(own *child) error {
		address, err := own.stack()
		if err != nil {
			return err
		}
		fd, err := debugregs.Open(own.pid, address, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}))
}

// vmWriteLikely tries it on this process itself: whether the kernel has it.
func vmWriteLikely(_ context.Context, n *node) finding {
	var word, copied [8]byte
	if err := transfer(unix.ProcessVMReadv, os.Getpid(), uint64(uintptr(unsafe.Pointer(&word))), &copied); err != nil {
		return refused(err, remedyPtrace, kernelFrom("3.2"))
	}
	return yama(n, available("not tried on another process"))
}

func vmReadTried(_ context.Context, n *node) finding {
	return yama(n, onChild(n, remedyPtrace, kernelFrom("3.2"), func(own *child) error {
		_, _, err := readStack(own)
		return err
	}))
}

// vmWriteTried writes back what it has read.
func vmWriteTried(_ context.Context, n *node) finding {
	return yama(n, onChild(n, remedyPtrace, kernelFrom("3.2"), func(own *child) error {
		address, word, err := readStack(own)
		if err != nil {
			return err
		}
		return transfer(unix.ProcessVMWritev, own.pid, address, &word)
	}))
}

func readStack(own *child) (address uint64, word [8]byte, err error) {
	if address, err = own.stack(); err == nil {
		err = transfer(unix.ProcessVMReadv, own.pid, address, &word)
	}
	return address, word, err
}

type vmCall func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (int, error)

func transfer(call vmCall, pid int, address uint64, word *[8]byte) error {
	local := []unix.Iovec{{Base: &word[0], Len: uint64(len(word))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(word)}}
	n, err := call(pid, local, remote, 0)
	if err == nil && n != len(word) {
		err = fmt.Errorf("%d of %d bytes moved", n, len(word))
	}
	return err
}

func pidfd(*node) finding {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return refused(err, "", kernelFrom("5.3"))
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, 0, nil, 0); err != nil {
		return refused(err, "", kernelFrom("5.1"))
	}
	return available("")
}

// pidfdGetfd takes a copy of the child's standard input.
func pidfdGetfd(_ context.Context, n *node) finding {
	return yama(n, onChild(n, remedyPtrace, kernelFrom("5.6"), func(own *child) error {
		fd, err := unix.PidfdOpen(own.pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		copied, err := unix.PidfdGetfd(fd, 0, 0)
		if err != nil {
			return err
		}
		return unix.Close(copied)
	}))
}

// processMadvise advises that a page of the child's stack is cold, which has
// no effect but on when it would be reclaimed.
func processMadvise(_ context.Context, n *node) finding {
	return onChild(n, "run as root, or with CAP_SYS_NICE; DMLib does it inside the process instead", kernelFrom("5.10"), func(own *child) error {
		address, err := own.stack()
		if err != nil {
			return err
		}
		fd, err := unix.PidfdOpen(own.pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		remote := []unix.RemoteIovec{{Base: uintptr(address), Len: os.Getpagesize()}}
		_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&remote[0])), 1, unix.MADV_COLD, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}
