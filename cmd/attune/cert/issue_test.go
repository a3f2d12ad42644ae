// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestDocumentedAddresses: the Analyzer's certificate, issued as the documents say, is for each of
// the addresses under which they name it.
func TestDocumentedAddresses(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"certificates.md", "analyzer.md", "attuned.md"} {
		page := files.Read(t, "../../../docs/reference/"+name)
		text.Write(page)
	}
	example := regexp.MustCompile(`(?m)^attune cert issue --ca \S+ (.*--role analyzer.*)$`).FindStringSubmatch(text.String())
	addresses := regexp.MustCompile(`tls://(head[^:]*):`).FindAllStringSubmatch(text.String(), -1)
	if example == nil || len(addresses) < 3 {
		t.Fatalf("the documents have the example %q and the addresses %q", example, addresses)
	}
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--ca", filepath.Join(dir, "ca")},
		append([]string{"issue", "--ca", filepath.Join(dir, "ca"), "--out", dir}, strings.Fields(example[1])...),
	} {
		command := Command(&cli.Env{Stdout: t.Output(), Stderr: t.Output()})
		command.SetArgs(args)
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := pki.ReadCertificate(filepath.Join(dir, "analyzer.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if err := certificate.VerifyHostname(address[1]); err != nil {
			t.Error(err)
		}
	}
}
