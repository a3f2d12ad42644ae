// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Status accounts for what was received, lost and used so far. With an error some of
// what was used is missing.
func (m *Meter) Status() (*attunev1.ControllerStatus, error) {
	var usage unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &usage)
	peak, peakErr := peakResident()
	total := m.account.sums()
	for _, t := range m.members.List() {
		if memory := t.Memory(); memory != nil {
			total.lostSlot += memory.App().LostNoSlot
		}
	}
	return &attunev1.ControllerStatus{
		CpuSeconds:        seconds(usage.Utime) + seconds(usage.Stime),
		PeakResidentBytes: peak,
		ProbeSeconds:      total.probeNanos / 1e9,
		RecordsReceived:   total.records,
		RecordsLostRing:   total.lostRing,
		RecordsLostSlot:   total.lostSlot,
		RecordsLostQueue:  total.lostQueue,
		RecordsLostBpf:    total.lostBPF + m.kernel.lost(),
	}, errors.Join(err, peakErr)
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// peakResident is the most memory that this process had, bytes. What getrusage(2)
// tells may be that of its parent: execve(2) begins with a process that shares it.
func peakResident() (uint64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	status, err := self.NewStatus()
	return status.VmHWM, err
}
