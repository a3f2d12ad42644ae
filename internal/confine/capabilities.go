// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Capabilities is a set of capabilities, a bit each; see capabilities(7).
type Capabilities uint64

// setOf is the set of these capabilities.
func setOf(capabilities []uintptr) (set Capabilities) {
	for _, number := range capabilities {
		set |= 1 << number
	}
	return set
}

// Has says whether a capability is in the set.
func (c Capabilities) Has(number uintptr) bool { return c>>number&1 == 1 }

// Effective returns the capabilities that this thread has in effect. The user id says
// little: root in a container may have none, and a service user may have what it needs.
// In a user namespace they may be of no use for processes outside.
func Effective() (Capabilities, error) {
	_, data, err := readCapabilities()
	return Capabilities(data[0].Effective) | Capabilities(data[1].Effective)<<32, err
}

// readCapabilities returns what the kernel has of this thread, in words of 32 bits.
func readCapabilities() (header unix.CapUserHeader, data [2]unix.CapUserData, err error) {
	header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err = unix.Capget(&header, &data[0]); err != nil {
		err = fmt.Errorf("read capabilities: %w", err)
	}
	return header, data, err
}
