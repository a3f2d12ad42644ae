// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/site"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/printable"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const certRevokeLong = `Revoke has the whole site not believe certificates any more: those of a NAME that
were issued until now, with all that were renewed from them, or a single one
(--file, --serial). Analyzers, registries and nodes refuse them within seconds, and
close the connections that were made with them. There is no way back: issue a new
one. Certificates are dated back by up to five minutes, so one of the same name that
is issued at once is refused too; --before says from when on they are good.

It is for admins, and for root of an Analyzer's machine. The commands of people do
not see the list: what is revoked of an Analyzer they believe until it expires.`

const certRevokeExample = `  attune cert revoke alice --role user --reason "lost her laptop"
  attune cert revoke --file n7/node.crt
  attune cert revoke --serial 1f:0a:77`

// revokeFlags are those of `attune cert revoke`.
type revokeFlags struct {
	at                                 site.Flags
	role, before, reason, file, serial string
	asJSON                             bool
}

func newCertRevoke(p *cli.Env) *cobra.Command {
	var flags revokeFlags
	cmd := &cobra.Command{
		Use:     "revoke [NAME]",
		Short:   "Have the site not believe certificates any more",
		Long:    certRevokeLong,
		Example: certRevokeExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := flags.revocation(args)
			if err != nil {
				return exitcode.UsageError(err, "see `attune cert revoke --help`")
			}
			done, err := site.Ask(cmd.Context(), flags.at, func(ctx context.Context, c *site.Client) (*attunev1.RevokeResponse, error) {
				return attunev1.NewRevocationServiceClient(c.Conn).Revoke(ctx, &attunev1.RevokeRequest{Revocation: r})
			})
			if err != nil {
				return err
			}
			return printRevocations(p, []*attunev1.Revocation{done.GetRevocation()}, flags.asJSON)
		},
	}
	flags.at.Add(cmd.Flags())
	cmd.Flags().StringVar(&flags.role, "role", "", "only certificates of this `ROLE`: user, admin, node or analyzer")
	cmd.Flags().StringVar(&flags.before, "before", "", "only those that hold from before `TIME` on, as 2026-01-31T12:00:00Z (default: now)")
	cmd.Flags().StringVar(&flags.file, "file", "", "the certificate in `FILE`")
	cmd.Flags().StringVar(&flags.serial, "serial", "", "the certificate with serial `NUMBER`, as `attune cert show` has it")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "`TEXT` for those who look at the list")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON")
	return cmd
}

// revocation is what the flags name.
func (f revokeFlags) revocation(args []string) (*attunev1.Revocation, error) {
	r := &attunev1.Revocation{Reason: f.reason}
	given := len(args)
	for _, one := range []string{f.file, f.serial} {
		if one != "" {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("one is needed of a name, --file and --serial")
	}
	if len(args) == 0 && (f.role != "" || f.before != "") {
		return nil, errors.New("--role and --before go with a name")
	}
	var err error
	switch {
	case f.file != "":
		certificate, err := pki.ReadCertificate(f.file)
		if err != nil {
			return nil, err
		}
		r.Serial, r.ExpiresUnix = pki.SerialOf(certificate), certificate.NotAfter.Unix()
		r.Reason = cmp.Or(r.GetReason(), "certificate of "+certificate.Subject.CommonName)
	case f.serial != "":
		r.Serial, err = pki.ParseSerial(f.serial)
	default:
		r.Name = args[0]
		if f.role != "" {
			if r.Role, err = pki.ParseRole(f.role); err != nil {
				return nil, err
			}
		}
		if f.before != "" {
			var at time.Time
			at, err = time.Parse(time.RFC3339, f.before)
			r.BeforeUnix = at.Unix()
		}
	}
	return r, err
}

func newCertRevoked(p *cli.Env) *cobra.Command {
	var at site.Flags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "revoked",
		Short:   "List the certificates that the site does not believe any more",
		Example: "  attune cert revoked",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := site.Ask(cmd.Context(), at, func(ctx context.Context, c *site.Client) (*attunev1.ListRevocationsResponse, error) {
				return attunev1.NewRevocationServiceClient(c.Conn).ListRevocations(ctx, &attunev1.ListRevocationsRequest{})
			})
			if err != nil {
				return err
			}
			return printRevocations(p, list.GetRevocations(), asJSON)
		},
	}
	at.Add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printRevocations(p *cli.Env, list []*attunev1.Revocation, asJSON bool) error {
	if asJSON {
		return site.WriteProto(p, &attunev1.ListRevocationsResponse{Revocations: list})
	}
	if len(list) == 0 {
		return p.Nothing("is revoked")
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "REVOKED\tWHAT\tBY\tREASON")
	for _, r := range list {
		what := "serial " + r.GetSerial()
		if r.GetSerial() == "" {
			what = fmt.Sprintf("%s %s, from before %s", cmp.Or(pki.RoleName(r.GetRole()), "any role"), r.GetName(), moment(r.GetBeforeUnix()))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", moment(r.GetRevokedUnix()), printable.Line(what),
			printable.Line(r.GetBy()), printable.Line(r.GetReason()))
	}
	return w.Flush()
}

// moment is a time as --before takes it.
func moment(unix int64) string { return time.Unix(unix, 0).Local().Format(time.RFC3339) }
