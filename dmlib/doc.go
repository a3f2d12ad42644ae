// SPDX-License-Identifier: Apache-2.0

// Package dmlib carries DMLib, the C library that lives in the application,
// inside Attune's Go programs and puts it where the dynamic loader finds it.
//
// The library itself is built from src/ by make (see README.md); a Go build
// embeds what lies in build/ at that moment. A build without it works and
// reports ErrNotBuilt, so that vet and tests run on a fresh checkout.
//
// Nothing here has state: every function may be called from any goroutine.
package dmlib
