// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config says what a controller serves and where its things are.
type Config struct {
	// AnalyzerAddress as gRPC writes it, e.g. "unix:/run/user/1000/.../a.sock";
	// Unix sockets only, whose peers the kernel vouches for. The end of the
	// connection is the end of the Analyzer.
	AnalyzerAddress string
	// Analyzer says where the Analyzer is, instead of AnalyzerAddress. A
	// connection that is lost is made again, there or wherever it is by then.
	Analyzer link.Finder
	// ID tells this controller from all others; empty: made of host and pid.
	ID string
	// Session is what the controller is there for; zero: the Analyzer has one
	// session only.
	Session Session
	// GatePath is the Unix socket of the start gate; its folder belongs to
	// this user alone.
	GatePath string
	// EarlyGate is a listening socket at which processes leave their memory
	// that start before the gate is open; nil: there are none. The controller
	// owns it from New on.
	EarlyGate *os.File
	// LibraryPath is the installed DMLib; empty: nothing is preloaded.
	LibraryPath string
	// LateLibrary is for processes that come without DMLib: it is brought into
	// them while they run, when a measure point or an action needs it, and taken
	// out of their calls at the end. A process that has it comes to the gate.
	LateLibrary bool
	// Entered is told of each process that LateLibrary has entered. It may be called
	// from several goroutines and must not wait; nil: nobody is told.
	Entered func(pid int)
	// Denied says of the program that a process executes, by its path, why the process must be
	// left alone from then on; empty, and nil: it need not.
	Denied func(executable string) string
	// Untouched says at each request why nothing may be changed in processes that
	// execute a program; empty, and nil: changes are up to the policy.
	Untouched func(executable string) string
	// Asked is told of each request of the Analyzer that touches processes, and
	// Answered of what became of each change, for a log of both. They may be
	// called from several goroutines; nil: nobody is told.
	Asked    func(*attunev1.ManageResponse)
	Answered func(*attunev1.ActionResult)
	// Over is called once if the Analyzer wants the session ended, with the
	// changes that are to stay, or says that there is none. The caller then
	// calls Stop. Nil: both are ignored.
	Over func(keep []string, reason error)
	// StateDir holds the undo journals of this user's controllers.
	StateDir string
	// TakesOver says that an earlier controller may have left changes in its journal in
	// StateDir for this one: it looks for them in its first minutes.
	TakesOver bool
	// JobID names the job that is followed; may be empty with a Session: then
	// processes belong that Follow names, and what they fork.
	JobID string
	// Source tells what processes do; the controller closes it. Nil: the best
	// that this user may have, of its own.
	Source track.Source
	// LookInterval is how often processes are looked for beside Source, for what
	// that may have lost; 0: [track.DefaultResyncInterval].
	LookInterval time.Duration
	// UseBPF allows uprobes and kernel process events where the user may
	// have them.
	UseBPF bool
	// uprobes tunes the kernel's probes; the zero value is good.
	uprobes uprobe.Options
	// Hidden finds variables without symbol; nil: named settings that need one
	// are refused, or their old value stays unknown.
	Hidden *hidden.Prober
	// Lease is how long a change outlives a silent Analyzer. 0: 10 seconds.
	Lease time.Duration
	// Policy says which tuning actions are allowed, and is asked for at each of
	// them; nil: a user's own processes may be changed, and by root all.
	Policy func() *policy.Policy
	// Budget is the share of a process' CPU time that its measure points may
	// take; 0: [meter.DefaultBudget]. Beyond it less of them is delivered. 1: all of
	// it, there is no limit.
	Budget float64
	// Digests remembers checksums of programs; nil: one of its own.
	Digests *objfile.Digests
	// Readers read what belongs to processes; nil: this process does.
	Readers *readers.Pool
	// Log may be nil.
	Log *slog.Logger
	// GateTimeout is how long processes wait at the start gate, as the DMLib of LibraryPath
	// was built; 0: as it is shipped.
	GateTimeout time.Duration

	budgetClock func() time.Time // what the budget's rounds go by; nil: [time.Now]
}

