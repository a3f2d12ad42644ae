// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// sleepy returns the options of a host with one tunlet that sleeps.
func sleepy(t *testing.T) Options {
	t.Helper()
	options := fast(testTunlet.Dir(t, "sleepy"))
	options.DescriptionDir, options.linger = t.TempDir(), 1
	return options
}

// asleep runs a host until its tunlet sleeps, and no process of it is there.
func asleep(t *testing.T, options Options) (*Host, *observer, sleeper) {
	t.Helper()
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	s := receive(t, o.asleep)
	patience.Until(t, "the end of a sleeping tunlet's process", func() bool { return len(children(t, "attune-tunlet-sleepy")) == 0 })
	return h, o, s
}

// children lists this process' children of a name, zombies left out.
func children(t *testing.T, name string) (found []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatalf("children are not listed here: %v", err)
	}
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // the thread may have ended
		for _, text := range strings.Fields(string(pids)) {
			pid, err := strconv.Atoi(text)
			if command, unread := os.ReadFile("/proc/" + text + "/cmdline"); err == nil && unread == nil && strings.Contains(string(command), name) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// The first time a tunlet is asked, the second time it is known; woken, it runs.
func TestSleep(t *testing.T) {
	options := sleepy(t)
	h, _, first := asleep(t, options)
	if st := h.Status()[0]; st.GetState() != StateAsleep || st.GetVersion() != "0.0.1" || st.GetSummary() == "" || len(st.GetSha256()) != 64 {
		t.Errorf("status %+v", st)
	}
	h.Stop()
	if st := h.Status()[0]; st.GetState() != StateAsleep || st.GetPeakResidentBytes() != 0 {
		t.Errorf("after the end: %+v", st)
	}

	options.startTimeout = 1 // nothing can be started
	_, _, second := asleep(t, options)
	if !proto.Equal(first.info, second.info) {
		t.Errorf("known as\n%v, is\n%v", second.info, first.info)
	}

	options.startTimeout = patience.Limit
	h, o, third := asleep(t, options)
	third.wake()
	third.wake() // once is enough
	if tn := receive(t, o.ready); !proto.Equal(tn.Info(), first.info) {
		t.Errorf("runs as %v", tn.Info())
	}
	if st := h.Status()[0]; st.GetState() != StateRunning {
		t.Errorf("status %+v", st)
	}
	h.Stop()
	receive(t, o.gone)
}

// A tunlet that is kept for a while although it is not of use yet is held to its
// limits as well.
func TestTooMuchWhileAsleep(t *testing.T) {
	options := fast(testTunlet.Dir(t, "sleepyhog"))
	options.linger, options.Limits.MemoryBytes = time.Hour, 100e6
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	s := receive(t, o.asleep)
	patience.Until(t, "its end", func() bool { return len(children(t, "attune-tunlet-sleepyhog")) == 0 })
	if st := h.Status()[0]; st.GetState() != StateAsleep {
		t.Errorf("status %+v", st)
	}
	s.wake() // which starts it again: then it is watched as ever
	if g := receive(t, o.gone); !strings.Contains(g.reason, "MB of memory, of 100") {
		t.Errorf("gone %+v", g)
	}
}

// A tunlet that had to be started to be asked is there at once when it is needed
// soon, and is started again when it died meanwhile.
func TestLinger(t *testing.T) {
	for name, dies := range map[string]bool{"lives": false, "dies": true} {
		t.Run(name, func(t *testing.T) {
			options := sleepy(t)
			options.linger = time.Hour
			o := newObserver()
			h := New(options, o)
			if err := h.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			defer h.Stop()
			s := receive(t, o.asleep)
			before := children(t, "attune-tunlet-sleepy")
			if len(before) != 1 {
				t.Fatalf("processes %v, want one", before)
			}
			if dies {
				if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			s.wake()
			tn := receive(t, o.ready)
			for dies && pidOf(tn) == before[0] { // it was not known yet that it had died
				tn = receive(t, o.ready)
			}
			if !dies && pidOf(tn) != before[0] {
				t.Errorf("process %d runs, %d was there", pidOf(tn), before[0])
			}
		})
	}
}

// A tunlet that cannot be started when it is needed is not waited for.
func TestWokenInVain(t *testing.T) {
	options := sleepy(t)
	options.Dirs = []string{testTunlet.Dir(t, "sleepycrash")}
	h, o, s := asleep(t, options) // the process that was asked would be of use still
	s.wake()
	if g := receive(t, o.gone); g.name != "sleepycrash" || !strings.Contains(g.reason, "started again") {
		t.Errorf("gone %+v", g)
	}
	if st := h.Status()[0]; st.GetState() != StateQuarantined {
		t.Errorf("status %+v", st)
	}
}

// What cannot be used of the cache costs asking the tunlet, and nothing more.
func TestDescriptions(t *testing.T) {
	good := &attunev1.DescribeResponse{Name: "a", ApiVersion: sdk.APIVersion, Version: "7"}
	for name, tt := range map[string]struct {
		info  *attunev1.DescribeResponse
		known bool
	}{
		"kept":           {good, true},
		"another name":   {&attunev1.DescribeResponse{Name: "b", ApiVersion: sdk.APIVersion}, false},
		"another API":    {&attunev1.DescribeResponse{Name: "a", ApiVersion: "999"}, false},
		"a damaged file": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := descriptions(t.TempDir())
			if err := d.put(good, "0"); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(string(d), describedIn("a", "1"))
			content := []byte("\xff\xff damaged")
			if tt.info != nil {
				var err error
				if content, err = proto.Marshal(tt.info); err != nil {
					t.Fatal(err)
				}
			}
			files.Write(t, file, content, 0o600)
			if got := d.get("a", "1"); (got != nil) != tt.known || tt.known && !proto.Equal(got, tt.info) {
				t.Errorf("got %v", got)
			}
			if d.get("a", "2") != nil {
				t.Error("known under another checksum")
			}
		})
	}
}

