// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"os"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Status accounts for what was received, lost and used so far. With an error some of
// what was used is missing.
func (m *Meter) Status() (*attunev1.ControllerStatus, error) {
	// The peak that getrusage(2) tells may be that of the parent: execve(2) begins with a
	// process that shares its memory.
	self, err := procid.ReadStatus(os.Getpid())
	total := m.account.sums()
	for _, t := range m.members.List() {
		if memory := t.Memory(); memory != nil {
			total.lostSlot += memory.App().LostNoSlot
		}
	}
	return &attunev1.ControllerStatus{
		CpuSeconds:        clock.Process().Seconds(),
		PeakResidentBytes: self.Peak,
		ProbeSeconds:      total.probeNanos / 1e9,
		RecordsLostRing:   total.lostRing,
		RecordsLostSlot:   total.lostSlot,
		RecordsLostQueue:  total.lostQueue,
		RecordsLostBpf:    total.lostBPF + m.kernel.lost(),
	}, err
}
