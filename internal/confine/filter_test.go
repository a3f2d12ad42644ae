// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestMain is also a process that puts itself under a filter.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "filtered" {
		filtered()
	}
	os.Exit(m.Run())
}

// sample has a case of each kind.
func sample() *Filter {
	f := &Filter{Calls: make(map[uint32][]Case), Others: Allow}
	f.Set(Refuse, unix.SYS_ACCT)
	f.Set(Lack, unix.SYS_CLONE3)
	f.Set(Kill, unix.SYS_REBOOT)
	f.Calls[unix.SYS_SOCKET] = []Case{
		{Where: []Argument{Is(0, unix.AF_NETLINK), Is(2, unix.NETLINK_SOCK_DIAG)}, Verdict: Allow},
		{Where: []Argument{Is(0, unix.AF_UNIX)}, Verdict: Allow},
	}
	f.Calls[unix.SYS_OPENAT] = []Case{{Where: []Argument{Without(2, unix.O_ACCMODE)}, Verdict: Allow}}
	f.Calls[unix.SYS_CLONE] = []Case{{Where: []Argument{Having(0, unix.CLONE_THREAD|unix.CLONE_VM)}, Verdict: Allow}, {Verdict: Kill}}
	return f
}

// judge is the verdict of a filter on a call, as the kernel would come to it.
func judge(t *testing.T, f *Filter, arch, call uint32, arguments ...uint64) Verdict {
	t.Helper()
	raw, err := f.Program()
	if err != nil {
		t.Fatal(err)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter is not understood")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64) // struct seccomp_data; the VM reads words in the order of networks
	binary.BigEndian.PutUint32(data[atCall:], call)
	binary.BigEndian.PutUint32(data[atArch:], arch)
	for i, a := range arguments {
		binary.BigEndian.PutUint32(data[atArgument+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[atArgument+8*i+4:], uint32(a>>32))
	}
	verdict, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return Verdict(verdict)
}

func TestFilter(t *testing.T) {
	const native, i386 = unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386
	for _, tt := range []struct {
		name       string
		arch, call uint32
		arguments  []uint64
		want       Verdict
	}{
		{"what has no case", native, unix.SYS_READ, nil, Allow},
		{"refused", native, unix.SYS_ACCT, nil, Refuse},
		{"as if there was none", native, unix.SYS_CLONE3, nil, Lack},
		{"forbidden", native, unix.SYS_REBOOT, nil, Kill},
		{"first of two arguments", native, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, Refuse},
		{"both of two arguments", native, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, Allow},
		{"the second case", native, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 9}, Allow},
		{"no case holds", native, unix.SYS_SOCKET, []uint64{unix.AF_INET}, Refuse},
		{"bits that the kernel drops", native, unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_INET}, Refuse},
		{"none of the bits", native, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CLOEXEC}, Allow},
		{"one of the bits", native, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDWR}, Refuse},
		{"all of the bits", native, unix.SYS_CLONE, []uint64{unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_FS}, Allow},
		{"not all of the bits", native, unix.SYS_CLONE, []uint64{unix.CLONE_VM}, Kill},
		{"another architecture", i386, unix.SYS_READ, nil, Kill},
		{"x32", native, x32 | unix.SYS_READ, nil, Kill},
		{"what a tracer has skipped", native, ^uint32(0), nil, Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := judge(t, sample(), tt.arch, tt.call, tt.arguments...); got != tt.want {
				t.Errorf("%#x, want %#x", got, tt.want)
			}
		})
	}
}

// filtered is a process under the filter, which tries it in a thread that was there before.
func filtered() {
	ask, answers := make(chan struct{}), make(chan error)
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		close(ready)
		<-ask
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		answers <- err
	}()
	<-ready
	if err := sample().Install(); err != nil {
		panic(err)
	}
	close(ask)
	if err := <-answers; !errors.Is(err, unix.EPERM) {
		panic(err)
	}
	if _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
		panic(err)
	}
	_, _, _ = unix.Syscall(unix.SYS_REBOOT, 0, 0, 0) // without the numbers that it takes
	os.Exit(0)
}

// TestInstall: a filter holds of all threads, and ends a process that does what it must
// not.
func TestInstall(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", "filtered").CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || !strings.Contains(ended.String(), "bad system call") {
		t.Errorf("it ended with %v, want it killed: %s", err, out)
	}
}