// A description that has changed takes the place of the old one.
func TestDescriptionIsRenewed(t *testing.T) {
	d := descriptions(t.TempDir())
	for _, version := range []string{"1", "2"} {
		if err := d.put(&attunev1.DescribeResponse{Name: "a", ApiVersion: sdk.APIVersion, Version: version}, "0"); err != nil {
			t.Fatal(err)
		}
		if got := d.get("a", "0"); got.GetVersion() != version {
			t.Errorf("got %v, want version %s", got, version)
		}
	}
}

// A tunlet that was not told what it needs to know has no process, whatever else
// it says of when it is of use. Only where it was told a part is there something to
// report.
func TestNotConfigured(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options map[string]string
		reason  string
	}{
		{"nothing", nil, ""},
		{"a part", map[string]string{"object": "solver"}, "of no use without a value for variable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := needy(t, tt.options)
			st := eventually(t, h, func(st *Status) bool { return st.GetState() == StateAsleep })
			if st.GetReason() != tt.reason || st.GetVersion() == "" {
				t.Errorf("status %+v, want reason %q", st, tt.reason)
			}
			if left := children(t, "attune-tunlet-needy"); len(left) > 0 {
				t.Errorf("processes %v, want none", left)
			}
		})
	}
	_, o := needy(t, map[string]string{"variable": "workers"})
	if got := receive(t, o.ready).Info().GetName(); got != "needy" {
		t.Errorf("%s runs, want needy", got)
	}
}

// needy runs a host with one tunlet that needs an option.
func needy(t *testing.T, given map[string]string) (*Host, *observer) {
	t.Helper()
	options := sleepy(t)
	options.Dirs = []string{testTunlet.Dir(t, "needy")}
	options.Config = map[string]map[string]string{"needy": given}
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	return h, o
}
