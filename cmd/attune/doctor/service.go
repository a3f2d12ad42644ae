// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/cert"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/procid"
)

// What is said of one restriction of a service.
const (
	inForce capability.State = "in force"
	missing capability.State = "missing"
)

// The services, and the program of all but the node's; the remedy is always the unit.
const (
	command         = "attune"
	nodeService     = "attuned"
	analyzerService = "attune-analyzer"
	issuingService  = "attune-ca"
)

// maxFile bounds what is read of a process.
const maxFile = 1 << 20

// diagnoseServices says which restrictions of packaging/systemd are in force for the
// services that run here, and how their certificate's files are kept.
func diagnoseServices() (*Diagnosis, error) {
	pids, err := procid.List()
	if err != nil {
		return nil, err
	}
	d := &Diagnosis{Version: buildinfo.Get().Version}
	found := map[string]int{}
	look := procs.NewReader()
	defer look.Close()
	for _, pid := range pids {
		name := serviceOf(look, pid)
		if name == "" {
			continue
		}
		status, err := procid.ReadStatus(pid)
		if errors.Is(err, procid.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[name]++
		for _, row := range restrictions(name, status) {
			d.add(name, pid, row)
		}
		d.add(name, pid, confinement(name, pid))
		d.add(name, pid, memoryLimit(pid))
	}
	for _, dir := range []string{pki.Directory, pki.StateDirectory} {
		d.Mechanisms = append(d.Mechanisms, certificate(pki.FilesIn(dir, "node"), "")...)
	}
	// Also of services that do not run: they may be kept from it.
	own, ca := pki.AnalyzerFiles(), pki.FilesIn(cert.IssuerDirectory, "ca")
	d.Mechanisms = append(d.Mechanisms, certificate(pki.Files{Cert: own.Cert, Key: own.Key}, authn.ServiceUser)...)
	d.Mechanisms = append(d.Mechanisms, certificate(pki.Files{Cert: ca.Cert, Key: ca.Key}, cert.ServiceUser)...)
	d.Summary = fmt.Sprintf("%d attuned, %d Analyzer and %d issuing service run here. What is missing their units would bring (packaging/systemd).",
		found[nodeService], found[analyzerService], found[issuingService])
	return d, nil
}

func (d *Diagnosis) add(name string, pid int, row capability.Capability) {
	row.Name = fmt.Sprintf("%s %d: %s", name, pid, row.Name)
	if row.State == missing && row.Remedy == "" {
		row.Remedy = "start it by its unit: systemctl start " + name
	}
	d.Mechanisms = append(d.Mechanisms, row)
}

// serviceOf says which service a process is, by its name and what it was started as. Only what has such
// a name is asked for its arguments, which may never answer.
func serviceOf(look procs.Reader, pid int) string {
	stat, err := procid.ReadStat(pid)
	if err != nil || stat.Comm != nodeService && stat.Comm != command {
		return ""
	}
	words, err := look.Arguments(pid)
	if err != nil {
		return ""
	}
	switch base := filepath.Base(words[0]); {
	case base == nodeService:
		return nodeService
	case base == command && len(words) > 2 && words[1] == "analyzer" && words[2] == "serve":
		return analyzerService
	case base == command && len(words) > 2 && words[1] == "cert" && words[2] == "serve":
		return issuingService
	}
	return ""
}

// dangerous are capabilities that no unit of Attune's leaves to its service.
const dangerous = 1<<unix.CAP_SYS_MODULE | 1<<unix.CAP_SYS_RAWIO | 1<<unix.CAP_SYS_BOOT | 1<<unix.CAP_SYS_TIME |
	1<<unix.CAP_MKNOD | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_CHOWN

// restrictions are those that the kernel tells with a process' status.
func restrictions(name string, s procid.Status) []capability.Capability {
	uid := s.Users.Effective
	who := row("user", uid == 0, authn.OfUser(uid).GetName())
	capabilities := row("capabilities", s.Bounding&dangerous == 0, fmt.Sprintf("%d, and an exec could give %d", bits.OnesCount64(s.Capabilities), bits.OnesCount64(s.Bounding)))
	if name != nodeService {
		who = row("user", uid != 0, authn.OfUser(uid).GetName())
		capabilities = row("capabilities", s.Bounding == 0 && s.Capabilities == 0, capabilities.Detail)
	} else if uid != 0 {
		who.Remedy = "it serves this user only; the node's runs as root"
	}
	return []capability.Capability{
		who, capabilities,
		row("no new privileges", s.NoNewPrivileges, ""),
		row("system calls", s.Seccomp == unix.SECCOMP_MODE_FILTER, fmt.Sprintf("%d filters", s.Filters)),
	}
}

func row(name string, holds bool, detail string) capability.Capability {
	state := missing
	if holds {
		state = inForce
	}
	return capability.Capability{Name: name, State: state, Detail: detail}
}

// confinement is AppArmor's.
func confinement(name string, pid int) capability.Capability {
	label, err := procid.ReadFile(pid, "attr/current", maxFile)
	text := strings.TrimSpace(string(bytes.TrimRight(label, "\x00")))
	if err != nil {
		text = "this kernel has no AppArmor, or does not tell"
	}
	r := row("AppArmor", err == nil && strings.HasSuffix(text, "(enforce)"), text)
	if r.State == missing {
		r.Remedy = "where AppArmor is used: packaging/apparmor/" + name + " to /etc/apparmor.d, then apparmor_parser -r"
	}
	return r
}

// memoryLimit is that of the service's control group, of version 2.
func memoryLimit(pid int) capability.Capability {
	const name = "memory limit"
	membership, mounts, err := cgroup.Texts(pid)
	if err != nil {
		return row(name, false, err.Error())
	}
	path, is := cgroup.Path(membership, "")
	dir, found := cgroup.Dir(mounts, "", path)
	if !is || !found {
		return row(name, false, "no control group of version 2 is mounted here")
	}
	limit, err := os.ReadFile(filepath.Join(dir, "memory.max"))
	text := strings.TrimSpace(string(limit))
	if err != nil {
		text = "its control group has none"
	}
	return row(name, err == nil && text != "max", text)
}

// certificate says how the files of this machine's certificate, or of its CA, are kept.
// reader is the user one of whose groups has to be able to read the key; empty: there is none.
func certificate(files pki.Files, reader string) (rows []capability.Capability) {
	for _, file := range []struct {
		path   string
		secret bool
	}{{files.CA, false}, {files.Cert, false}, {files.Key, true}} {
		info, err := os.Stat(file.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // one machine needs none
		}
		if err != nil {
			rows = append(rows, row(file.path, false, err.Error()))
			continue
		}
		st := info.Sys().(*syscall.Stat_t)
		open := os.FileMode(0o022)
		if file.secret {
			open = 0o037
		}
		r := row(file.path, st.Uid == 0 && info.Mode()&open == 0, fmt.Sprintf("mode %03o, user %d, group %d", info.Mode().Perm(), st.Uid, st.Gid))
		if r.State == missing {
			r.Remedy = fmt.Sprintf("chown root %[1]s; chmod %03[2]o %[1]s", file.path, info.Mode().Perm()&^open)
		}
		if file.secret && reader != "" && (info.Mode()&0o040 == 0 || !inGroup(reader, st.Gid)) {
			r.State, r.Remedy = missing, fmt.Sprintf("user %s cannot read it: chgrp %[1]s %[2]s; chmod 640 %[2]s", reader, file.path)
		}
		rows = append(rows, r)
	}
	return rows
}

// inGroup says whether a service's user is in a group, be it by name in /etc/group only.
func inGroup(name string, gid uint32) bool {
	u, err := user.Lookup(name)
	if err != nil {
		return false
	}
	groups, err := u.GroupIds()
	return err == nil && slices.Contains(groups, strconv.FormatUint(uint64(gid), 10))
}
