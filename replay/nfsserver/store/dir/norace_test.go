//go:build linux && !race

package dir

// modelSteps is how many operations the model does for each seed.
const modelSteps = 1200
