//go:build race

package memory

// modelSteps is lower here: the model is one goroutine, and the race detector
// looks at every byte that it compares.
const modelSteps = 150
