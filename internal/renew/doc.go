// SPDX-License-Identifier: Apache-2.0

// Package renew keeps one's own certificate from ending: when a third of its time is
// left it asks the site's issuing service (package issuer) for the next one, and
// writes that over the files, from which handshakes have it.
//
// A Renewer may be used from any goroutine.
package renew
