// SPDX-License-Identifier: Apache-2.0

// Package debugregs sets breakpoints in the debug registers of threads, by perf events,
// and tells whether those of this machine do what they are there for. Some hypervisors
// let a guest's kernel write them and never stop anybody by them.
package debugregs

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Dead says that a breakpoint in a debug register was tried in this process and not
// hit. False where it could not be tried, as where all of them are in use. It is
// tried once; from any goroutine.
var Dead = sync.OnceValue(func() bool {
	hits, err := try()
	return err == nil && hits == 0
})

const (
	executed     = 4 // HW_BREAKPOINT_X
	noKernel     = 1 << 5
	noHypervisor = 1 << 6
	removeOnExec = 1 << 36
	sigtrap      = 1 << 37
)

// attributes are those of a breakpoint that counts.
func attributes(address uint64) unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: noKernel | noHypervisor,
		Bp_type: executed, Ext1: address, Ext2: uint64(unsafe.Sizeof(uintptr(0))),
	}
}

// Open sets a breakpoint in a thread, which gets SIGTRAP with the cookie before it executes
// the instruction there (Linux 5.13). It lasts until the descriptor, which is the
// caller's, is closed, or the thread executes another program.
func Open(tid int, address, cookie uint64) (fd int, err error) {
	attr := attributes(address)
	attr.Sample, attr.Sig_data = 1, cookie
	attr.Bits |= removeOnExec | sigtrap
	return unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// try runs into a breakpoint of this thread, and returns how often it was hit.
func try() (hits uint64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := attributes(uint64(reflect.ValueOf(hit).Pointer()))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	hit()
	var count [8]byte
	if _, err := unix.Read(fd, count[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(count[:]), nil
}

// hit is where the breakpoint is.
//
//go:noinline
func hit() {}
