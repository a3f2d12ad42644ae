// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// job is the account of a job of Slurm that computed on one core of eight.
func job() *account.Account {
	zero := func() *float64 { return new(0.0) }
	return &account.Account{
		WallSeconds: 100, CPUSeconds: new(96.0), CoresAverage: new(0.96), CoresPeak: new(1.02),
		Exit:   account.Exit{Type: account.ExitNormal, Code: new(0)},
		Memory: account.Memory{Resident: new(uint64(2e9))},
		Available: account.Available{
			System: "slurm", Cores: new(8.0), Memory: new(uint64(16e9)), WallSeconds: new(86400.0),
		},
		Time: account.Time{
			Computing: new(90.0), Kernel: new(6.0), CPU: new(1.0), Disk: new(2.0), Network: zero(), Pipes: zero(), Events: zero(), Locks: new(0.4), Sleep: zero(), Other: new(0.6),
		},
		Processes: account.Processes{Total: new(uint64(2))},
		Tree: []account.Process{
			{PID: 7, Name: "sh", CPUSeconds: new(0.1), Memory: account.Memory{Resident: new(uint64(1e6))}},
			{PID: 8, Name: "solver", CPUSeconds: new(95.9), Memory: account.Memory{Resident: new(uint64(2e9))}},
		},
		Accuracy: map[string]account.Accuracy{"cores_peak": account.Sampled, "cores_average": account.Exact, "memory.resident_peak_bytes": account.Bound},
		Sources:  map[string]string{"available.cores": "asked of slurm", "available.memory_bytes": "asked of slurm", "available.wall_seconds": "asked of slurm"},
	}
}

