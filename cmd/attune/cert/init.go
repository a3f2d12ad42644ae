// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"cmp"
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
Whoever has ca.key can be anybody at the site: keep it on a machine that is off line.

With --issuer it makes an issuing CA in another directory, which the one of --ca signs.
Whoever believes the root believes what that one issues; attune cert serve renews with
it. It signs no other CA, and can be replaced by another one without anything being
changed at the nodes.`

// day is what certificates are counted in.
const day = 24 * time.Hour

const (
	// caDays is how long a CA holds unless told otherwise.
	caDays = 3650
	// issuerDays is the same for an issuing CA, whose key is on a machine that serves.
	issuerDays = 365
)

// initFlags are those of `attune cert init`.
type initFlags struct {
	dir, issuer, name string
	days              float64
}

func newCertInit(p *cli.Env) *cobra.Command {
	var flags initFlags
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Make a certificate authority",
		Long:    certInitLong,
		Example: "  attune cert init --ca /root/attune-ca\n  attune cert init --ca /root/attune-ca --issuer issuer",
		Args:    cli.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return certInit(p, flags) },
	}
	cmd.Flags().StringVar(&flags.dir, "ca", defaultCA, "`DIR` of the root")
	cmd.Flags().StringVar(&flags.issuer, "issuer", "", "make an issuing CA in `DIR`, by the root that there is")
	cmd.Flags().StringVar(&flags.name, "name", "", "`NAME` of the CA in its certificate (default: Attune CA, Attune issuing CA)")
	cmd.Flags().Float64Var(&flags.days, "days", 0, fmt.Sprintf("how many days it holds (default %d, %d for an issuing CA)", caDays, issuerDays))
	return cmd
}

const (
	// maxDays keeps times within what a certificate can say.
	maxDays = 36500
	// minDays is a minute.
	minDays = 1. / (24 * 60)
)

// valid is a time in days, which may have a fraction; 0: otherwise.
func valid(days float64, otherwise int) (time.Duration, error) {
	days = cmp.Or(days, float64(otherwise))
	if !(days >= minDays && days <= maxDays) { // not NaN either
		return 0, exitcode.UsageError(fmt.Errorf("--days %g", days), fmt.Sprintf("give a minute (%.4f) to %d", minDays, maxDays))
	}
	return time.Duration(days * float64(day)), nil
}

func certInit(p *cli.Env, flags initFlags) error {
	authority, err := flags.make()
	if err != nil {
		return err
	}
	dir := cmp.Or(flags.issuer, flags.dir)
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
			Remedy: "use it, or name another directory; a new root makes all certificates of the old one worthless"}
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

// make makes what the flags ask for; nothing is written.
func (f initFlags) make() (*pki.Authority, error) {
	otherwise, name := caDays, "Attune CA"
	if f.issuer != "" {
		otherwise, name = issuerDays, "Attune issuing CA"
	}
	name = cmp.Or(f.name, name)
	life, err := valid(f.days, otherwise)
	if err != nil {
		return nil, err
	}
	if f.issuer == "" {
		authority, err := pki.NewAuthority(name, life)
		if err != nil {
			return nil, exitcode.UsageError(err, "choose another --name")
		}
		return authority, nil
	}
	root, err := readCA(f.dir)
	if err != nil {
		return nil, err
	}
	authority, err := root.NewIssuer(name, life)
	if err != nil {
		return nil, exitcode.UsageError(fmt.Errorf("issuing CA %q: %w", name, err), "see `attune cert init --help`")
	}
	return authority, nil
}

// readCA reads the CA of a directory.
func readCA(dir string) (*pki.Authority, error) {
	authority, err := pki.ReadAuthority(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "make a CA with `attune cert init`, or say where it is with --ca"}
	}
	if err != nil {
		return nil, fmt.Errorf("CA in %s: %w", dir, err)
	}
	return authority, nil
}
