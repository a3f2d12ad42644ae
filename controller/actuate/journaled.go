// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"sync"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// journaled is a process of which only the journal tells, without DMLib as far
// as anybody knows.
type journaled struct {
	sync.Mutex
	identity procid.Identity
}

var _ Process = (*journaled)(nil)

func (j *journaled) PID() int                         { return j.identity.PID }
func (j *journaled) Identity() procid.Identity        { return j.identity }
func (j *journaled) Alive() bool                      { return !ended(record{Process: &j.identity}) }
func (j *journaled) Images() ([]objfile.Image, error) { return objfile.Images(j.identity.PID) }
func (j *journaled) Mailbox() Mailbox                 { return nil }
