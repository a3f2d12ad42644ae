// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/users"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const certIssueLong = `Issue makes a key and a certificate for a person or a service, in a directory of
that name (--out), with the CA's certificate:

  NAME/ca.crt NAME/node.crt NAME/node.key           for /etc/attune/pki of a node
  NAME/ca.crt NAME/analyzer.crt NAME/analyzer.key   for /etc/attune/pki of an Analyzer's host
  NAME/ca.crt NAME/user.crt NAME/user.key           for ~/.config/attune of a user or admin

Hand the files over so that nobody else reads the key. A service reads them again
when they have been replaced, without being restarted (--replace).

The user's id is looked up on this machine if --uid does not say it. A service is
called by its NAME, and by the names and addresses of --host.`

const certIssueExample = `  attune cert issue --role analyzer --host head,10.0.0.254 head.example.org
  attune cert issue --role node n1.example.org
  attune cert issue alice
  attune cert issue --role admin --uid 1002 --days 30 bob`

const (
	// serviceDays is how long a service's certificate holds unless told otherwise.
	serviceDays = 365
	// userDays is the same for people, who leave and lose their machines.
	userDays = 90
	// shortDays is the same for whatever an issuing CA issues: it is renewed.
	shortDays = 7
)

// issueFlags are those of `attune cert issue`.
type issueFlags struct {
	ca, role, out string
	uid           int64
	hosts         []string
	days          float64
	replace       bool
}

func newCertIssue(p *cli.Env) *cobra.Command {
	var flags issueFlags
	cmd := &cobra.Command{
		Use:     "issue NAME",
		Short:   "Issue a certificate to a person or a service",
		Long:    certIssueLong,
		Example: certIssueExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("one name is needed, of a person or a machine"), "write: attune cert issue NAME")
			}
			return certIssue(cmd.Context(), p, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.ca, "ca", defaultCA, "`DIR` of the CA")
	cmd.Flags().StringVar(&flags.role, "role", "user", "`ROLE`: user, admin, node or analyzer")
	cmd.Flags().Int64Var(&flags.uid, "uid", -1, "user `ID` on the site's nodes (default: this machine's for the name)")
	cmd.Flags().StringSliceVar(&flags.hosts, "host", nil, "further `NAME`s and addresses under which it serves, beside a service's own name")
	cmd.Flags().Float64Var(&flags.days, "days", 0, fmt.Sprintf("how many days it holds (default %d of an issuing CA; of a root %d for a service, %d else)", shortDays, serviceDays, userDays))
	cmd.Flags().StringVar(&flags.out, "out", "", "`DIR` for the files (default: NAME)")
	cmd.Flags().BoolVar(&flags.replace, "replace", false, "replace a certificate that is there")
	return cmd
}

func certIssue(ctx context.Context, p *cli.Env, name string, flags issueFlags) error {
	authority, err := readCA(flags.ca)
	if err != nil {
		return err
	}
	request, err := flags.request(ctx, name, authority.IsRoot())
	if err != nil {
		return err
	}
	issued, err := authority.Issue(request)
	if err != nil {
		return exitcode.UsageError(fmt.Errorf("certificate for %q: %w", name, err), "see `attune cert issue --help`")
	}
	files, err := flags.files(name, request.Role)
	if err != nil {
		return err
	}
	err = issued.Write(files.Cert, files.Key, flags.replace)
	if errors.Is(err, os.ErrExist) {
		return &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "give --replace to issue a new one"}
	}
	if err == nil {
		err = authority.WriteRoots(files.CA)
	}
	if err != nil {
		return err
	}
	return showCertificates(p, []string{files.Cert}, false)
}

// request is what the flags ask for, of a root or of an issuing CA; errors have the code
// for usage.
func (f issueFlags) request(ctx context.Context, name string, root bool) (pki.Request, error) {
	r := pki.Request{Name: name, Hosts: f.hosts}
	var err error
	if r.Role, err = pki.ParseRole(f.role); err != nil {
		return r, exitcode.UsageError(err, "choose one with --role")
	}
	service := pki.OfService(r.Role)
	if service && !slices.Contains(f.hosts, name) && (f.hosts == nil || isHost(name)) {
		r.Hosts = append([]string{name}, f.hosts...)
	}
	days := shortDays
	switch {
	case root && service:
		days = serviceDays
	case root:
		days = userDays
	}
	if r.Valid, err = valid(f.days, days); err != nil {
		return r, err
	}
	if service && f.uid < 0 {
		return r, nil
	}
	r.UID, err = f.userID(ctx, name)
	return r, err
}

// isHost says whether a name can be a host's, or its address.
func isHost(name string) bool {
	return net.ParseIP(name) != nil || !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	})
}

// userID is that of --uid, or of the user of the name.
func (f issueFlags) userID(ctx context.Context, name string) (*uint32, error) {
	if f.uid < 0 {
		id, err := users.UserID(ctx, name)
		if err != nil {
			return nil, exitcode.UsageError(fmt.Errorf("user id of %q: %w", name, err), "give it with --uid")
		}
		return &id, nil
	}
	if f.uid >= int64(pki.NoUID) {
		return nil, exitcode.UsageError(fmt.Errorf("--uid %d is no user id", f.uid), "see `id -u USER`")
	}
	uid := uint32(f.uid)
	return &uid, nil
}

// files are where a certificate goes. The directory is made if need be, for its
// owner only.
func (f issueFlags) files(name string, role attunev1.Role) (pki.Files, error) {
	dir := f.out
	if dir == "" {
		if filepath.Base(name) != name || strings.HasPrefix(name, ".") {
			return pki.Files{}, exitcode.UsageError(fmt.Errorf("%q is no name of a directory", name), "name one with --out")
		}
		dir = name
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pki.Files{}, err
	}
	if pki.OfService(role) {
		return pki.FilesIn(dir, pki.RoleName(role)), nil
	}
	return pki.UserFiles(dir), nil
}
