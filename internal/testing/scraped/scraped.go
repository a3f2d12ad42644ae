// SPDX-License-Identifier: Apache-2.0

// Package scraped reads in tests what a service answers to Prometheus. It has no state.
package scraped

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Lines returns what is answered at an address, line by line.
func Lines(t testing.TB, client *http.Client, url string) []string {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v: %s", answer.StatusCode, err, &text)
	}
	return strings.Split(text.String(), "\n")
}

// FreePort returns an address of this machine where nobody listens.
func FreePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// File returns the lines of a file that a service writes, when it is there.
func File(t testing.TB, path string) []string {
	t.Helper()
	var text []byte
	patience.Until(t, "the file of metrics", func() (there bool) {
		var err error
		text, err = os.ReadFile(path)
		return err == nil
	})
	return strings.Split(string(text), "\n")
}

// CheckWhole reports the metrics of a service that are always there and are not among
// lines, and those that nobody knows.
func CheckWhole(t testing.TB, of metrics.Service, lines []string) {
	t.Helper()
	there := make(map[string]bool)
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			there[strings.Fields(rest)[0]] = true
		}
	}
	for _, m := range metrics.All(of) {
		if !there[m.Name] && m.Sometimes == "" {
			t.Errorf("%s is missing", m.Name)
		}
		delete(there, m.Name)
	}
	for name := range there {
		t.Errorf("%s is there, and not in the table", name)
	}
}
