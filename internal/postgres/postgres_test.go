// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for _, tt := range []struct {
		url      string
		password bool
		name     string
	}{
		{"postgres://db.site/attune", false, "postgres://db.site/attune"},
		{"postgres://me@db.site:6432/attune?sslmode=verify-full", false, "postgres://me@db.site:6432/attune?sslmode=verify-full"},
		{"postgres://me:hidden@db.site/attune", true, "postgres://me@db.site/attune"},
		{"postgres://db.site/attune?password=hidden", true, "postgres://db.site/attune"},
		{"postgres:///attune?host=/run&password=hidden", true, "postgres:///attune?host=%2Frun"},
		{"postgres://me:hid%zzden@db.site/attune", true, "postgres://"},
	} {
		if got := HasPassword(tt.url); got != tt.password {
			t.Errorf("%s: password %t", tt.url, got)
		}
		if got := Name(tt.url); got != tt.name {
			t.Errorf("%s: %s, want %s", tt.url, got, tt.name)
		}
		if !IsURL(tt.url) {
			t.Errorf("%s is none", tt.url)
		}
	}
	if IsURL("/home/me/archive.db") {
		t.Error("a file is taken for a URL")
	}
}

// TestNoPasswordInErrors: what cannot be read is not repeated with its password.
func TestNoPasswordInErrors(t *testing.T) {
	for _, text := range []string{"postgres://me:hidden@h:port/db", "postgres://me:hid%zzden@h/db", "postgres://h/db?password=hidden&sslmode=odd"} {
		_, err := Open(t.Context(), Options{URL: text})
		if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMarks(t *testing.T) {
	if got := Marks("SELECT a FROM b WHERE c = ? AND d IN (?, ?)"); got != "SELECT a FROM b WHERE c = $1 AND d IN ($2, $3)" {
		t.Error(got)
	}
}
