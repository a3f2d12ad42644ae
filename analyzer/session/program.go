// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"unicode"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// programOf returns what is the same for processes that are expected to do the
// same kind of work: the executable's contents, and the command line, since an
// interpreter is another program with another script. Digits are left out: they are
// what the jobs of a bag differ in, the part of the input or the seed. It is empty
// while the contents are not known, and for ranks: these wait for each other, so
// that what helps all of them shows nothing in one.
func programOf(info *attunev1.Process) string {
	if info.GetExecutableSha256() == "" || info.Rank != nil {
		return ""
	}
	h := sha256.New()
	_, _ = io.WriteString(h, info.GetExecutableSha256()) // a hash does not fail
	for _, word := range info.GetCommandLine() {
		_, _ = io.WriteString(h, "\x00"+strings.Map(withoutDigits, word))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// withoutDigits is for strings.Map.
func withoutDigits(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}
