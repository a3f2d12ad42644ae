// SPDX-License-Identifier: Apache-2.0

// Package cert is `attune cert`: the certificates of a site.
package cert
