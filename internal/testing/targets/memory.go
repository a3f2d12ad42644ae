// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"

	"github.com/attune-hpc/attune/internal/proc"
)

// ReadMemory reads the memory of a process, as it is now.
func ReadMemory(pid int, address uint64, into []byte) error {
	process, err := proc.Open(pid)
	if err != nil {
		return err
	}
	return errors.Join(process.Read(address, into), process.Close())
}

// WriteMemory writes to the memory of a process.
func WriteMemory(pid int, address uint64, data []byte) error {
	process, err := proc.Open(pid)
	if err != nil {
		return err
	}
	return errors.Join(process.Write(address, data), process.Close())
}
