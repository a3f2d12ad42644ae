// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrDenied wraps every answer but yes. Its message names the rule.
var ErrDenied = errors.New("policy")

// Policy is a list of rules, of which the first that fits decides.
type Policy struct {
	path    string
	data    []byte              // the file
	users   map[string][]uint32 // that its names stand for
	rules   []rule
	service []serviceRule
	deny    bool  // what no rule fits
	invalid error // of a file that cannot be used: everything is denied
	newer   error // of a newer file that cannot be used: this policy stays in force
}

// rule is one of the file.
type rule struct {
	number   int
	deny     bool
	actions  []string // nil: any
	names    []*regexp.Regexp
	users    who // nil: anybody
	min, max *float64
	reason   string
}

// Request is what somebody wants to do.
type Request struct {
	// Action is one of [attunev1.ActionKinds].
	Action string
	// Names are what it is done to, by every name that is known: OBJECT:SYMBOL,
	// knob, setting or path. A rule fits that names one of them.
	Names []string
	// Values that are set or passed; nil: none.
	Values []*attunev1.Value
	// Asker is who asks; nil: nobody, who may do nothing.
	Asker *attunev1.Principal
	// Owner is the user of the process.
	Owner int
}

// Denying is the policy that denies everything because of an error. A policy
// that cannot be read must not be taken for one that allows.
func Denying(err error) *Policy { return &Policy{invalid: err} }

// Kept returns the policy that is in force once a newer file cannot be used because of
// err: p, or, if p has no rules to keep (no file, or one that cannot be used), one that
// denies everything.
func (p *Policy) Kept(err error) *Policy {
	if p == nil || p.invalid != nil {
		return Denying(err)
	}
	kept := *p
	kept.newer = err
	return &kept
}

// Trouble says for people what is wrong with the file and what follows; empty: nothing.
func (p *Policy) Trouble() string {
	switch {
	case p == nil:
		return ""
	case p.invalid != nil:
		return fmt.Sprintf("nothing is touched until the policy is mended: %v", p.invalid)
	case p.newer != nil:
		return fmt.Sprintf("the last good policy stays in force until the new one is mended: %v", p.newer)
	}
	return ""
}

// Check returns nil if the request is allowed, and an error that wraps
// [ErrDenied] and names the rule otherwise.
func (p *Policy) Check(r Request) error {
	if r.Owner < 0 || !authn.Reaches(r.Asker, uint32(r.Owner)) {
		return fmt.Errorf("%w: the process belongs to user %d: only they and root may change it", ErrDenied, r.Owner)
	}
	if p == nil {
		return nil
	}
	if p.invalid != nil {
		return fmt.Errorf("%w: everything is denied until it is mended: %w", ErrDenied, p.invalid)
	}
	for _, rule := range p.rules {
		if rule.fits(r) {
			return rule.decide(p.path, r)
		}
	}
	if p.deny {
		return fmt.Errorf("%w: %s of %s is not allowed by any rule of %s, which denies by default",
			ErrDenied, r.Action, strings.Join(r.Names, ", "), p.path)
	}
	return nil
}

func (r rule) fits(request Request) bool {
	return (r.actions == nil || slices.Contains(r.actions, request.Action)) &&
		r.users.has(request.Asker) &&
		(r.names == nil || slices.ContainsFunc(request.Names, r.named))
}

func (r rule) named(name string) bool {
	return slices.ContainsFunc(r.names, func(pattern *regexp.Regexp) bool { return pattern.MatchString(name) })
}

// decide is the answer of a rule that fits.
func (r rule) decide(path string, request Request) error {
	what := fmt.Sprintf("%s of %s", request.Action, strings.Join(request.Names, ", "))
	why := ""
	if r.reason != "" {
		why = ": " + r.reason
	}
	if r.deny {
		return fmt.Errorf("%w: %s is denied by rule %d of %s%s", ErrDenied, what, r.number, path, why)
	}
	for _, value := range request.Values {
		if n, ok := number(value); !ok || r.min != nil && n < *r.min || r.max != nil && n > *r.max {
			if r.min == nil && r.max == nil {
				break
			}
			return fmt.Errorf("%w: %s: rule %d of %s allows %s only%s", ErrDenied, what, r.number, path, r.bounds(), why)
		}
	}
	return nil
}

// bounds are those of the values, for people.
func (r rule) bounds() string {
	switch {
	case r.max == nil:
		return fmt.Sprintf("values from %v", *r.min)
	case r.min == nil:
		return fmt.Sprintf("values up to %v", *r.max)
	}
	return fmt.Sprintf("values from %v to %v", *r.min, *r.max)
}

// number is a value as one; false for texts. Rounding does not matter to
// bounds that people write.
func number(v *attunev1.Value) (float64, bool) {
	switch k := v.GetKind().(type) {
	case *attunev1.Value_Integer:
		return float64(k.Integer), true
	case *attunev1.Value_Unsigned:
		return float64(k.Unsigned), true
	case *attunev1.Value_Real:
		return k.Real, !math.IsNaN(k.Real)
	case *attunev1.Value_Truth:
		if k.Truth {
			return 1, true
		}
		return 0, true
	case *attunev1.Value_Text:
		return textNumber(k.Text)
	}
	return 0, false
}

// Always returns the policy itself. As a method value it is for those who ask
// for the policy each time, because it may change, where it does not.
func (p *Policy) Always() *Policy { return p }
