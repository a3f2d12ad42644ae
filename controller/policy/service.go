// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Modes are what a service may do with a process, each more than the one before.
var Modes = []string{"observe", "advise", "tune"}

// none is the word of rules for no mode.
const none = "none"

// Asking is a process of a registration that a service has found.
type Asking struct {
	// Owner registered the application; nil: nobody, who may do nothing.
	Owner *attunev1.Principal
	// UID of the process.
	UID uint32
	// Executable is its path; empty: it is not known. A rule that names executables then
	// denies, and allows nothing.
	Executable string
}

type serviceEntry struct {
	Mode        string    `yaml:"mode"`
	Owners      yaml.Node `yaml:"owners"`
	Users       yaml.Node `yaml:"users"`
	Executables yaml.Node `yaml:"executables"`
	Reason      string    `yaml:"reason"`
}

// serviceRule is one of the service section.
type serviceRule struct {
	number      int
	mode        string // empty: none
	owners      who
	users       who
	executables []*regexp.Regexp // nil: any
	reason      string
}

// compile checks one rule.
func (e serviceEntry) compile(number int, in directory) (serviceRule, error) {
	var from fields
	owners, users, executables := from.list("owners", e.Owners), from.list("users", e.Users), from.list("executables", e.Executables)
	r := serviceRule{number: number, mode: e.Mode, reason: e.Reason}
	switch {
	case from.err != nil:
		return r, from.err
	case e.Mode == none:
		r.mode = ""
	case !slices.Contains(Modes, e.Mode):
		return r, fmt.Errorf("mode: %q is none of %s, %s", e.Mode, strings.Join(Modes, ", "), none)
	}
	var err error
	if r.owners, err = parseWho(owners, in); err != nil {
		return r, fmt.Errorf("owners: %w", err)
	}
	if r.users, err = parseWho(users, in); err != nil {
		return r, fmt.Errorf("users: %w", err)
	}
	if slices.ContainsFunc(r.users, func(m member) bool { return m.role != attunev1.Role_ROLE_UNSPECIFIED }) {
		return r, errors.New("users: a process has a user, no role; roles are those of owners")
	}
	for _, pattern := range executables {
		r.executables = append(r.executables, glob(pattern))
	}
	return r, nil
}

// Service says what a service may do with a process at the most: one of
// [Modes], or nothing at all, an empty mode, and why not. Without a file, and
// where no rule fits, that is nothing. A user never gets to processes of others,
// whatever the rules say, and root's are for rules only that name root.
func (p *Policy) Service(a Asking) (mode, reason string) {
	if why := p.whyNothing(a); why != "" {
		return "", why
	}
	for _, rule := range p.service {
		if rule.isFor(a) && rule.runs(a.Executable) {
			return rule.mode, rule.say(p.path)
		}
	}
	return "", p.noRule(cmp.Or(a.Executable, "a program that is not known"), a)
}

// ServiceAtMost is Service for a process that has yet to execute its program: the most that
// any program gets.
func (p *Policy) ServiceAtMost(a Asking) (mode, reason string) {
	if why := p.whyNothing(a); why != "" {
		return "", why
	}
	reason = p.noRule("any program", a)
	for _, rule := range p.service {
		if !rule.isFor(a) {
			continue
		}
		last := rule.executables == nil
		if slices.Index(Modes, rule.mode) > slices.Index(Modes, mode) || last && mode == "" {
			mode, reason = rule.mode, rule.say(p.path)
		}
		if last {
			break
		}
	}
	return mode, reason
}

// whyNothing is why nothing may be done, whatever the rules say; empty: they decide.
func (p *Policy) whyNothing(a Asking) string {
	switch {
	case !authn.Reaches(a.Owner, a.UID):
		return fmt.Sprintf("policy: the process belongs to user %d: %s may observe and tune their own only", a.UID, a.Owner.GetName())
	case p == nil:
		return "policy: there is no " + Path + ", and a service does nothing that no rule of it allows"
	case p.invalid != nil:
		return fmt.Sprintf("policy: everything is denied until it is mended: %v", p.invalid)
	}
	return ""
}

// noRule says that no rule fits, and what would.
func (p *Policy) noRule(program string, a Asking) string {
	return fmt.Sprintf("policy: no rule of service in %s allows %s, run by user %d, for %s; root adds one there if it is to be allowed",
		p.path, program, a.UID, a.Owner.GetName())
}

// isFor says whether a rule fits but for its executables.
func (r serviceRule) isFor(a Asking) bool {
	if a.UID == 0 && r.mode != "" && !r.users.names(0) {
		return false
	}
	return r.owners.has(a.Owner) && (r.users == nil || r.users.names(a.UID))
}

// runs says whether a rule fits an executable, by path or base name.
func (r serviceRule) runs(executable string) bool {
	switch {
	case r.executables == nil:
		return true
	case executable == "":
		return r.mode == ""
	}
	return slices.ContainsFunc(r.executables, func(pattern *regexp.Regexp) bool {
		return pattern.MatchString(executable) || pattern.MatchString(path.Base(executable))
	})
}

// say tells which rule has decided.
func (r serviceRule) say(file string) string {
	verb := "allows " + r.mode
	if r.mode == "" {
		verb = "denies it"
	}
	text := fmt.Sprintf("policy: service rule %d of %s %s", r.number, file, verb)
	if r.reason != "" {
		text += ": " + r.reason
	}
	return text
}
