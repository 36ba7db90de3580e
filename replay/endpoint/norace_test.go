//go:build !race

package endpoint

const raceDetector = false
