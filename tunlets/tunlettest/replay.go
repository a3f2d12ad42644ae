// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"bytes"
	"context"
	"os"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/replay"
	udiff "github.com/aymanbagabas/go-udiff"
)

// Replay drives a tunlet with a recording of a real program, which attune run
// --record has made, and compares what it decides with the file of the same name
// that ends in .expect instead of .rec; attune tunlet run --replay writes that.
// It does so twice: a tunlet that decides otherwise the second time depends on
// something that it was not told. It returns what was decided. options are those of
// the tunlet, by name.
func Replay(tb TB, newTunlet func() sdk.Tunlet, recording string, options map[string]string) string {
	tb.Helper()
	expect := strings.TrimSuffix(recording, ".rec") + ".expect"
	want, err := os.ReadFile(expect)
	if err != nil {
		tb.Fatal(err)
	}
	got := Decisions(tb, newTunlet, recording, options)
	if diff := udiff.Unified(expect, "replayed", string(want), got); diff != "" {
		tb.Errorf("the tunlet decides otherwise than expected:\n%s", diff)
	}
	if diff := udiff.Unified("replayed", "replayed again", got, Decisions(tb, newTunlet, recording, options)); diff != "" {
		tb.Errorf("the tunlet decides otherwise when it is told the same:\n%s", diff)
	}
	return got
}

// Decisions returns what a tunlet decides when it is driven with a recording, as
// attune tunlet run --replay prints it. The recording may be of another program
// than those that the tunlet is for, and has no file beside it.
func Decisions(tb TB, newTunlet func() sdk.Tunlet, recording string, options map[string]string) string {
	tb.Helper()
	file, err := os.Open(recording)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }() // read only
	h := New(tb, newTunlet)
	info, err := h.Client.Describe(context.Background(), &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}})
	if err != nil {
		tb.Fatalf("describe: %v", err)
	}
	configure(h, options)
	var out bytes.Buffer
	if err := replay.Run(context.Background(), file, replay.Options{Tunlet: h.Client, Info: info, Transcript: &out}); err != nil {
		tb.Fatalf("%s: %v", recording, err)
	}
	return out.String()
}
