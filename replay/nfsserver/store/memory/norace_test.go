//go:build !race

package memory

// modelSteps is how many operations the model does for each seed.
const modelSteps = 2000
