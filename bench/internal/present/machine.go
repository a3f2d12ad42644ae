// SPDX-License-Identifier: Apache-2.0

package present

import (
	"fmt"
	"io"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/provenance"
)

// Machine describes where a benchmark ran.
type Machine struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Kernel   string            `json:"kernel"`
	System   string            `json:"system"`
	Go       string            `json:"go"`
	Packages map[string]string `json:"packages,omitempty"`
}

// ThisMachine returns the facts; what cannot be read stays empty. Versions of
// the named Debian packages are added where they are installed.
func ThisMachine(packages ...string) Machine {
	this := provenance.Machine()
	m := Machine{CPU: this.CPU, Cores: runtime.NumCPU(), Kernel: kernel(), System: this.System, Go: runtime.Version()}
	for _, name := range packages {
		out, err := exec.Command("dpkg-query", "-W", "-f=${Version}", name).Output()
		if err != nil || len(out) == 0 {
			continue
		}
		if m.Packages == nil {
			m.Packages = map[string]string{}
		}
		m.Packages[name] = string(out)
	}
	return m
}

// Print writes the facts in two lines.
func (m Machine) Print(to io.Writer) {
	fmt.Fprintf(to, "%s, %d cores, Linux %s, %s, %s\n", m.CPU, m.Cores, m.Kernel, m.System, m.Go)
	var packages []string
	for _, name := range slices.Sorted(maps.Keys(m.Packages)) {
		packages = append(packages, name+" "+m.Packages[name])
	}
	if len(packages) > 0 {
		fmt.Fprintln(to, strings.Join(packages, ", "))
	}
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
