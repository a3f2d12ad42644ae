// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procevent

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestTakenEqualsWait: what comes of a wanted program is accounted for from its exec on,
// also what ended before it was made a member; of a tree whose processes are all waited
// for, wait4(2) tells the same.
func TestTakenEqualsWait(t *testing.T) {
	shell := mustCopyOf(t, "/bin/sh", filepath.Join(t.TempDir(), "attune-wanted"))
	p := mustProcessEvents(t, Options{NodeWide: true, Accounts: true})
	if err := p.Want([]Name{{Text: "attune-wanted", UID: AnyUser}}); err != nil {
		t.Fatal(err)
	}
	const copying = `(dd if=/dev/zero of=/dev/null bs=64k count=200 2>/dev/null; /bin/true) | cat;`
	command := exec.Command(shell, "-c", copying+`echo ready; read line;`+copying+`for i in 1 2 3; do /bin/true; done; exit 3`)
	ready, goOn := mustConverse(t, command)
	if err := errors.Join(ready(), p.AddTo(command.Process.Pid, 5), goOn()); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it exits with 3
	events := drainToEnd(t, p, command.Process.Pid)
	var cpu time.Duration
	var written, unseen uint64
	ends := 0
	for _, e := range events {
		if e.Kind != EventExit {
			continue
		}
		if e.Taken == nil || !e.Member || e.Slot != 5 {
			t.Fatalf("%+v", e)
		}
		if e.PID == command.Process.Pid && (e.Status.ExitStatus() != 3 || e.Parent == 0 || e.Command == "") {
			t.Errorf("%+v", e)
		}
		ends++
		cpu += time.Duration(e.Taken.Runtime)
		written += e.Taken.WrittenChars
		unseen += uint64(e.Taken.Unseen)
	}
	if !isTime(cpu, ends, command.ProcessState) {
		t.Errorf("CPU time %v, wait4 says %v", cpu, timeOf(command.ProcessState))
	}
	if want := uint64(2 * 200 * 65536); written < want || written > want+1000 {
		t.Errorf("%d bytes written, want %d", written, want)
	}
	// A subshell, dd, true and cat, of which the subshell may become one of them.
	if unseen < 3 || unseen > 4 || ends < 7 || ends > 8 {
		t.Errorf("%d ends, and %d before it was a member", ends, unseen)
	}
}

// timeOf is what wait4(2) says of a tree.
func timeOf(tree *os.ProcessState) time.Duration { return tree.UserTime() + tree.SystemTime() }

// isTime compares the CPU time of some processes with what wait4(2) says, which has not
// what processes take after their parents have been told of their end.
func isTime(got time.Duration, processes int, tree *os.ProcessState) bool {
	off := got - timeOf(tree)
	return off >= -time.Millisecond && off <= time.Millisecond+time.Duration(processes)*500*time.Microsecond
}

// TestTakenOfThreads: each thread is accounted for once, whichever ends last, and whichever
// executes another program.
func TestTakenOfThreads(t *testing.T) {
	const executing = `import os, threading, time
work = lambda: sum(range(200000)) and time.sleep(9)
for n in range(3): threading.Thread(target=work, daemon=True).start()
execute = lambda: os.execv("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 4"])
`
	for name, command := range map[string]*exec.Cmd{
		"none":              exec.Command("/usr/bin/python3", "-c", executing+"time.sleep(0.05)"),
		"the first thread":  exec.Command("/usr/bin/python3", "-c", executing+"execute()"),
		"one of the others": exec.Command("/usr/bin/python3", "-c", executing+"t = threading.Thread(target=execute); t.start(); t.join()"),
	} {
		t.Run(name, func(t *testing.T) {
			p := mustProcessEvents(t, Options{NodeWide: true, Accounts: true})
			pid, events := mustFollow(t, p, 0, command)
			if !ended(events, pid) {
				events = drainToEnd(t, p, pid)
			}
			end := events[slices.IndexFunc(events, func(e Event) bool { return e.Kind == EventExit && e.PID == pid })]
			if end.Taken == nil || !isTime(time.Duration(end.Taken.Runtime), 1, command.ProcessState) {
				t.Errorf("%+v with %+v, wait4 says %v", end, end.Taken, timeOf(command.ProcessState))
			}
		})
	}
}

// TestTakenOfHandedOver: a process whose name nobody wants is accounted for from when it is
// handed over, also if it is made a member only while it runs.
func TestTakenOfHandedOver(t *testing.T) {
	p := mustProcessEvents(t, Options{NodeWide: true, Accounts: true})
	command := exec.Command("sh", "-c", `read line; exec sh -c '/bin/true; dd if=/dev/zero of=/dev/null bs=64k count=200 2>/dev/null; echo ready; read line'`)
	ready, goOn := mustConverse(t, command)
	if err := errors.Join(p.Account(command.Process.Pid), goOn(), ready(), p.Add(command.Process.Pid), goOn(), command.Wait()); err != nil {
		t.Fatal(err)
	}
	events := drainToEnd(t, p, command.Process.Pid)
	end := events[len(events)-1]
	if end.Taken == nil || !isTime(time.Duration(end.Taken.Runtime), 3, command.ProcessState) || end.Taken.Unseen != 2 || end.Taken.WrittenChars < 200*65536 {
		t.Errorf("%+v with %+v, wait4 says %v", end, end.Taken, timeOf(command.ProcessState))
	}
}

