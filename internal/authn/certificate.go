// SPDX-License-Identifier: Apache-2.0

package authn

import "crypto/x509"

// Certificate is the peer's, verified; nil on a Unix socket. It is shared and must not
// be changed.
func (i Info) Certificate() *x509.Certificate {
	if i.tls == nil {
		return nil
	}
	return i.tls.State.PeerCertificates[0]
}
