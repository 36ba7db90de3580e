// Package resume tests that a decoder which is saved and restored in the middle of a capture reports the same as
// one that was never interrupted.
package resume
