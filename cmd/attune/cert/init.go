// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
)

const certInitLong = `Init makes a certificate authority: ca.crt, which everybody may read, and ca.key.
Whoever has ca.key can be anybody at the site: keep it on one machine.`

// day is what certificates are counted in.
const day = 24 * time.Hour

// caDays is how long a CA holds unless told otherwise.
const caDays = 3650

func newCertInit(p *cli.Env) *cobra.Command {
	var dir, name string
	var days int
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Make a certificate authority",
		Long:    certInitLong,
		Example: "  attune cert init --ca /root/attune-ca",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := checkDays(days); err != nil {
				return err
			}
			return certInit(p, dir, name, time.Duration(days)*day)
		},
	}
	cmd.Flags().StringVar(&dir, "ca", defaultCA, "`DIR` for the CA")
	cmd.Flags().StringVar(&name, "name", "Attune CA", "`NAME` of the CA in its certificate")
	cmd.Flags().IntVar(&days, "days", caDays, "how many days it holds")
	return cmd
}

// maxDays keeps times within what a certificate can say.
const maxDays = 36500

func checkDays(days int) error {
	if days < 1 || days > maxDays {
		return exitcode.UsageError(fmt.Errorf("--days %d", days), fmt.Sprintf("give 1 to %d", maxDays))
	}
	return nil
}

func certInit(p *cli.Env, dir, name string, valid time.Duration) error {
	authority, err := pki.NewAuthority(name, valid)
	if err != nil {
		return exitcode.UsageError(err, "choose another --name")
	}
	issued, err := authority.PEM()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	err = issued.Write(cert, key, false)
	if errors.Is(err, os.ErrExist) {
		return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("there is a CA in %s already", dir),
			Remedy: "use it, or name another directory with --ca; a new CA makes all certificates of the old one worthless"}
	}
	if err != nil {
		return err
	}
	if err := showCertificates(p, []string{cert}, false); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s\n  keep it to yourself\n", key)
	return nil
}
