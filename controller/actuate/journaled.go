// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"sync"

	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// journaled is a process of which only the journal tells, without DMLib as far
// as anybody knows.
type journaled struct {
	sync.Mutex
	identity procid.Identity
	sites    *entry.Sites
}

var _ Process = (*journaled)(nil)

func (j *journaled) PID() int                         { return j.identity.PID }
func (j *journaled) Identity() procid.Identity        { return j.identity }
func (j *journaled) Alive() bool                      { return !ended(record{Process: &j.identity}) }
func (j *journaled) Images() ([]objfile.Image, error) { return objfile.Images(j.identity.PID) }
func (j *journaled) Mailbox() Mailbox                 { return nil }

func (j *journaled) Sites() *entry.Sites {
	if j.sites == nil {
		j.sites = NewSites(j)
	}
	return j.sites
}
