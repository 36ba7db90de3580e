//go:build race

package iwarp

// allowedAllocations: under the race detector, pools lose what is put into them
// at random.
const allowedAllocations = 100
