// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// The logger writes to the standard error that there is at the time, in the form from which
// the host takes the level.
func TestLogger(t *testing.T) {
	log := sdk.Logger().With("file", "x")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	old := os.Stderr
	os.Stderr = w
	log.Warn("no metric", "n", 3)
	os.Stderr = old
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got["@timestamp"] == nil {
		t.Errorf("no time: %s", text)
	}
	delete(got, "@timestamp")
	if diff := cmp.Diff(map[string]any{"@level": "warn", "@message": "no metric", "file": "x", "n": 3.0}, got); diff != "" {
		t.Error(diff)
	}
}
