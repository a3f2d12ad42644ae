// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"

	"golang.org/x/sys/unix"
)

// RequirePrivilege looks at the effective capabilities, not at the user id:
// neither says everything, but root without capabilities can do nothing.
func RequirePrivilege(feature string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil // the kernel will tell
	}
	held := func(capability int) bool {
		return data[capability/32].Effective>>(capability%32)&1 == 1
	}
	if held(unix.CAP_SYS_ADMIN) || held(unix.CAP_BPF) && held(unix.CAP_PERFMON) {
		return nil
	}
	return &UnsupportedError{feature, "not permitted", PrivilegeRemedy, os.ErrPermission}
}