// TestTakenOfRefused: what a member's children took that are not followed for want of a share is
// the member's.
func TestTakenOfRefused(t *testing.T) {
	const room, slot, copied = 64, 5, 100 * 65536
	shell := mustCopyOf(t, "/bin/sh", filepath.Join(t.TempDir(), "attune-wanted"))
	p := mustProcessEvents(t, Options{NodeWide: true, Accounts: true, MaxProcesses: room})
	if err := p.Want([]Name{{Text: "attune-wanted", UID: AnyUser}}); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(shell, "-c", `echo ready; read line; for i in 1 2; do dd if=/dev/zero of=/dev/null bs=64k count=100 2>/dev/null; done; exit 0`)
	ready, goOn := mustConverse(t, command)
	if err := errors.Join(ready(), p.AddTo(command.Process.Pid, slot)); err != nil {
		t.Fatal(err)
	}
	p.shares.count(slot, room) // as if it had as many members
	if err := errors.Join(goOn(), command.Wait()); err != nil {
		t.Fatal(err)
	}
	events := drainToEnd(t, p, command.Process.Pid)
	taken := events[len(events)-1].Taken
	if p.Refused(slot) != 2 || taken == nil || taken.Unseen != 2 || taken.WrittenChars < 2*copied {
		t.Errorf("%d refused, of which %+v is told, want %d bytes of 2", p.Refused(slot), taken, 2*copied)
	}
}

// TestSharesOfAccounts: whoever forks without end takes no account from others, also by processes
// that are not followed, and has accounts again when those have ended.
func TestSharesOfAccounts(t *testing.T) {
	const room, forks = 64, 100
	shell := mustCopyOf(t, "/bin/sh", filepath.Join(t.TempDir(), "attune-wanted"))
	p := mustProcessEvents(t, Options{NodeWide: true, Accounts: true, MaxProcesses: room})
	if err := p.Want([]Name{{Text: "attune-wanted", UID: AnyUser}, {Text: "true", UID: AnyUser}}); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(shell, "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo ready; read line; kill 0", forks))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ready, goOn := mustConverse(t, command)
	if err := ready(); err != nil {
		t.Fatal(err)
	}
	if accounts := mustCountAccounts(t, p); accounts != room/2 {
		t.Errorf("%d accounts of %d processes, want half of the room for %d", accounts, forks, room)
	}
	modest := exec.Command("true")
	modest.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	pid, events := mustFollow(t, p, 0, modest)
	if !ended(events, pid) {
		events = append(events, drainToEnd(t, p, pid)...)
	}
	if i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == EventExit && e.PID == pid }); events[i].Taken == nil {
		t.Errorf("no account of another user: %+v", events[i])
	}
	if err := goOn(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // killed
	patience.Until(t, "all accounts to be gone", func() bool { return mustCountAccounts(t, p) == 0 })
}

// mustCountAccounts is how many accounts there are, as the shares have it.
func mustCountAccounts(t *testing.T, p *ProcessEvents) (accounts int64) {
	t.Helper()
	if err := p.objects.AccountShares.Lookup(uint32(Shares), &accounts); err != nil {
		t.Fatal(err)
	}
	return accounts
}

// TestNoAccounts: one that only wants names keeps no accounts, of whom nobody would tell
// the end.
func TestNoAccounts(t *testing.T) {
	p := mustProcessEvents(t, Options{NodeWide: true})
	if err := p.Want([]Name{{Text: "true", UID: AnyUser}}); err != nil {
		t.Fatal(err)
	}
	pid, events := mustFollow(t, p, 0, exec.Command("true"))
	ends := slices.IndexFunc(events, func(e Event) bool { return e.Kind == EventExit && e.PID == pid })
	if ends < 0 || events[ends].Taken != nil || !slices.ContainsFunc(events, func(e Event) bool { return e.Program != nil }) {
		t.Errorf("%+v", events)
	}
	var key int32
	if err := p.objects.Accounts.NextKey(nil, &key); !errors.Is(err, ebpf.ErrKeyNotExist) || p.objects.Switch != nil {
		t.Errorf("an account of process %d: %v", key, err)
	}
}

// mustConverse starts a command, which says that it is ready by a line, and goes on when it
// reads one.
func mustConverse(t *testing.T, command *exec.Cmd) (ready, goOn func() error) {
	t.Helper()
	stdin, inErr := command.StdinPipe()
	stdout, outErr := command.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	ready = func() error {
		_, err := lines.ReadString('\n')
		return err
	}
	goOn = func() error {
		_, err := stdin.Write([]byte("\n"))
		return err
	}
	return ready, goOn
}

// drainToEnd returns what has happened until the end of a process was told, which is
// after it was waited for.
func drainToEnd(t *testing.T, p *ProcessEvents, pid int) (events []Event) {
	t.Helper()
	patience.Until(t, "the last switch", func() bool {
		events = append(events, mustDrain(t, p)...)
		return ended(events, pid)
	})
	return events
}

func ended(events []Event, pid int) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Kind == EventExit && e.PID == pid })
}
