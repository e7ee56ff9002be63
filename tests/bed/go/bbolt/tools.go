//go:build tools

// Package bed pins the bbolt command, whose checker is an oracle of the tests.
package bed

import _ "go.etcd.io/bbolt/cmd/bbolt"
