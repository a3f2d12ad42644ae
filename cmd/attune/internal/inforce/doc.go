// SPDX-License-Identifier: Apache-2.0

// Package inforce finds what is changed in running processes of this node: by hand, by
// runs of attune, and by the service.
package inforce
