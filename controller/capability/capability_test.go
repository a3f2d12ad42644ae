// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

func find(t *testing.T, found []Capability, name string) Capability {
	t.Helper()
	for _, c := range found {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no entry %q", name)
	return Capability{}
}

// checkConsistent holds for every user on every machine.
func checkConsistent(t *testing.T, found []Capability) {
	t.Helper()
	seen := make(map[string]bool)
	for _, c := range found {
		t.Logf("%-24s %-11s %s | %s | %s", c.Name, c.State, c.Detail, c.Reason, c.Remedy)
		if seen[c.Name] || c.Name != strings.ToLower(c.Name) {
			t.Errorf("%s: name is not unique or not in lower case", c.Name)
		}
		seen[c.Name] = true
		switch c.State {
		case Available:
			if c.Reason != "" || c.Remedy != "" {
				t.Errorf("%s is available, but: %s; %s", c.Name, c.Reason, c.Remedy)
			}
		case Degraded, Unavailable:
			if c.Reason == "" {
				t.Errorf("%s is %s without a reason", c.Name, c.State)
			}
			if strings.Contains(c.Reason, "not permitted") && c.Remedy == "" {
				t.Errorf("%s is not permitted, and no remedy is named", c.Name)
			}
		default:
			t.Errorf("%s has state %q", c.Name, c.State)
		}
	}
}

func TestProbeLeavesNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		opts Options
	}{
		{"full", Options{}},
		{"fast", Options{Fast: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			Probe(t.Context(), test.opts) // what libraries keep
			before := len(leaktest.Descriptors())
			checkConsistent(t, Probe(t.Context(), test.opts))
			if after := len(leaktest.Descriptors()); after > before {
				t.Errorf("descriptors: %d, then %d", before, after)
			}
			if err := leaktest.ChildLeft(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is said about privileges must follow from the capabilities that are
// held, whoever runs the test.
func TestPrivilegesAndProbesAgree(t *testing.T) {
	found := Probe(t.Context(), Options{})
	held, err := confine.Effective()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{uprobes, "uprobe_multi", "bpf_ring_buffer", execEvent} {
		c := find(t, found, name)
		if told := c.Reason == "not permitted" && strings.Contains(c.Remedy, "root"); told == bpf.MayLoad(held) {
			t.Errorf("may load BPF: %t, but told %+v", bpf.MayLoad(held), c)
		}
	}
	if c := find(t, found, "cap_sys_ptrace"); (c.State == Available) != held.Has(unix.CAP_SYS_PTRACE) {
		t.Errorf("%+v", c)
	}
	if c := find(t, found, "memfd_sealing"); c.State != Available {
		t.Errorf("DMLib's memory needs sealing: %+v", c)
	}
}

func TestFastIsSubsetInOrder(t *testing.T) {
	full, fast := Probe(t.Context(), Options{}), Probe(t.Context(), Options{Fast: true})
	at := 0
	for _, c := range fast {
		for at < len(full) && full[at].Name != c.Name {
			at++
		}
	}
	if len(fast) == 0 || len(fast) >= len(full) || at >= len(full) {
		t.Errorf("%d fast entries, %d in all, or another order", len(fast), len(full))
	}
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := Probe(ctx, Options{})
	if len(found) != len(catalogue()) {
		t.Fatalf("%d entries of %d", len(found), len(catalogue()))
	}
	for _, c := range found {
		if c.State != Unavailable || !strings.Contains(c.Reason, "context canceled") {
			t.Errorf("%+v", c)
		}
	}
}

func TestMechanisms(t *testing.T) {
	mechanisms := Mechanisms([]Capability{
		{Name: preload, State: Available},
		{Name: uprobes, State: Unavailable, Reason: "not permitted"},
		{Name: ptrace, State: Degraded, Reason: "descendants only"},
		{Name: "clock", State: Available},
	})
	var got []string
	for _, m := range mechanisms {
		text, err := json.Marshal([]any{m.GetName(), m.GetAvailable(), m.GetReason()})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`["proc",true,""]`, `["dmlib",true,""]`, `["uprobe",false,"not permitted"]`, `["ptrace",true,"descendants only"]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPreloadOfRealLibrary(t *testing.T) {
	missing := t.TempDir() + "/libabsent.so"
	files.Write(t, missing, "no library", 0o600)
	if f := preloadTried(t.Context(), newNode(Options{Library: missing})); f.state != Unavailable {
		t.Errorf("a file that is no library was preloaded: %+v", f)
	}
	if f := preloadTried(t.Context(), newNode(Options{})); f.state != Available {
		t.Errorf("this machine's loader ignores LD_PRELOAD: %+v", f)
	}
}

func BenchmarkFast(b *testing.B) {
	for b.Loop() {
		Probe(b.Context(), Options{Fast: true})
	}
}
