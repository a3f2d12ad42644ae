// SPDX-License-Identifier: Apache-2.0

// Package tune is `attune tune`: changes of running processes that a person makes.
package tune
