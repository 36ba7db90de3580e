// Package live holds the tests of live capture that need a kernel to capture
// from: root, or CAP_NET_RAW and CAP_NET_ADMIN. They are built with the tag
// live only and make interfaces of their own; test/live/run runs them in a
// network namespace that is thrown away.
package live
