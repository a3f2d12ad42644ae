// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/turns"
)

// Common is what both services are asked.
type Common struct {
	// Identity is the service's certificate; nil: none.
	Identity *pki.Identity
	// Connected says whether the registry can be reached.
	Connected func() bool
	Audit     *audit.Log
	Turns     *turns.Board
	// StateDir is the state directory.
	StateDir string
}

// ReadCommon has the registry give what both services have.
func (r *Registry) ReadCommon(c Common) {
	build := buildinfo.Get()
	r.Read(func(put Put) {
		put(BuildInfo, 1, build.Version, build.Commit, build.Go)
		if c.Identity != nil {
			leaf := c.Identity.Leaf()
			put(CertificateExpiry, float64(leaf.NotAfter.Unix()))
			put(CertificateStart, float64(leaf.NotBefore.Unix()))
		}
		put(RegistryConnected, Truth(c.Connected()))
		put(AuditTrouble, Truth(c.Audit.Trouble() != nil))
		put(AuditLost, float64(c.Audit.LostLines()))
		var disk unix.Statfs_t
		if err := unix.Statfs(c.StateDir, &disk); err == nil { // else nobody knows
			put(StateAvailable, float64(disk.Bavail)*float64(disk.Bsize))
		}
		for name, idle := range c.Turns.Idle() {
			put(LoopIdle, idle.Seconds(), name)
		}
		put(LoopsStanding, float64(len(c.Turns.Standing())))
	})
	r.Read(readProcess)
}

// readProcess gives what the kernel says of this process; what it does not say is left out.
func readProcess(put Put) {
	self, err := procfs.Self()
	if err != nil {
		return
	}
	if stat, err := self.Stat(); err == nil {
		put(ProcessCPU, stat.CPUTime())
		put(ProcessMemory, float64(stat.ResidentMemory()))
		if start, err := stat.StartTime(); err == nil {
			put(ProcessStart, start)
		}
	}
	if open, err := self.FileDescriptorsLen(); err == nil {
		put(ProcessFiles, float64(open))
	}
	if limits, err := self.Limits(); err == nil {
		put(ProcessMaxFiles, float64(limits.OpenFiles))
	}
}
