// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// The remedy is about whose a tunlet is only where that is what is wrong.
func TestRemedy(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("declared.tunlet.yaml", 0o644)
	write("attune-tunlet-open", 0o777)
	const trust = "a tunlet must belong to root or to you"
	for name, untrusted := range map[string]bool{"declared": false, "open": true} {
		_, err := askTunlet(context.Background(), name, []string{dir}, tunlethost.Options{})
		told := new(exitcode.Error)
		if !errors.As(err, &told) || strings.HasPrefix(told.Remedy, trust) != untrusted {
			t.Errorf("%s: %v, remedy %q; want one about its owner: %v", name, err, told.Remedy, untrusted)
		}
	}
}

func TestOptionText(t *testing.T) {
	for want, o := range map[string]Option{
		"":                      {},
		", 1 to 9, else 4":      {Min: "1", Max: "9", Default: "4"},
		", at least 1s":         {Min: "1s"},
		", at most 1GiB":        {Max: "1GiB"},
		", one of a, b, else b": {Choices: []string{"a", "b"}, Default: "b"},
	} {
		if got := o.limits(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
