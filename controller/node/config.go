// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/turns"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config says what a node goes by.
type Config struct {
	// ID tells this start of the controller from all others of the site.
	ID string
	// Host is the node's name.
	Host string
	// Version of Attune.
	Version string
	// RunDir holds sockets; users have to be able to enter it.
	RunDir string
	// StateDir holds undo journals.
	StateDir string
	// LibraryPath is the installed DMLib, which users can read; empty: it is
	// brought into nothing.
	LibraryPath string
	// UseBPF allows uprobes and kernel process events.
	UseBPF bool
	// Discover says how processes are found. Its Handler, Digests and Log are the
	// node's.
	Discover discover.Options
	// Registry of the site.
	Registry *registry.Node
	// Credentials for Analyzers.
	Credentials credentials.TransportCredentials
	// Policy is asked what may be done to whose processes; called each time, so
	// that it may change.
	Policy func() *policy.Policy
	// Off says whether Attune is switched off on this node, and why; it is asked
	// often. Nil: it never is.
	Off func() (reason string, off bool)
	// Restarts says at the end whether another attuned follows at once, for which
	// changes that are proven good are held; nil: none does.
	Restarts func() bool
	// HoldTime is for how long; 0: a minute, at most [MaxHold].
	HoldTime time.Duration
	// Audit takes who asked for what to be done, and what was answered; nil:
	// nobody.
	Audit *audit.Log
	// Budget is that of every controller; 0: theirs.
	Budget float64
	// Children are the processes in which sessions run. What else these need they
	// have of [child.ServeOptions]. Run runs the pool.
	Children child.Options
	// Digests remembers checksums; nil: a cache of its own.
	Digests *objfile.Digests
	// Readers read what belongs to processes; nil: this process does.
	Readers *readers.Pool
	// Turns is told that the loops of the node turn; nil: nobody is.
	Turns *turns.Board
	// Metrics takes what is counted and answers at the local socket; nil: one of the
	// node's own.
	Metrics *metrics.Registry
	// Mechanisms says what this node can do.
	Mechanisms []*attunev1.Mechanism
	// Log may be nil.
	Log *slog.Logger
}

// Validate reports what is missing or contradictory.
func (c Config) Validate() error {
	switch {
	case c.ID == "" || c.Host == "":
		return errors.New("node: no id or host name")
	case !filepath.IsAbs(c.RunDir) || !filepath.IsAbs(c.StateDir):
		return errors.New("node: directories must be absolute")
	case c.Registry == nil:
		return errors.New("node: no registry")
	case c.Policy == nil:
		return errors.New("node: no policy")
	case c.HoldTime < 0 || c.HoldTime > MaxHold:
		return fmt.Errorf("node: changes are held for %v at most", MaxHold)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Off == nil {
		c.Off = func() (string, bool) { return "", false }
	}
	c.HoldTime = cmp.Or(c.HoldTime, time.Minute)
	if c.Restarts == nil {
		c.Restarts = func() bool { return false }
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New(metrics.Node)
	}
	if c.Digests == nil {
		c.Digests = objfile.NewDigests("")
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// MaxHold bounds how long changes are held for the node that comes next: sessions look for
// them for as long.
const MaxHold = change.TakeOverTime

// gates is the directory of the sessions' start gates.
func (c Config) gates() string { return filepath.Join(c.RunDir, "gates") }

// JournalFolder is the folder below the state directory that has the undo journals of
// sessions.
const JournalFolder = "journals"

// journals is the directory of the sessions' undo journals.
func (c Config) journals() string { return filepath.Join(c.StateDir, JournalFolder) }
