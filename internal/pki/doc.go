// SPDX-License-Identifier: Apache-2.0

// Package pki says who somebody is by an X.509 certificate. Besides what every
// certificate has, those of Attune name a role, and may name a user id, as URIs
// among the subject's alternative names:
//
//	attune://role/user   attune://role/admin   attune://role/node
//	attune://uid/1000
//
// The common name is the name of the user or of the node's host. A certificate
// without a role is nobody's, whoever has issued it, so a site may use a CA that
// issues others too. docs/reference/certificates.md has the whole.
//
// An [Identity] is one's own certificate, read again when its files have been
// replaced; a [Renewal] replaces them. An [Authority] is a small CA for sites without
// one: a root, or an issuing CA below it.
//
// The methods of an Identity and of an Authority may be called from any
// goroutine.
package pki