// Session names what a controller of a node's service is there for.
type Session struct {
	// Registration id.
	Registration string
	// Job is the execution.
	Job *attunev1.Job
	// User whose processes they are. Their DMLib may come to the gate. What runs
	// as somebody else, by a set-user-id bit, is followed and not looked into.
	User *attunev1.Principal
	// Mode is the most that this node allows: observe, advise or tune.
	Mode string
	// Owner registered the application: the policy is asked whether they may do
	// what the Analyzer wants done. Needed with Registration, since the
	// controller's own user may do anything.
	Owner *attunev1.Principal
}

// Validate reports what is missing or contradictory.
func (c Config) Validate() error {
	switch {
	case c.AnalyzerAddress == "" && c.Analyzer == nil:
		return errors.New("controller: no analyzer address")
	case c.Analyzer == nil && !strings.HasPrefix(c.AnalyzerAddress, "unix:"):
		return fmt.Errorf("controller: analyzer address %q must be a Unix socket, unix:PATH: "+
			"without certificates nobody is talked to on other machines", c.AnalyzerAddress)
	case !filepath.IsAbs(c.GatePath):
		return errors.New("controller: gate path must be absolute, programs change their directory")
	case c.LibraryPath != "" && !filepath.IsAbs(c.LibraryPath):
		return errors.New("controller: library path must be absolute")
	case c.StateDir == "":
		return errors.New("controller: no state directory")
	case c.JobID == "" && c.Session.Registration == "":
		return errors.New("controller: no job id")
	case c.Session.Registration != "" && c.Session.Owner == nil:
		return errors.New("controller: a registration without an owner")
	case !(c.Budget >= 0 && c.Budget <= 1): // not a number neither
		return errors.New("controller: the budget of measure points is a share of the CPU time, 0 to 1")
	case c.Lease < 0:
		return errors.New("controller: negative lease")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.GateTimeout = cmp.Or(c.GateTimeout, gate.Timeout)
	if c.budgetClock == nil {
		c.budgetClock = time.Now
	}
	c.Budget = cmp.Or(c.Budget, meter.DefaultBudget)
	if c.ID == "" {
		host, _ := os.Hostname() // only for people
		c.ID = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if c.Untouched == nil {
		c.Untouched = func(string) string { return "" }
	}
	if c.Asked == nil {
		c.Asked = func(*attunev1.ManageResponse) {}
	}
	if c.Answered == nil {
		c.Answered = func(*attunev1.ActionResult) {}
	}
	if c.Entered == nil {
		c.Entered = func(int) {}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Environment is what the environment of a program that a process executes, or starts, needs,
// beside what it has, to come to the gate of the controller that is made from c.
func (c Config) Environment(starter int) []string {
	var env []string
	if c.JobID != "" {
		env = append(env, "ATTUNE_JOB="+c.JobID)
	}
	if c.LibraryPath == "" {
		return env
	}
	if c.LateLibrary {
		// What the program starts gets DMLib late, and nothing of ours in its
		// environment: a job takes that to nodes and into containers that lack the
		// library, and outlives it here.
		env = append(env, "ATTUNE_ONCE=1")
	}
	preload := c.LibraryPath
	if present := os.Getenv("LD_PRELOAD"); present != "" {
		preload += ":" + present
	}
	env = append(env, gate.KnownFilters(starter)...)
	return append(env, "ATTUNE_SOCKET="+c.GatePath, "LD_PRELOAD="+preload, sanitizerOption())
}

// sanitizerOption lets programs with a shared AddressSanitizer, which otherwise
// end at once where anything is preloaded, run.
func sanitizerOption() string {
	const option = "verify_asan_link_order=0"
	if present := os.Getenv("ASAN_OPTIONS"); present != "" {
		return "ASAN_OPTIONS=" + present + ":" + option
	}
	return "ASAN_OPTIONS=" + option
}
