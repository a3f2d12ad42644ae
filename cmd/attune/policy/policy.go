// SPDX-License-Identifier: Apache-2.0

// Package policy is `attune policy`.
package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/users"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Command returns `attune policy`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "policy", Short: "Check a site's policy, and say what it allows"}, newCheck(p), newExplain(p))
}

func newCheck(p *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say whether a policy can be used",
		Long: `Check reads a policy as attuned and attune run do, by default ` + policy.Path + `:
fields, users, groups, roles and actions; of that one also its owner and mode. What
cannot be used is an error with its place, and exit code 2.`,
		Example: "  attune policy check\n  attune policy check ./policy.yaml && sudo cp policy.yaml " + policy.Path,
		Args:    cli.Arguments(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := policy.Path
			if len(args) == 1 {
				path = args[0]
			}
			rules, err := read(path)
			if err != nil {
				return err
			}
			text := path + " can be used"
			if rules == nil {
				text = "there is no " + path + ": services touch nothing, and users change their own processes only"
			}
			_, err = fmt.Fprintln(p.Stdout, text)
			return err
		},
	}
}

// read reads a policy. The node's may be missing, which is nil; another one may be
// anybody's, for it is not in force yet.
func read(path string) (*policy.Policy, error) {
	var rules *policy.Policy
	var err error
	if path == policy.Path {
		rules, err = policy.Load(path)
	} else {
		rules, err = parse(path)
	}
	if err != nil {
		return nil, exitcode.UsageError(err, "see docs/reference/policy.md")
	}
	return rules, nil
}

func parse(path string) (*policy.Policy, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := bounded.ReadAll("the policy", file, policy.MaxBytes)
	if err != nil {
		return nil, err
	}
	rules, err := policy.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}

// explained is the answer of explain; its JSON document.
type explained struct {
	User    string `json:"user"`
	Program string `json:"program"`
	// Mode is the most that a service does, by who has registered the program.
	Mode map[string]allowed `json:"service"`
	// Action is what is asked for; nil: nothing is.
	Action *allowed `json:"action,omitempty"`
}

// allowed is what is allowed, and by which rule.
type allowed struct {
	Mode    string `json:"mode,omitempty"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"`
}

type explainFlags struct {
	file   string
	asJSON bool
}

func newExplain(p *cli.Env) *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain USER PROGRAM [ACTION NAME [VALUE]]",
		Short: "Say what a policy allows, and by which rule",
		Long: `Explain says what services may do with a user's process of a program, by whoever has
registered it: the user or the site. With an action it says whether the user may have
it: a kind of action, what it is done to as rules name it, and the value.`,
		Example: `  attune policy explain alice /opt/apps/lmp
  attune policy explain alice lmp set libgomp.so.1:gomp_spin_count_var 100
  attune policy explain --file ./policy.yaml --json bob python3`,
		Args: func(_ *cobra.Command, args []string) error {
			if n := len(args); n < 2 || n == 3 || n > 5 {
				return exitcode.UsageError(errors.New("want USER PROGRAM, or USER PROGRAM ACTION NAME [VALUE]"), "see `attune policy explain --help`")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 2 {
				return attunev1.ActionKinds(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return explain(cmd.Context(), p, flags, args) },
	}
	cmd.Flags().StringVar(&flags.file, "file", policy.Path, "the policy is `FILE`")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON")
	return cmd
}

func explain(ctx context.Context, p *cli.Env, flags explainFlags, args []string) error {
	rules, err := read(flags.file)
	if err != nil {
		return err
	}
	uid, err := userID(ctx, args[0])
	if err != nil {
		return exitcode.UsageError(err, "give a user's name or number")
	}
	program := args[1]
	if found, err := filepath.Abs(program); err == nil && filepath.Base(program) != program {
		program = found
	}
	user := authn.OfUser(uid)
	e := explained{User: user.GetName(), Program: program, Mode: map[string]allowed{
		"user": mode(rules, user, uid, program),
		"site": mode(rules, &attunev1.Principal{Name: "the site", Role: attunev1.Role_ROLE_ANALYZER}, uid, program),
	}}
	if len(args) > 2 {
		if e.Action, err = action(rules, user, args[2:]); err != nil {
			return err
		}
	}
	if flags.asJSON {
		return p.WriteJSON(e)
	}
	return e.print(p)
}

func userID(ctx context.Context, name string) (uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(id), nil
	}
	return users.UserID(ctx, name)
}

// mode is what services may do with what somebody has registered.
func mode(rules *policy.Policy, owner *attunev1.Principal, uid uint32, program string) allowed {
	mode, reason := rules.Service(policy.Asking{Owner: owner, UID: uid, Executable: program})
	return allowed{Mode: mode, Allowed: mode != "", Reason: reason}
}

// action says whether a user may have one in their own process.
func action(rules *policy.Policy, user *attunev1.Principal, args []string) (*allowed, error) {
	r := policy.Request{Action: args[0], Names: []string{args[1]}, Asker: user, Owner: int(user.GetUid())}
	if err := policy.KnownAction(r.Action); err != nil {
		return nil, exitcode.UsageError(err, "see docs/reference/policy.md")
	}
	if len(args) == 3 {
		r.Values = []*attunev1.Value{{Kind: &attunev1.Value_Text{Text: args[2]}}}
		if n, err := strconv.ParseInt(args[2], 0, 64); err == nil {
			r.Values[0].Kind = &attunev1.Value_Integer{Integer: n}
		}
	}
	if err := rules.Check(r); err != nil {
		return &allowed{Reason: err.Error()}, nil
	}
	return &allowed{Allowed: true}, nil
}

func (e explained) print(p *cli.Env) error {
	say := func(what string, a allowed) {
		text := "no"
		switch {
		case a.Mode != "":
			text = a.Mode
		case a.Allowed:
			text = "yes"
		}
		if a.Reason != "" {
			text += " (" + a.Reason + ")"
		}
		_, _ = fmt.Fprintf(p.Stdout, "%-28s %s\n", what, text)
	}
	say("registered by "+e.User, e.Mode["user"])
	say("registered by the site", e.Mode["site"])
	if e.Action != nil {
		say("the action, for "+e.User, *e.Action)
	}
	return nil
}
