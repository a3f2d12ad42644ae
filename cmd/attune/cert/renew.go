// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/renew"
)

const certRenewLong = `Renew asks the site's issuing service (attune cert serve) for the next certificate, to
a new key, and replaces both files. The certificate has to hold yet. The new one says
what it says: the same name, role, user id and hosts.

Without a file it renews yours in ~/.config/attune, or this machine's in
/etc/attune/pki. attuned and the Analyzer do this by themselves where tls-issuer is
set; for people it is a line of crontab:

  0 9 * * *  attune cert renew --issuer ca.example.org:7118`

// issuerVariable names the issuing service where no flag does.
const issuerVariable = "ATTUNE_ISSUER"

func newCertRenew(p *cli.Env) *cobra.Command {
	var issuer string
	cmd := &cobra.Command{
		Use:     "renew [FILE]",
		Short:   "Renew a certificate",
		Long:    certRenewLong,
		Example: "  attune cert renew --issuer ca.example.org:7118\n  attune cert renew --issuer ca.example.org:7118 /etc/attune/pki/node.crt",
		RunE: func(cmd *cobra.Command, args []string) error {
			issuer = cmp.Or(issuer, os.Getenv(issuerVariable))
			if len(args) == 0 {
				args = ownCertificates()
			} else if len(args) > 1 {
				return exitcode.UsageError(errors.New("one file at most"), "write: attune cert renew FILE")
			}
			if len(args) == 0 {
				return &exitcode.Error{Code: exitcode.Failure, Err: errors.New("neither you nor this machine has a certificate"),
					Remedy: "the first one is made with `attune cert issue`"}
			}
			return certRenew(cmd.Context(), p, issuer, args[0])
		},
	}
	cmd.Flags().StringVar(&issuer, "issuer", "", "the issuing service at `HOST:PORT` (default: "+issuerVariable+" of the environment)")
	return cmd
}

func certRenew(ctx context.Context, p *cli.Env, issuer, path string) error {
	if err := renew.Check(issuer, filesOf(path)); err != nil {
		return exitcode.UsageError(fmt.Errorf("renew %s: %w", path, err), "name the issuing service with --issuer, and a certificate of yours")
	}
	identity, err := pki.Open(filesOf(path), nil)
	if err != nil {
		return err
	}
	renewer, err := renew.ByService(issuer, identity, nil)
	if err == nil {
		err = renewer.Once(ctx)
	}
	if err != nil {
		return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("renew %s: %w", path, err), Remedy: "the files are as they were"}
	}
	return showCertificates(p, []string{path}, false)
}

// filesOf are a certificate with the key that is beside it, and the CA's certificate that is
// there, or the machine's: what a service renews lies apart from that.
func filesOf(path string) pki.Files {
	files := pki.FilesIn(filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	if _, err := os.Stat(files.CA); errors.Is(err, os.ErrNotExist) {
		files.CA = pki.NodeFiles().CA
	}
	return files
}
