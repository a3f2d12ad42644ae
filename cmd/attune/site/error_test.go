// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestRefusedCertificate: what TLS says of a certificate that an Analyzer refuses is
// said in words, with what to do.
func TestRefusedCertificate(t *testing.T) {
	for said, want := range map[string]string{
		`connection error: desc = "error reading server preface: remote error: tls: bad certificate"`:        "refuses your certificate",
		`connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:1: connection refused"`: "is not reached: dial tcp 10.0.0.1:1: connection refused",
	} {
		if err := siteError(status.Error(codes.Unavailable, said)); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", said, err, want)
		}
	}
}
