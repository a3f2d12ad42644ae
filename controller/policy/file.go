// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/quantity"
	"github.com/attune-hpc/attune/internal/trusted"
	"github.com/attune-hpc/attune/internal/values"
)

// Path is where a site keeps its policy.
const Path = "/etc/attune/policy.yaml"

// MaxBytes bounds the file.
const MaxBytes = 1 << 20

// document is the file.
type document struct {
	Default yaml.Node      `yaml:"default"`
	Rules   []ruleEntry    `yaml:"rules"`
	Service []serviceEntry `yaml:"service"`
}

type ruleEntry struct {
	Allow  yaml.Node `yaml:"allow"`
	Deny   yaml.Node `yaml:"deny"`
	Names  yaml.Node `yaml:"names"`
	Users  yaml.Node `yaml:"users"`
	Min    yaml.Node `yaml:"min"`
	Max    yaml.Node `yaml:"max"`
	Reason string    `yaml:"reason"`
}

// Load reads a policy; nil if there is no such file. A file that cannot be
// used is told by the error, and by a Policy that denies everything.
func Load(path string) (*Policy, error) {
	data, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // nil is the policy without a file
	}
	var p *Policy
	if err == nil {
		p, err = Parse(path, data)
	}
	if err != nil {
		err = fmt.Errorf("policy %s: %w", path, err)
		return Denying(err), err
	}
	return p, nil
}

// read takes a file that nobody but root can have written.
func read(path string) ([]byte, error) {
	file, err := trusted.Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return bounded.ReadAll("the policy", file, MaxBytes)
}

// Parse reads the content of a policy file. path is for messages. Names stand for the users that this
// machine and its directory service know now.
func Parse(path string, data []byte) (*Policy, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
	return parse(path, data, directory{
		known: make(map[string][]uint32),
		ask:   func(name string) ([]uint32, error) { return lookUp(ctx, name) },
	})
}

func parse(path string, data []byte, in directory) (*Policy, error) {
	if err := values.OneDocument(data); err != nil {
		return nil, err
	}
	var d document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, inOneLine(err)
	}
	p := &Policy{path: path, data: data, users: in.known}
	var err error
	if p.deny, err = denies(d.Default); err != nil {
		return nil, err
	}
	for i, entry := range d.Rules {
		r, err := entry.compile(i+1, in)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		p.rules = append(p.rules, r)
	}
	for i, entry := range d.Service {
		r, err := entry.compile(i+1, in)
		if err != nil {
			return nil, fmt.Errorf("service: rule %d: %w", i+1, err)
		}
		p.service = append(p.service, r)
	}
	return p, nil
}

// denies reads what becomes of an action that no rule fits. It is allowed where nothing is said
// of it, but not where there is nothing behind the key, as a template may leave it.
func denies(n yaml.Node) (bool, error) {
	var from fields
	var text string
	from.read("default", n, &text)
	if n.IsZero() || text == "allow" || text == "deny" {
		return text == "deny", from.err
	}
	return false, cmp.Or(from.err, fmt.Errorf("default: %q is neither allow nor deny", text))
}

// compile checks one rule.
func (e ruleEntry) compile(number int, in directory) (rule, error) {
	var from fields
	allow, deny := from.list("allow", e.Allow), from.list("deny", e.Deny)
	names, users := from.list("names", e.Names), from.list("users", e.Users)
	r := rule{number: number, deny: deny != nil, min: from.number("min", e.Min), max: from.number("max", e.Max), reason: e.Reason}
	switch {
	case from.err != nil:
		return r, from.err
	case (allow != nil) == r.deny:
		return r, errors.New("needs either allow or deny, with a list of actions")
	case r.deny && (r.min != nil || r.max != nil):
		return r, errors.New("min and max belong to allow: other values are denied by it")
	case r.min != nil && r.max != nil && *r.min > *r.max, r.min != nil && math.IsNaN(*r.min), r.max != nil && math.IsNaN(*r.max):
		return r, errors.New("min and max enclose nothing")
	}
	var err error
	if r.actions, err = actions(append(allow, deny...)); err != nil {
		return r, err
	}
	for _, name := range names {
		r.names = append(r.names, glob(name))
	}
	r.users, err = parseWho(users, in)
	return r, err
}

// KnownAction is an error that lists the actions if there is none of that name.
func KnownAction(name string) error {
	_, err := actions([]string{name})
	return err
}

func actions(names []string) ([]string, error) {
	if slices.Contains(names, "all") {
		return nil, nil
	}
	kinds := attunev1.ActionKinds()
	for _, name := range names {
		if !slices.Contains(kinds, name) {
			return nil, fmt.Errorf("%q is no action: there are %s, all", name, strings.Join(kinds, ", "))
		}
	}
	return names, nil
}

// glob makes a pattern in which * is any text and ? any character.
func glob(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}

// textNumber is the number that a text begins as knobs take it, 64K included.
func textNumber(text string) (float64, bool) {
	digits, scale := quantity.CutUnit(text)
	value, err := strconv.ParseFloat(digits, 64)
	return value * float64(scale), err == nil && !math.IsNaN(value)
}
