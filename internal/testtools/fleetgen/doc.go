// Package fleetgen makes captures of many taps out of a few: each tap has hosts of its own, and rotated files. The same
// options make the same files.
package fleetgen