// TestWorstOfSome: where one had an unknown amount of memory, none is said to have had most.
func TestWorstOfSome(t *testing.T) {
	for _, process := range []int{0, 1} {
		a := job()
		a.Tree[process].Memory.Resident = nil
		if got, want := Worst(a), "process 8 (solver), of 2: 95.9 s of the 96.0 s CPU time"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWorstOfABound: where only the least is known of all, that is said.
func TestWorstOfABound(t *testing.T) {
	a := job()
	a.Note(account.Bound, "wait4(2)", "cpu_seconds")
	if got, want := Worst(a), "process 8 (solver), of 2: 95.9 s of the at least 96.0 s CPU time, and most memory, 2 GB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJob(t *testing.T) {
	a := job()
	var got []string
	for _, b := range append(Used(a), Spent(a)...) {
		got = append(got, b.Name+" "+b.String()+" "+b.Text)
	}
	got = append(append(got, Worst(a), Bounded(a)), Directive(a)...)
	want := `CPU ██░░░░░░░░░░░░░░░░░░  12 % of 8 cores asked of Slurm: 0.96 on average, peak about 1.0
memory ███░░░░░░░░░░░░░░░░░  12 % of 16 GB asked of Slurm: peak at least 2 GB
time ░░░░░░░░░░░░░░░░░░░░  <1 % of 1 d 00 h asked of Slurm: 1 min 40 s
computing ██████████████████░░  90 % 90.0 s
in the kernel █░░░░░░░░░░░░░░░░░░░   6 % 6 s
waiting for storage ░░░░░░░░░░░░░░░░░░░░   2 % 2 s
the rest ░░░░░░░░░░░░░░░░░░░░   2 % 1.6 s: waiting for a CPU, anything else
process 8 (solver), of 2: 95.9 s of the 96.0 s CPU time, and most memory, 2 GB
the speed of one core, for it does one thing after another: 0.96 of 8 cores on average
# memory: a quarter more than the 2 GB that it had at most of 16 GB
# cores: it never used more than 1.0 of 8
# time: it took 1 min 40 s of 1 d 00 h
#SBATCH --mem=2385M
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestNodes: of a job of several nodes the cores count together, of the memory that of the
// node where least was left, and the time once.
func TestNodes(t *testing.T) {
	a := job()
	a.Nodes = []account.Node{
		{Name: "node1", Memory: new(uint64(8e9)), Resident: new(uint64(4e8))},
		{Name: "node2", Memory: new(uint64(8e9)), Resident: new(uint64(6e9))},
	}
	a.Accuracy["nodes.resident_peak_bytes"] = account.Sampled
	a.Tree[1].Node = "node2"
	var got []string
	for _, b := range Used(a) {
		got = append(got, b.Name+" "+b.Percent()+" "+b.Text)
	}
	want := `CPU 12 % of 8 cores asked of Slurm on 2 nodes: 0.96 on average, peak about 1.0
memory 75 % of 8 GB asked of Slurm on node2: peak about 6 GB, the fullest of 2 nodes
time <1 % of 1 d 00 h asked of Slurm: 1 min 40 s
process 8 (solver) on node2, of 2: 95.9 s of the 96.0 s CPU time, and most memory, 2 GB`
	if text := strings.Join(append(got, Worst(a)), "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	a.Nodes[0].Memory = nil
	if bars := Used(a); len(bars) != 2 {
		t.Errorf("of memory that is not known of a node: %+v", bars)
	}
	a.Nodes[0].Resident = nil
	if bars := Used(a); len(bars) != 3 || !strings.HasSuffix(bars[1].Text, "6 GB, the only node that was measured") {
		t.Errorf("of a node that nobody measured: %+v", bars)
	}
}

// TestNoDirective: nothing is recommended where that would be a guess.
func TestNoDirective(t *testing.T) {
	for name, change := range map[string]func(*account.Account){
		"no batch system":       func(a *account.Account) { a.Available.System = "" },
		"one of several tasks":  func(a *account.Account) { a.Available.Part = true },
		"failed":                func(a *account.Account) { a.Exit.Code = new(1) },
		"killed":                func(a *account.Account) { a.Exit = account.Exit{Type: account.ExitSignal, Signal: "SIGKILL"} },
		"no form for it":        func(a *account.Account) { a.Available.System = "lsf" },
		"nothing that is known": func(a *account.Account) { *a = account.Account{Available: a.Available, Exit: a.Exit} },
		"nothing in vain": func(a *account.Account) {
			a.Available.Cores, a.Available.Memory, a.Available.WallSeconds = new(1.0), new(uint64(3e9)), new(600.0)
		},
	} {
		a := job()
		change(a)
		if got := Directive(a); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	starving := job()
	starving.Time.CPU = new(60.0)
	if need, _ := Next(starving); need.Cores != nil || need.MemoryBytes == nil {
		t.Errorf("of a command that waited for CPUs: %+v", need)
	}
}

func TestBounded(t *testing.T) {
	for want, change := range map[string]func(*account.Account){
		"all of them busy":         func(a *account.Account) { a.CoresAverage = new(7.9) },
		"of the cores that":        func(a *account.Account) { a.CoresAverage = new(3.0) },
		"in the kernel":            func(a *account.Account) { a.Time.Kernel, a.Time.Computing = new(80.0), new(16.0) },
		"storage":                  func(a *account.Account) { a.Time.Disk = new(200.0) },
		"CPUs that others had":     func(a *account.Account) { a.Time.CPU = new(200.0) },
		"waited for each other":    func(a *account.Account) { a.Time.Locks = new(200.0) },
		"that attune did not see":  func(a *account.Account) { a.Time.Other = new(200.0) },
		"the other end of a pipe":  func(a *account.Account) { a.Time.Pipes = new(200.0) },
		"the speed of one core, f": func(*account.Account) {},
	} {
		a := job()
		change(a)
		if got := Bounded(a); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Bounded(&account.Account{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if Used(&account.Account{}) != nil || Spent(&account.Account{}) != nil || Worst(&account.Account{}) != "" {
		t.Error("of nothing there is something")
	}
}
