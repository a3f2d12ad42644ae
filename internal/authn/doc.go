// SPDX-License-Identifier: Apache-2.0

// Package authn says to a gRPC service, and to its client, who is at the other
// end, in the same way on a Unix socket, where the kernel knows (package
// peercred), and on TCP, where a certificate says (package pki): a
// [attunev1.Principal], see [PrincipalFrom]. What they may do is not decided
// here but by who is asked, with [Reaches].
//
//   - Unix sockets: root and the services' user are nodes, everybody else a
//     user. Nothing is sent.
//   - TCP: mutual TLS 1.3; the role is the certificate's.
//   - Everything else is refused, pipes and wrappers that hide the socket too.
//
// It has no state; everything may be used from any goroutine.
package authn
