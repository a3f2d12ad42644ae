// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == unfit {
		serveUnfit()
	}
	ServeIfAsked(echo(), hang(), die(), gone(), tell(), burn(), attempt(), write())
	leaktest.Main(m)
}

func echo() Operation[string, string] {
	return NewOperation("echo", func(_ context.Context, text string) (string, error) { return text, nil })
}

// hang never answers.
func hang() Operation[string, string] {
	return NewOperation("hang", func(context.Context, string) (string, error) {
		time.Sleep(math.MaxInt64) // which Go does not take for a deadlock
		return "", nil
	})
}

// die ends the helper.
func die() Operation[string, string] {
	return NewOperation("die", func(context.Context, string) (string, error) { os.Exit(3); return "", nil })
}

// burn computes until its process has taken so much CPU time.
func burn() Operation[time.Duration, string] {
	return NewOperation("burn", func(_ context.Context, most time.Duration) (string, error) {
		for {
			if used, err := procid.CPUTime(os.Getpid()); err != nil || used > most {
				return "", err
			}
		}
	})
}

func gone() Operation[string, string] {
	return NewOperation("gone", func(context.Context, string) (string, error) { return "", procid.ErrGone })
}

// tell reads a file of /proc/self.
func tell() Operation[string, string] {
	return NewOperation("tell", func(_ context.Context, name string) (string, error) {
		text, err := os.ReadFile("/proc/self/" + name)
		return string(text), err
	})
}

const (
	hostile  = 4711
	harmless = 4712
)

func mustPool(t *testing.T, options Options) (*Pool, *lockedtext.Text) {
	t.Helper()
	log := new(lockedtext.Text)
	options.Log = slog.New(slog.NewTextHandler(log, nil))
	p := New(options)
	t.Cleanup(func() { _ = p.Close() })
	return p, log
}

func mustEcho(t *testing.T, p *Pool, uid uint32) {
	t.Helper()
	if got, err := echo().Ask(t.Context(), p, uid, "a\n\x00b"); got != "a\n\x00b" || err != nil {
		t.Errorf("echo: %q, %v", got, err)
	}
}

func TestOperations(t *testing.T) {
	pool, log := mustPool(t, Options{Patience: patience.Limit})
	for name, p := range map[string]*Pool{"in helpers": pool, "in this process": nil} {
		t.Run(name, func(t *testing.T) {
			mustEcho(t, p, harmless)
			mustEcho(t, p, harmless)
			if _, err := gone().Ask(t.Context(), p, harmless, ""); !errors.Is(err, procid.ErrGone) {
				t.Errorf("gone: %v", err)
			}
		})
	}
	other := NewOperation("other", func(context.Context, string) (string, error) { return "", nil })
	if _, err := other.Ask(t.Context(), pool, harmless, ""); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("an unknown operation: %v", err)
	}
	if strings.Count(log.String(), "\n") != 0 {
		t.Errorf("logged: %s", log.String())
	}
}

