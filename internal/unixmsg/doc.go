// SPDX-License-Identifier: Apache-2.0

// Package unixmsg reads packets with descriptors (SCM_RIGHTS, unix(7)) from Unix
// sockets, and gets rid of descriptors that strangers send. It has no state.
package unixmsg
