// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/printable"
)

const certShowLong = `Show says whom certificates name, for how long they hold, and whether they can be
used: with the key that is beside them, and the CA's certificate (ca.crt) that is there or
in /etc/attune/pki. Root is told of others' what they would be told. Without
a file it shows yours in ~/.config/attune and this machine's in /etc/attune/pki.`

// Shown is one certificate; the JSON document's element.
type Shown struct {
	File    string    `json:"file"`
	Name    string    `json:"name"`
	Role    string    `json:"role,omitempty"`
	UID     *uint32   `json:"uid,omitempty"`
	Hosts   []string  `json:"hosts,omitempty"`
	Issuer  string    `json:"issuer"`
	Serial  string    `json:"serial"`
	From    time.Time `json:"not_before"`
	Until   time.Time `json:"not_after"`
	Days    int       `json:"days_left"`
	Renew   bool      `json:"renew"`
	Trouble string    `json:"trouble,omitempty"`
}

func newCertShow(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show [FILE...]",
		Short:   "Show certificates, and whether they can be used",
		Long:    certShowLong,
		Example: "  attune cert show\n  attune cert show --json n1.example.org/node.crt",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = ownCertificates()
			}
			if len(args) == 0 {
				return &exitcode.Error{Code: exitcode.Failure, Err: errors.New("neither you nor this machine has a certificate"),
					Remedy: "make one with `attune cert issue`"}
			}
			return showCertificates(p, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// ownCertificates are those at the usual places that there are.
func ownCertificates() []string {
	files := []pki.Files{pki.NodeFiles(), pki.AnalyzerFiles()}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append([]pki.Files{pki.UserFiles(filepath.Join(dir, "attune"))}, files...)
	}
	var found []string
	for _, f := range files {
		if f.Present() {
			found = append(found, f.Cert)
		}
	}
	return found
}

// showCertificates prints what they are. It fails after that if one of them
// cannot be read or used.
func showCertificates(p *cli.Env, paths []string, asJSON bool) error {
	shown := []Shown{}
	var unusable []string
	var errs []error
	for _, path := range paths {
		one, err := inspectCertificate(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if one.Trouble != "" {
			unusable = append(unusable, path)
		}
		shown = append(shown, one)
	}
	if unusable != nil {
		errs = append(errs, fmt.Errorf("cannot be used: %s", strings.Join(unusable, ", ")))
	}
	return errors.Join(append(errs, printCertificates(p, shown, asJSON))...)
}

func inspectCertificate(path string) (Shown, error) {
	certificate, err := pki.ReadCertificate(path)
	if err != nil {
		return Shown{}, err
	}
	now := time.Now()
	shown := Shown{
		File: path, Name: certificate.Subject.CommonName, Issuer: certificate.Issuer.CommonName, Serial: pki.SerialOf(certificate),
		From: certificate.NotBefore, Until: certificate.NotAfter,
		Days:  int(certificate.NotAfter.Sub(now).Round(day) / day),
		Renew: pki.ExpiresSoon(certificate, now),
		Hosts: certificate.DNSNames,
	}
	for _, ip := range certificate.IPAddresses {
		shown.Hosts = append(shown.Hosts, ip.String())
	}
	if err := shown.use(certificate, now); err != nil {
		shown.Trouble = err.Error()
	}
	return shown, nil
}

// use notes for what a certificate is, and says why it cannot be used.
func (c *Shown) use(certificate *x509.Certificate, now time.Time) error {
	if certificate.IsCA {
		c.Role = "CA"
		return pki.Holds(certificate, now)
	}
	principal, err := pki.PrincipalIn(certificate)
	if err != nil {
		return err
	}
	c.Role = pki.RoleName(principal.GetRole())
	if uid := principal.GetUid(); uid != pki.NoUID {
		c.UID = &uid
	}
	files := filesOf(c.File)
	err = files.Check()
	denied, ok := errors.AsType[*os.PathError](err)
	if ok && denied.Path == files.Key && errors.Is(denied, os.ErrPermission) {
		return nil // the key is somebody else's to read
	}
	return err
}

func printCertificates(p *cli.Env, list []Shown, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(list)
	}
	w := cli.Table(p.Stdout)
	for _, c := range list {
		fmt.Fprintf(w, "%s\n", c.File)
		fmt.Fprintf(w, "  for\t%s\n", c.subject())
		if len(c.Hosts) > 0 {
			fmt.Fprintf(w, "  serves\t%s\n", printable.Line(strings.Join(c.Hosts, ", ")))
		}
		fmt.Fprintf(w, "  by\t%s, serial number %s\n", printable.Line(c.Issuer), c.Serial)
		fmt.Fprintf(w, "  holds\t%s to %s, %s\n", c.From.Local().Format(time.DateOnly), c.Until.Local().Format(time.DateOnly), c.left())
		if c.Trouble != "" {
			fmt.Fprintf(w, "  but\t%s\n", printable.Line(c.Trouble))
		}
	}
	return w.Flush()
}

func (c Shown) subject() string {
	text := strings.TrimSpace(c.Role + " " + printable.Line(c.Name))
	if c.UID != nil {
		text += fmt.Sprintf(", user id %d", *c.UID)
	}
	return text
}

func (c Shown) left() string {
	left := time.Until(c.Until)
	text := fmt.Sprintf("%d days left", c.Days)
	switch {
	case left < 0:
		return "expired"
	case left < time.Hour:
		text = left.Round(time.Second).String() + " left"
	case left < 2*day:
		text = left.Round(time.Minute).String() + " left"
	}
	if c.Renew {
		text += ": renew it"
	}
	return text
}
