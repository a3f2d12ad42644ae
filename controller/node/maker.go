// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/metrics"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// rareLook bounds how long a process is unknown whose start was lost.
const rareLook = 30 * time.Second

// maker makes the controllers of sessions. Its methods may be called from any
// goroutine.
type maker struct {
	config        Config
	owners        *owners
	rules         rules
	registrations *registrations
	auditor       auditor
	watcher       *discover.Watcher
	create        func(controller.Config) (controlled, error)
	left          atomic.Bool // an earlier node may hold changes for sessions of this one
}

// folder of a session's start gate.
func (m *maker) folder(s *session) string {
	return filepath.Join(m.config.gates(), strconv.Itoa(s.number))
}

// makeController makes that of a session.
func (m *maker) makeController(s *session) (controlled, error) {
	c := m.config
	return m.create(controller.Config{
		Analyzer: &finder{
			owners: m.owners, registration: s.key.registration, host: c.Host, credentials: c.Credentials,
		},
		ID: fmt.Sprintf("%s.%d", c.ID, s.number),
		Session: controller.Session{
			Registration: s.key.registration, Job: s.order.job, Owner: s.order.registration.GetOwner(),
			User: authn.OfUser(s.key.uid), Mode: s.order.grant.mode,
		},
		GatePath: filepath.Join(m.folder(s), "gate"), LibraryPath: c.LibraryPath, LateLibrary: true,
		Denied:    func(executable string) string { return m.granted(s, executable).denied() },
		Untouched: func(executable string) string { return m.granted(s, executable).untouched() },
		Over:      s.over,
		Asked:     func(request *attunev1.ManageResponse) { m.auditor.noteSession(s, audit.Received, request) },
		Answered: func(result *attunev1.ActionResult) {
			c.Metrics.Add(metrics.NodeChanges, 1, resultOf(result))
			m.auditor.noteSession(s, audit.Sent, result)
		},
		StateDir: c.journals(), TakesOver: m.left.Load(), Source: m.watcher.Source(s.key.uid), LookInterval: m.lookInterval(), UseBPF: c.UseBPF,
		Policy: c.Policy, Budget: c.Budget, Log: c.Log.With("session", s.number),
	})
}

// granted asks the policy and the registration of the day what may be done to a process of a
// session that executes a program.
func (m *maker) granted(s *session, executable string) grant {
	return m.rules.granted(m.registrations.latest(s.order.registration), s.order.uid, executable)
}

// lookInterval is how often a session looks for processes beside the node's
// events: rarely, for each looks at all of the node; often where the node itself
// has nothing better.
func (m *maker) lookInterval() time.Duration {
	if m.watcher.Status().Mode == discover.ModePoll {
		return track.DefaultPollInterval
	}
	return rareLook
}
