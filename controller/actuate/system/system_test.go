// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// keeper is testdata/keeper.c at work.
type keeper struct {
	*targets.Target
	identity                   procid.Identity
	tcp, listener, local, pipe int
}

func mustKeeper(t *testing.T) *keeper {
	t.Helper()
	return mustKeeperOf(t, uint32(os.Getuid()))
}

// mustKeeperOf starts it as a user if the tests are root's.
func mustKeeperOf(t *testing.T, user uint32) *keeper {
	t.Helper()
	command := exec.Command(targets.Build(t, "testdata/keeper.c"))
	if os.Getuid() == 0 && user != 0 {
		asuser.Folder(t) // so that they may enter where the program is
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	k := &keeper{Target: targets.StartCommand(t, command)}
	var err error
	if k.identity, err = procid.Of(k.PID); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(k.Ask(t, "fds"), &k.tcp, &k.listener, &k.local, &k.pipe); err != nil {
		t.Fatal(err)
	}
	return k
}

// prepare opens the keeper for the length of the test.
func (k *keeper) prepare(t *testing.T, request Request) (*plan, error) {
	t.Helper()
	target, err := Open(k.identity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return prepare(target, request)
}

// change makes a change and returns what a journal would have.
func (k *keeper) change(t *testing.T, name, value string, on int) (*plan, []State) {
	t.Helper()
	plan, err := k.prepare(t, Request{Knob: name, Value: value, On: on})
	if err != nil {
		t.Fatal(err)
	}
	states := plan.states
	if err := plan.Run(func(more []State) error { states = append(states, more...); return nil }); err != nil {
		t.Fatal(err)
	}
	return plan, states
}

// takeBack is what is done about a change of which only the journal tells.
func takeBack(identity procid.Identity, states []State) error {
	undo := systemStates(states)
	return undo.TakeBack(context.Background(), actuate.Changed{Process: access.ProcessOf(identity)})
}

func (k *keeper) restore(t *testing.T, states []State) {
	t.Helper()
	if err := takeBack(k.identity, states); err != nil {
		t.Fatal(err)
	}
}

// status is a field of /proc/PID/status.
func (k *keeper) status(t *testing.T, field string) string {
	t.Helper()
	data := files.Read(t, fmt.Sprintf("/proc/%d/status", k.PID))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s", field)
	return ""
}

func ask(fd, level, name int) string { return fmt.Sprintf("option %d %d %d", fd, level, name) }

// What is set from outside is what the program sees, and what it had is what
// it gets back.
func TestSetAndRestore(t *testing.T) {
	k := mustKeeper(t)
	inside := func(question string) func(*testing.T) string {
		return func(t *testing.T) string { return k.Ask(t, question) }
	}
	tests := []struct {
		knob, value string
		on          int
		look        func(*testing.T) string
		want        string // seen while changed
	}{
		{"socket.tcp_nodelay", "1", k.tcp, inside(ask(k.tcp, unix.IPPROTO_TCP, unix.TCP_NODELAY)), "1"},
		{"SOCKET.TCP_NODELAY", "on", Everywhere, inside(ask(k.listener, unix.IPPROTO_TCP, unix.TCP_NODELAY)), "1"},
		{"socket.tcp_notsent_lowat", "16K", k.tcp, inside(ask(k.tcp, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)), "16384"},
		{"socket.tcp_user_timeout", "5000", k.tcp, inside(ask(k.tcp, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)), "5000"},
		{"socket.tcp_keepidle", "77", k.tcp, inside(ask(k.tcp, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)), "77"},
		{"socket.tcp_keepintvl", "7", k.tcp, inside(ask(k.tcp, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)), "7"},
		{"socket.so_keepalive", "1", k.local, inside(ask(k.local, unix.SOL_SOCKET, unix.SO_KEEPALIVE)), "1"},
		{"socket.so_priority", "6", k.tcp, inside(ask(k.tcp, unix.SOL_SOCKET, unix.SO_PRIORITY)), "6"},
		{"socket.so_sndbuf", "100000", k.tcp, inside(ask(k.tcp, unix.SOL_SOCKET, unix.SO_SNDBUF)), "200000"},
		{"socket.so_rcvbuf", "50000", Everywhere, inside(ask(k.local, unix.SOL_SOCKET, unix.SO_RCVBUF)), "100000"},
		{"pipe.size", "100000", k.pipe, inside("pipe"), "131072"},
		{"pipe.size", "1", k.pipe, inside("pipe"), strconv.Itoa(os.Getpagesize())},
		{"thread.affinity", "0", Everywhere, func(t *testing.T) string { return k.status(t, "Cpus_allowed_list") }, "0"},
		{"thread.policy", "batch", Everywhere, func(t *testing.T) string { return mustText(t)(policyOf(k.PID)) }, "batch"},
		{"thread.ionice", "best-effort:7", Everywhere, func(t *testing.T) string { return mustText(t)(ioniceOf(k.PID)) }, "best-effort:7"},
		{"thread.ionice", "idle", k.PID, func(t *testing.T) string { return mustText(t)(ioniceOf(k.PID)) }, "idle"},
		{"limit.core", "0", Everywhere, func(t *testing.T) string {
			var limit unix.Rlimit
			if err := unix.Prlimit(k.PID, unix.RLIMIT_CORE, nil, &limit); err != nil {
				t.Fatal(err)
			}
			return strconv.FormatUint(limit.Cur, 10)
		}, "0"},
	}
	for _, tt := range tests {
		t.Run(tt.knob+"="+tt.value, func(t *testing.T) {
			before := tt.look(t)
			_, states := k.change(t, tt.knob, tt.value, tt.on)
			if got := tt.look(t); got != tt.want {
				t.Errorf("changed to %s, want %s", got, tt.want)
			}
			k.restore(t, states)
			if got := tt.look(t); got != before {
				t.Errorf("restored to %s, was %s", got, before)
			}
			k.restore(t, states) // again does no harm
		})
	}
}

func mustText(t *testing.T) func(string, error) string {
	return func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// The kernel goes on tuning a buffer whose size was set and restored.
func TestBufferTuningComesBack(t *testing.T) {
	k := mustKeeper(t)
	locks := ask(k.tcp, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if got := k.Ask(t, locks); got != "0" {
		t.Fatalf("SO_BUF_LOCK is %s; Linux 5.14 has it", got)
	}
	_, states := k.change(t, "socket.so_sndbuf", "100000", k.tcp)
	if got := k.Ask(t, locks); got != "1" {
		t.Errorf("locks %s while set, want 1", got)
	}
	if _, automatic := k.change(t, "socket.so_sndbuf", "auto", k.tcp); automatic[0].Old != "100000" {
		t.Errorf("old value %s, want 100000", automatic[0].Old)
	}
	k.change(t, "socket.so_sndbuf", "100000", k.tcp)
	k.restore(t, states)
	if got := k.Ask(t, locks); got != "0" {
		t.Errorf("locks %s after restoring, want 0", got)
	}
}

// A number that the process gave to another file is not touched; the file is
// found under its new number.
func TestDescriptorsAreFiles(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "socket.tcp_nodelay", "1", k.tcp)
	const moved = 60
	k.Ask(t, fmt.Sprintf("dup %d %d", k.tcp, moved))
	k.Ask(t, fmt.Sprintf("other %d", k.tcp))
	nodelay := func(fd int) string { return k.Ask(t, ask(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)) }
	k.change(t, "socket.tcp_nodelay", "1", k.tcp) // the other's own decision
	k.restore(t, states)
	if got := nodelay(moved); got != "0" {
		t.Errorf("the moved socket has %s, want 0", got)
	}
	if got := nodelay(k.tcp); got != "1" {
		t.Errorf("the other socket has %s, want 1", got)
	}
	k.Ask(t, fmt.Sprintf("other %d", moved)) // now it is closed for good
	k.restore(t, states)
}

func TestChangedByOthers(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "pipe.size", "128K", k.pipe)
	k.change(t, "pipe.size", "256K", k.pipe)
	if err := takeBack(k.identity, states); !errors.Is(err, access.ErrChangedByOthers) {
		t.Errorf("%v, want ErrChangedByOthers", err)
	}
	if got := k.Ask(t, "pipe"); got != "262144" {
		t.Errorf("overwritten: %s", got)
	}
}

// A full pipe cannot shrink: the change fails and the pipe stays.
func TestFullPipe(t *testing.T) {
	k := mustKeeper(t)
	if k.Ask(t, "fill") != "1" {
		t.Fatal("pipe not filled")
	}
	plan, err := k.prepare(t, Request{Knob: "pipe.size", Value: "4096", On: k.pipe})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Run(nil); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "held more") {
		t.Errorf("%v, want EBUSY", err)
	}
	k.restore(t, plan.states)
	if k.Ask(t, "drain") != "1" {
		t.Error("content lost")
	}
}

// A pipe that is full whenever its writer sleeps gets its old size back all the
// same: there is a moment in each turn at which it holds little.
func TestBusyPipeShrinks(t *testing.T) {
	k := mustKeeper(t)
	k.Ask(t, "pump")
	for range 20 {
		_, states := k.change(t, "pipe.size", "1M", k.pipe)
		for deadline := time.Now().Add(patience.Limit); ; { // its reader may be waiting for a processor
			err := takeBack(k.identity, states)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		if got := k.Ask(t, "pipe"); got != "65536" {
			t.Fatalf("restored to %s, was 65536", got)
		}
	}
}

// Another process with the same pid is never changed, an ended one is no
// error.
func TestAnotherProcess(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "pipe.size", "128K", k.pipe)
	before := k.identity
	before.StartTicks--
	if _, err := Open(before); !errors.Is(err, procid.ErrGone) {
		t.Errorf("%v, want ErrGone", err)
	}
	if err := takeBack(before, states); err != nil {
		t.Error(err)
	}
	if got := k.Ask(t, "pipe"); got != "131072" {
		t.Errorf("restored in a process of that number: %s", got)
	}
	before = k.identity
	before.BootID = "another boot"
	if err := takeBack(before, states); err != nil || k.Ask(t, "pipe") != "131072" {
		t.Errorf("restored after a reboot: %v", err)
	}
}

func TestNothingIsLeftOpen(t *testing.T) {
	k := mustKeeper(t)
	target, err := Open(k.identity)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	before := openfiles.Count(t)
	for _, request := range []Request{
		{Knob: "socket.tcp_nodelay", Value: "1", On: Everywhere},
		{Knob: "socket.tcp_nodelay", Value: "1", On: k.local},
		{Knob: "pipe.size", Value: "1M", On: k.pipe},
	} {
		plan, err := prepare(target, request)
		if err != nil {
			continue // refused is one of the ways
		}
		if err := plan.Run(nil); err != nil {
			t.Error(err)
		}
	}
	if after := openfiles.Count(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestRefused(t *testing.T) {
	k := mustKeeper(t)
	tests := []struct {
		name    string
		request Request
		want    string
	}{
		{"no such knob", Request{Knob: "socket.tcp_fast", Value: "1", On: Everywhere}, "unknown knob"},
		{"near a knob", Request{Knob: "nodelay", Value: "1", On: Everywhere}, "did you mean socket.tcp_nodelay"},
		{"no number", Request{Knob: "thread.nice", Value: "x", On: Everywhere}, "bad value"},
		{"nothing", Request{Knob: "thread.nice", On: Everywhere}, "bad value"},
		{"too much", Request{Knob: "socket.tcp_nodelay", Value: "2", On: Everywhere}, "not 0 or 1"},
		{"overflow", Request{Knob: "pipe.size", Value: "9999999T", On: Everywhere}, "bad value"},
		{"shifted away", Request{Knob: "pipe.size", Value: "16777216T", On: Everywhere}, "bad value"},
		{"not open", Request{Knob: "socket.tcp_nodelay", Value: "1", On: 99}, "not open"},
		{"a pipe", Request{Knob: "socket.tcp_nodelay", Value: "1", On: k.pipe}, "is no TCP socket"},
		{"a Unix socket", Request{Knob: "socket.tcp_nodelay", Value: "1", On: k.local}, "is no TCP socket"},
		{"a socket", Request{Knob: "pipe.size", Value: "4096", On: k.tcp}, "is no pipe"},
		{"no such algorithm", Request{Knob: "socket.tcp_congestion", Value: "two words", On: k.tcp}, "no name of an algorithm"},
		{"foreign thread", Request{Knob: "thread.policy", Value: "batch", On: os.Getpid()}, "has no thread"},
		{"no CPU", Request{Knob: "thread.affinity", Value: "", On: Everywhere}, "not a list of CPUs"},
		{"absent CPU", Request{Knob: "thread.affinity", Value: "16383", On: Everywhere}, "not online"},
		{"reversed", Request{Knob: "thread.affinity", Value: "3-1", On: Everywhere}, "not a list of CPUs"},
		{"priority of other", Request{Knob: "thread.policy", Value: "other:1", On: Everywhere}, "bad value"},
		{"no priority", Request{Knob: "thread.policy", Value: "fifo", On: Everywhere}, "bad value"},
		{"level", Request{Knob: "thread.ionice", Value: "best-effort:8", On: Everywhere}, "not from 0 to 7"},
		{"soft above hard", Request{Knob: "limit.nofile", Value: "20:10", On: Everywhere}, "is above hard"},
		{"fatal", Request{Knob: "limit.cpu", Value: "1", On: Everywhere}, "could kill"},
		{"limit of a thread", Request{Knob: "limit.core", Value: "0", On: 1}, "as a whole"},
		{"unmapped", Request{Knob: "memory.cold", Value: "1000-2000", On: Everywhere}, "nothing mapped"},
		{"unaligned", Request{Knob: "memory.cold", Value: "1001-2000", On: Everywhere}, "page-aligned"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, err := k.prepare(t, tt.request)
			if err == nil {
				err = plan.Run(nil) // what only the attempt shows
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
