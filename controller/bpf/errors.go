// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// ErrUnsupported is wrapped by every error that says that this kernel, or this
// user on it, cannot do what was asked. It is ebpf.ErrNotSupported under a
// name that callers can use without importing that module.
var ErrUnsupported = ebpf.ErrNotSupported

// UnsupportedError says what cannot be done here, why, and what would help.
type UnsupportedError struct {
	// Feature that was asked for, e.g. "process events".
	Feature string
	// Reason in plain words.
	Reason string
	// Remedy in plain words; empty where there is none.
	Remedy string
	// Err is the cause as the kernel or library told it; may be nil.
	Err error
}

// Error gives feature, reason, remedy and cause on one line.
func (e *UnsupportedError) Error() string {
	var text strings.Builder
	text.WriteString(e.Feature + ": " + e.Reason)
	if e.Remedy != "" {
		text.WriteString(" (" + e.Remedy + ")")
	}
	if e.Err != nil {
		text.WriteString(": " + e.Err.Error())
	}
	return text.String()
}

// Unwrap lets errors.Is find ErrUnsupported and the cause.
func (e *UnsupportedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnsupported}
	}
	return []error{ErrUnsupported, e.Err}
}

// PrivilegeRemedy is what a user lacks who may not load programs.
const PrivilegeRemedy = "needs root or CAP_BPF and CAP_PERFMON"

// Explain turns an error of loading or attaching into an *UnsupportedError
// where the cause is the kernel or the lack of privilege; others are returned
// as they are.
func Explain(feature string, err error) error {
	var known *UnsupportedError
	var verifier *ebpf.VerifierError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &verifier) && confidential():
		return &UnsupportedError{feature, "the kernel is locked down: no program may read its memory", "boot with lockdown=integrity or none", err}
	case errors.As(err, &verifier): // whose errno is often EACCES
		return &UnsupportedError{feature, "this kernel's verifier refuses the program", "please report the kernel version", err}
	case errors.Is(err, os.ErrPermission):
		return &UnsupportedError{feature, "not permitted", PrivilegeRemedy, err}
	case errors.Is(err, ebpf.ErrNotSupported):
		return &UnsupportedError{feature, "this kernel does not support it", "", err}
	}
	return err
}

// confidential says whether the kernel is locked down so far that the helpers
// which read its memory are hidden from programs. Where that cannot be read,
// it is not known.
func confidential() bool {
	state, err := os.ReadFile("/sys/kernel/security/lockdown")
	return err == nil && strings.Contains(string(state), "[confidentiality]")
}

// MayLoad says whether capabilities suffice to load and attach programs:
// CAP_SYS_ADMIN includes both of the narrower ones.
func MayLoad(held confine.Capabilities) bool {
	return held.Has(unix.CAP_SYS_ADMIN) || held.Has(unix.CAP_BPF) && held.Has(unix.CAP_PERFMON)
}

// RequirePrivilege looks at the effective capabilities, not at the user id:
// neither says everything, but root without capabilities can do nothing.
func RequirePrivilege(feature string) error {
	held, err := confine.Effective()
	if err != nil || MayLoad(held) {
		return nil // without an answer the kernel will tell
	}
	return &UnsupportedError{feature, "not permitted", PrivilegeRemedy, os.ErrPermission}
}
