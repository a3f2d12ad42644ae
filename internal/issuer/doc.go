// SPDX-License-Identifier: Apache-2.0

// Package issuer is the issuing service of a site: whoever shows a valid certificate
// gets the same once more, to a new key and for another short time. It has the key of
// an issuing CA; the root's is not needed, and not here. Package renew is the other
// side.
//
// A Service may be used from any goroutine.
package issuer
