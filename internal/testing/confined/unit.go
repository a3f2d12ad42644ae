// SPDX-License-Identifier: Apache-2.0

package confined

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// unit is what a unit says of the rights of its service, and of its start.
type unit struct {
	capabilities uint64
	umask        string
	calls        map[string]bool // that the filter allows, by name
	families     []string
	writable     []string
	readOnly     []string
	noWriteExec  bool
	noNamespaces bool
	environment  []string
	prevents     []string // exit codes and signals after which it stays ended
}

// capabilityNames are CAP_..., by number.
var capabilityNames = strings.Fields(`chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap
	linux_immutable net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot
	sys_ptrace sys_pacct sys_admin sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write
	audit_control setfcap mac_override mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore`)

// parse reads a unit. What a service without any of the settings could do is not
// what this package is for: they have to be there.
func parse(text string) (u unit, err error) {
	u.umask, u.calls = "0022", make(map[string]bool)
	if err := u.allow("@default", true); err != nil {
		return u, err
	}
	for line := range strings.Lines(text) {
		key, value, is := strings.Cut(strings.TrimSpace(line), "=")
		if !is || strings.HasPrefix(line, "#") {
			continue
		}
		if err := u.set(key, value); err != nil {
			return u, err
		}
	}
	u.writable = slices.DeleteFunc(u.writable, func(path string) bool { return slices.Contains(u.readOnly, path) })
	return u, nil
}

// set takes over one setting; others than those of unit are passed over.
func (u *unit) set(key, value string) error {
	switch key {
	case "CapabilityBoundingSet":
		return u.keep(strings.Fields(value))
	case "SystemCallFilter":
		return u.filter(value)
	case "UMask":
		u.umask = value
	case "RestrictAddressFamilies":
		extend(&u.families, value)
	case "ReadWritePaths":
		extend(&u.writable, value)
	case "ReadOnlyPaths":
		extend(&u.readOnly, value)
	case "MemoryDenyWriteExecute":
		u.noWriteExec = value == "yes"
	case "RestrictNamespaces":
		u.noNamespaces = value == "yes"
	case "Environment":
		extend(&u.environment, value)
	case "RestartPreventExitStatus":
		extend(&u.prevents, value)
	}
	return nil
}

// extend adds the words of a setting to a list; a setting of none empties the list.
func extend(list *[]string, value string) {
	*list = append(*list, strings.Fields(value)...)
	if value == "" {
		*list = nil
	}
}

func (u *unit) keep(names []string) error {
	if len(names) == 0 {
		u.capabilities = 0
	}
	for _, name := range names {
		n := slices.Index(capabilityNames, strings.ToLower(strings.TrimPrefix(name, "CAP_")))
		if n < 0 {
			return fmt.Errorf("%s is no capability", name)
		}
		u.capabilities |= 1 << n
	}
	return nil
}

func (u *unit) filter(value string) error {
	names, deny := strings.CutPrefix(value, "~")
	for _, name := range strings.Fields(names) {
		if err := u.allow(name, !deny); err != nil {
			return err
		}
	}
	return nil
}

// allow adds or removes a call, or all of a set that systemd knows.
func (u *unit) allow(name string, yes bool) error {
	if !strings.HasPrefix(name, "@") {
		u.calls[name] = yes
		return nil
	}
	members, err := set(name)
	if err != nil {
		return err
	}
	for _, member := range members {
		if err := u.allow(member, yes); err != nil {
			return err
		}
	}
	return nil
}

// sets are the members of sets of system calls, by name: systemd is asked once for each.
var sets sync.Map

// set returns the calls, and the sets, that a set has.
func set(name string) (members []string, err error) {
	if known, ok := sets.Load(name); ok {
		return known.([]string), nil
	}
	out, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager", name).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("what is in %s: %w: %s", name, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && line != name && !strings.HasPrefix(line, "#") {
			members = append(members, line)
		}
	}
	sets.Store(name, members)
	return members, nil
}

// define is a line of the kernel's header of numbers.
var define = regexp.MustCompile(`(?m)^#define __NR_(\w+)\s+(\d+)$`)

// numbers of system calls, by name.
func numbers() (map[string]uint32, error) {
	header, err := os.ReadFile("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
	if err != nil {
		return nil, err
	}
	all := make(map[string]uint32)
	for _, m := range define.FindAllStringSubmatch(string(header), -1) {
		n, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil {
			return nil, err
		}
		all[m[1]] = uint32(n)
	}
	return all, nil
}
