// SPDX-License-Identifier: Apache-2.0

// Package permission says what commands may do here: the switch of this node and
// of this user, and the site's policy.
package permission
