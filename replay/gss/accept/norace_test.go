//go:build !race

package accept_test

// raceDetector: with it sync.Pool forgets at random, so that allocations cannot be
// counted.
const raceDetector = false
