// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
)

const certLong = `Between machines Attune talks only to those who show a certificate, which says
who they are: the name of a user or of a node, and a role. A user sees and tunes
their own processes, an admin those of all as far as the site's policy allows, and
a node is a service of the site.

Cert is a small certificate authority for sites that have none; certificates of
another one do as well if they name a role (docs/reference/certificates.md). With an
issuing CA, attune cert serve renews certificates, so that they can be short-lived.`

const certExample = `  attune cert init --ca /root/attune-ca
  attune cert issue --ca /root/attune-ca --role analyzer head.example.org
  attune cert issue --ca /root/attune-ca --role node n1.example.org
  attune cert issue --ca /root/attune-ca alice
  attune cert init --ca /root/attune-ca --issuer issuer
  attune cert serve --ca /etc/attune/issuer --listen :7118
  attune cert renew --issuer ca.example.org:7118
  attune cert show`

// defaultCA is where a site's CA is, away from what machines need of it.
const defaultCA = "/etc/attune/ca"

// Command returns `attune cert`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:     "cert",
		Short:   "Make, show and revoke the certificates of a site",
		Long:    certLong,
		Example: certExample,
	}, newCertInit(p), newCertIssue(p), newCertServe(p), newCertRenew(p), newCertShow(p), newCertRevoke(p), newCertRevoked(p))
}
