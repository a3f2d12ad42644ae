// SPDX-License-Identifier: Apache-2.0

package asuser

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// InContainer runs a test of this program again, as root with the rights that Docker leaves to the root of
// a container: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are not among them.
func InContainer(t testing.TB, test string) {
	t.Helper()
	rights := confine.Rights{Keep: []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
	}}
	confine.Apart(func(err error) {
		if err != nil {
			t.Error(err)
			return
		}
		RunTests(t, exec.Command("/proc/self/exe"), test)
	}, rights)
}
