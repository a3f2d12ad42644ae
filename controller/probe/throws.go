// SPDX-License-Identifier: Apache-2.0

package probe

import "github.com/attune-hpc/attune/internal/objfile"

// throws says that an exception may be thrown in a process.
func (t *tenant) throws(images []objfile.Image) error {
	return objfile.Throws(t.process.PID(), images, t.placer.slots.matching)
}

// endangers says why a point must not stay as it is: what the process has loaded
// since can throw exceptions. The caller holds t.mu.
func (t *tenant) endangers(index uint16) error {
	if p := t.placed[index]; p == nil || !p.atReturn {
		return nil
	}
	images, err := t.images()
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	return t.throws(images)
}
