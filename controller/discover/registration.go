// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// registration is one that was checked.
type registration struct {
	*attunev1.Registration
	arguments *regexp.Regexp // nil: any
	uid       uint32         // procevent.AnyUser: everybody's
	wild      bool           // the base name has wildcards
	// target is what the path names in the end; "": not known, or nothing. What is not
	// there yet has no other name.
	target string
}

// compile checks a registration. uidOf finds the user of a name.
func compile(r *attunev1.Registration, uidOf func(name string) (uint32, error)) (*registration, error) {
	c := &registration{Registration: r}
	if r.GetExecutable() == "" {
		return nil, errors.New("no executable")
	}
	if _, err := path.Match(r.GetExecutable(), ""); err != nil {
		return nil, fmt.Errorf("executable %q: %w", r.GetExecutable(), err)
	}
	c.wild = beginning(path.Base(r.GetExecutable())) != path.Base(r.GetExecutable())
	if r.GetArguments() != "" {
		var err error
		if c.arguments, err = bounded.Regexp(r.GetArguments()); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
	}
	var err error
	if c.uid, err = meantUser(r, uidOf); err != nil {
		return nil, err
	}
	return c, nil
}

// follows says whether the path may name another file, as a symbolic link.
func (r *registration) follows() bool { return path.IsAbs(r.GetExecutable()) && !r.wild }

// match matches the arguments with the patterns of those registrations that may mean the
// process.
func (c *candidate) match(usable []*registration) {
	line := strings.Join(c.process.GetCommandLine(), " ")
	c.matched = make(map[*regexp.Regexp]bool)
	for _, r := range usable {
		if r.arguments != nil && r.named(c) && r.arguments.MatchString(line) {
			c.matched[r.arguments] = true
		}
	}
}

// meantUser says whose processes a registration means. Whatever it asks for,
// that of a user means nobody else's.
func meantUser(r *attunev1.Registration, uidOf func(string) (uint32, error)) (uint32, error) {
	site := authn.Reaches(r.GetOwner(), pki.NoUID)
	meant := procevent.AnyUser
	if name := r.GetUser(); name != "" {
		uid, err := uidOf(name)
		if err != nil {
			return 0, fmt.Errorf("user %q: %w", name, err)
		}
		meant = uid
	}
	if site {
		return meant, nil
	}
	owner, err := ownerUID(r.GetOwner(), uidOf)
	switch {
	case err != nil:
		return 0, err
	case meant != procevent.AnyUser && meant != owner:
		return 0, fmt.Errorf("user %q: only an administrator registers for others", r.GetUser())
	}
	return owner, nil
}

// ownerUID returns who a user is on this node. A certificate may name no id,
// which looks like that of root: only somebody who is called root is.
func ownerUID(owner *attunev1.Principal, uidOf func(string) (uint32, error)) (uint32, error) {
	switch {
	case owner.GetRole() != attunev1.Role_ROLE_USER:
		return 0, errors.New("no owner")
	case owner.GetUid() != 0 || owner.GetName() == "root":
		return owner.GetUid(), nil
	}
	uid, err := uidOf(owner.GetName())
	if err != nil {
		return 0, fmt.Errorf("owner %q: %w", owner.GetName(), err)
	}
	return uid, nil
}

// beginning returns a pattern up to its first wildcard.
func beginning(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// names are the file names by which the kernel finds its processes.
func (r *registration) names() []procevent.Name {
	base := path.Base(r.GetExecutable())
	names := []procevent.Name{{Text: beginning(base), Beginning: r.wild, UID: r.uid}}
	if r.target != "" && path.Base(r.target) != base {
		names = append(names, procevent.Name{Text: path.Base(r.target), UID: r.uid})
	}
	return names
}

// fits says whether a process of that user that goes under a name is meant.
// Without a directory the base name counts.
func (r *registration) fits(name string, uid uint32) bool {
	if name == "" || r.uid != procevent.AnyUser && r.uid != uid {
		return false
	}
	if r.target != "" && name == r.target {
		return true
	}
	pattern := r.GetExecutable()
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(pattern, name) // the pattern was checked
	return ok && (!r.wild || !isStarter(path.Base(name)))
}

// isStarter says whether a program of this name starts the application rather
// than being it. A pattern does not mean it; its name does.
func isStarter(base string) bool {
	switch base {
	case "sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "env", "timeout", "nohup", "nice", "time", "numactl", "taskset",
		"srun", "mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra",
		"orterun", "orted", "prterun", "prted", "prun", "hydra_pmi_proxy", "slurmstepd", "slurmstepd-wlm", "slurm_script", "ssh", "sshd", "rsh", "qrsh":
		return true
	}
	return false
}

// named says whether the process goes under a name that is meant.
func (r *registration) named(c *candidate) bool {
	return slices.ContainsFunc(c.names, func(name string) bool { return r.fits(name, c.process.GetUid()) })
}

// agrees says whether the process is meant in everything but its checksum. A
// registration that came after it was looked at has it looked at again.
func (r *registration) agrees(c *candidate) bool {
	switch {
	case !r.named(c), r.arguments != nil && !c.matched[r.arguments]:
		return false
	case r.GetJob() != nil && r.GetJob().Key() != c.process.GetJob().Key():
		return false
	case r.GetBatchOnly() && !c.batch:
		return false
	}
	return true
}

// precedes orders registrations by who has a process that several mean.
func precedes(a, b *registration) int {
	return cmp.Or(
		-cmp.Compare(a.exactness(), b.exactness()),
		cmp.Compare(a.GetRegisteredUnixNano(), b.GetRegisteredUnixNano()),
		cmp.Compare(a.GetId(), b.GetId()),
	)
}

// exactness is greater for what means less, the user's own before all.
func (r *registration) exactness() (score int) {
	for _, is := range []bool{
		r.GetOwner().GetRole() == attunev1.Role_ROLE_USER, r.GetJob() != nil, r.GetSha256() != "",
		r.arguments != nil, !r.wild, strings.Contains(r.GetExecutable(), "/"), r.uid != procevent.AnyUser, r.GetBatchOnly(),
	} {
		score <<= 1
		if is {
			score |= 1
		}
	}
	return score
}
