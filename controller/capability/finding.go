// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"os"

	"github.com/attune-hpc/attune/controller/bpf"

	"golang.org/x/sys/unix"
)

// finding is a Capability without its name.
type finding struct {
	state          State
	detail         string
	reason, remedy string
}

func available(detail string) finding { return finding{state: Available, detail: detail} }

func degraded(detail, reason, remedy string) finding {
	return finding{Degraded, detail, reason, remedy}
}

func unavailable(reason, remedy string) finding {
	return finding{state: Unavailable, reason: reason, remedy: remedy}
}

// refused is what an error says; remedy is for the lack of a privilege, kernel
// for a kernel that does not know the call, where the error has none.
func refused(err error, remedy, kernel string) finding {
	unsupported, is := errors.AsType[*bpf.UnsupportedError](err)
	switch {
	case is && unsupported.Remedy != "":
		return unavailable(unsupported.Reason, unsupported.Remedy)
	case errors.Is(err, os.ErrPermission):
		return unavailable(notPermitted, remedy)
	case is:
		return unavailable(unsupported.Reason, kernel)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.E2BIG), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, bpf.ErrUnsupported):
		return unavailable("this kernel does not have it", kernel)
	}
	return unavailable(err.Error(), "")
}

const (
	notPermitted = "not permitted"

	remedyBPF    = "run as root, or with CAP_BPF and CAP_PERFMON"
	remedyPtrace = "run as root, or with CAP_SYS_PTRACE, or as the owner of the process"
)

func kernelFrom(version string) string { return "needs Linux " + version + " or newer" }