// A helper has the rights that reading takes, of those that this process has, and limits;
// started by root it is nobody, and only root can look into it.
func TestRights(t *testing.T) {
	pool, _ := mustPool(t, Options{Patience: patience.Limit})
	own := files.Read(t, "/proc/self/status")
	_, text, _ := strings.Cut(string(own), "CapPrm:\t")
	all, err := strconv.ParseUint(text[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	const reading = 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH
	has, user := all&reading, os.Getuid()
	rights := []string{
		fmt.Sprintf("CapPrm: %016x", has), fmt.Sprintf("CapEff: %016x", has), "NoNewPrivs: 1", "Seccomp: 2",
	}
	if all&(1<<unix.CAP_SETUID) != 0 && all&(1<<unix.CAP_SETGID) != 0 {
		user = confine.Nobody
		rights = append(rights, fmt.Sprintf("CapInh: %016x", has), fmt.Sprintf("CapAmb: %016x", has), "Groups: NStgid")
	}
	rights = append(rights, fmt.Sprintf("Uid: %[1]d %[1]d %[1]d %[1]d", user))
	if all&(1<<unix.CAP_SETPCAP) != 0 {
		rights = append(rights, fmt.Sprintf("CapBnd: %016x", has))
	}
	for file, wanted := range map[string][]string{
		"status": rights,
		"limits": {"Max core file size 0 0", "Max data size 536870912 536870912", "Max cpu time 120 120"},
	} {
		told, err := tell().Ask(t.Context(), pool, harmless, file)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(told), " ")
		for _, want := range wanted {
			if !strings.Contains(words, want) {
				t.Errorf("%s has no %q:\n%s", file, want, told)
			}
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/environ", idle(pool)), &st); err != nil || st.Uid != 0 {
		t.Errorf("user %d may look into it: %v", st.Uid, err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), text[:16]) {
		t.Errorf("this process lost rights as well: %v", err)
	}
}

// idle is the process of the helper that waits.
func idle(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle[0].held.PID()
}

// A helper shows by what it is, and not as the exe that it was executed as.
func TestNameOfHelper(t *testing.T) {
	pool, _ := mustPool(t, Options{Patience: patience.Limit})
	if name, err := tell().Ask(t.Context(), pool, harmless, "comm"); name != Name+"\n" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

// A helper is the pool's until it is reaped.
func TestHas(t *testing.T) {
	p, _ := mustPool(t, Options{Patience: patience.Limit})
	mustEcho(t, p, harmless)
	pid := idle(p)
	if !p.Has(pid) || p.Has(os.Getpid()) || (*Pool)(nil).Has(pid) {
		t.Errorf("of a helper %v, of another process %v, of no pool %v", p.Has(pid), p.Has(os.Getpid()), (*Pool)(nil).Has(pid))
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p.Has(pid) {
		t.Error("there after it was reaped")
	}
}

// A helper that has taken its CPU time is not asked any more.
func TestCPUTime(t *testing.T) {
	p, _ := mustPool(t, Options{Patience: patience.Limit, SlowPatience: patience.Limit})
	mustEcho(t, p, harmless)
	first := idle(p)
	took, err := procid.CPUTime(first)
	if err != nil {
		t.Fatal(err)
	}
	p.options.SlowPatience = 2*took + 100*time.Millisecond
	mustEcho(t, p, harmless)
	if second := idle(p); second != first {
		t.Errorf("helper %d is asked after %d, which has taken little", second, first)
	}
	if _, err := burn().Ask(t.Context(), p, harmless, p.options.SlowPatience+100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	mustEcho(t, p, harmless)
	if next := idle(p); next == first {
		t.Errorf("helper %d is asked again", next)
	}
}

// A user with whom helpers fail is refused, logged once, and tried again; all others are
// served meanwhile.
func TestRefused(t *testing.T) {
	for name, operation := range map[string]Operation[string, string]{"hangs": hang(), "dies": die()} {
		t.Run(name, func(t *testing.T) {
			p, log := mustPool(t, Options{Patience: 500 * time.Millisecond, Pause: time.Millisecond})
			p.options.Patience = patience.Limit
			mustEcho(t, p, harmless) // has a helper ready
			if name == "hangs" {
				p.options.Patience = 500 * time.Millisecond
			}
			for range 2 {
				if _, err := operation.Ask(t.Context(), p, hostile, ""); !errors.Is(err, ErrRefused) {
					t.Errorf("the first time: %v", err)
				}
				patience.Receive(t, "end of the pause", p.Lifted)
			}
			p.options.Patience = patience.Limit
			mustEcho(t, p, harmless)
			mustEcho(t, p, hostile)
			if strings.Count(log.String(), "\n") != 1 || len(p.Refused()) != 0 {
				t.Errorf("logged %q, refused %d", log.String(), p.Refused())
			}
		})
	}
}

// unfit is the argument of a helper that may not make its filter.
const unfit = "unfit"

func serveUnfit() {
	f := &confine.Filter{Calls: make(map[uint32][]confine.Case), Others: confine.Allow}
	f.Set(confine.Refuse, unix.SYS_SECCOMP)
	if err := f.Install(); err != nil {
		panic(err)
	}
	if err := Serve(os.Stdin, os.Stdout, echo()); err == nil {
		panic("it serves without a filter")
	}
	os.Exit(1)
}

// The log says why a helper cannot begin.
func TestUnfit(t *testing.T) {
	p, log := mustPool(t, Options{Patience: patience.Limit, Pause: time.Hour, Command: []string{"/proc/self/exe", unfit}})
	if _, err := echo().Ask(t.Context(), p, harmless, ""); !errors.Is(err, ErrRefused) {
		t.Errorf("echo: %v", err)
	}
	if remedy := "has to allow seccomp(2)"; !strings.Contains(log.String(), remedy) {
		t.Errorf("logged %q, want what %s", log.String(), remedy)
	}
}

// Whoever waits for a user who hangs is refused when that is known, and no user has more
// than a few helpers.
func TestBound(t *testing.T) {
	p, _ := mustPool(t, Options{Patience: time.Second, Pause: time.Hour})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := hang().Ask(t.Context(), p, hostile, ""); !errors.Is(err, ErrRefused) {
				t.Errorf("hang: %v", err)
			}
		})
	}
	group.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.users[hostile]; u == nil || !u.refused() || u.hanging > perUser {
		t.Errorf("the user has %+v", u)
	}
}

// The end of the pool, or of who asks, is waited for by nobody, and refuses nobody.
func TestEnds(t *testing.T) {
	p, log := mustPool(t, Options{Patience: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := hang().Ask(ctx, p, hostile, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = p.Close() })
	if _, err := hang().Ask(t.Context(), p, hostile, ""); !errors.Is(err, errClosed) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := echo().Ask(t.Context(), p, harmless, ""); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
	if strings.Count(log.String(), "\n") != 0 {
		t.Errorf("logged: %s", log.String())
	}
}
