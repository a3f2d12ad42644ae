// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"os"
	"testing"
)

func TestServerTLSWithoutIdentityLeavesItToGoPlugin(t *testing.T) {
	t.Setenv(CertificateVariable, "")
	if config, err := serverTLS(); config != nil || err != nil {
		t.Errorf("got %v, %v", config, err)
	}
}

func TestServerTLSRefusesDamage(t *testing.T) {
	t.Setenv(ClientCertificateVariable, "no certificate")
	t.Setenv(CertificateVariable, "-----BEGIN CERTIFICATE-----")
	if config, err := serverTLS(); config != nil || err == nil {
		t.Errorf("got %v, %v: a damaged identity must not fall back to another", config, err)
	}
	if _, there := os.LookupEnv(CertificateVariable); there {
		t.Error("the key stays in the environment")
	}
}
